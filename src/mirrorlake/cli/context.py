"""What commands share: the topology, connections, session and lake, each made when it is first needed."""

import json
import os
from functools import cached_property
from pathlib import Path

import typer
from pyspark.sql import SparkSession

from mirrorlake.config.topology import Topology, load_topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.spark.session import open_session
from mirrorlake.terminal import plain_console

#: How wide tables are where no terminal is: whoever reads a pipe wants each row on its line.
PIPED_COLUMNS = 200


class Context:
    """Made once for a command by the `-c` option."""

    def __init__(self, config: Path) -> None:
        self.config = config
        self.short = True  # `run` says otherwise: its session lives long
        self.err = plain_console(stderr=True)
        self.out = plain_console()
        if not self.out.is_terminal and "COLUMNS" not in os.environ:
            self.out = plain_console(width=PIPED_COLUMNS)

    @cached_property
    def topology(self) -> Topology:
        """The topology file. Raises TopologyError."""
        return load_topology(self.config)

    @cached_property
    def connections(self) -> Connections:
        """The clusters."""
        return Connections(self.topology)

    @cached_property
    def spark(self) -> SparkSession:
        """The session there is, or a local one."""
        return open_session(self.say, self.short)

    @cached_property
    def lake(self) -> Lake:
        """The lake, opened. Raises LakeError."""
        return open_lake(self.spark, self.topology.lake, self.topology.directory)

    def say(self, line: str) -> None:
        """One line for a person, on stderr, so that stdout holds answers only."""
        self.err.print(line, soft_wrap=True)

    def answer(self, document: object) -> None:
        """One JSON document on stdout."""
        typer.echo(json.dumps(document, default=str, ensure_ascii=False))
