"""What commands share: the lake, opened when it is first needed, and the two streams."""

import json
import os
from functools import cached_property
from pathlib import Path

import typer

import mirrorlake
from mirrorlake.terminal import plain_console

ENGINE = typer.Option(
    None, "--engine", metavar="spark|duckdb", help="Who reads the tables: DuckDB by default, of a catalog Spark."
)
#: How wide tables are where no terminal is: whoever reads a pipe wants each row on its line.
PIPED_COLUMNS = 200


class Context:
    """Made once for a command by the `-c` option."""

    def __init__(self, config: Path) -> None:
        self.config = config
        self.engine: str | None = None
        self.err = plain_console(stderr=True)
        self.out = plain_console()
        if not self.out.is_terminal and "COLUMNS" not in os.environ:
            self.out = plain_console(width=PIPED_COLUMNS)

    @cached_property
    def lake(self) -> mirrorlake.OpenLake:
        """The lake of the topology file, which alone is read by now. Raises TopologyError."""
        lake = mirrorlake.open(self.config, engine=self.engine)
        lake.internals.say = self.say
        return lake

    def by(self, engine: str | None) -> "Context":
        """The same, for a command that was told who reads the tables."""
        self.engine = engine
        return self

    def say(self, line: str) -> None:
        """One line for a person, on stderr, so that stdout holds answers only."""
        self.err.print(line, soft_wrap=True)

    def answer(self, document: object) -> None:
        """One JSON document on stdout."""
        typer.echo(json.dumps(document, default=str, ensure_ascii=False))
