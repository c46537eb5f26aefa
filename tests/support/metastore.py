"""A Hive metastore of tests, and commands whose Spark sessions have their catalog there: processes
that share no more than the metastore and a disk."""

import json
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mirrorlake.devtools.local import metastore as local
from mirrorlake.devtools.local.metastore import CATALOG
from tests.support.commands import forked


@dataclass(frozen=True)
class Metastore(local.Metastore):
    """A metastore, and commands beside it."""

    def hold(self, topology: Path, at_a_path: bool) -> str:
        """Let a fresh schema have the tables of a topology file, as its own ones or as names of
        those at a path. Returns the schema."""
        document = yaml.safe_load(topology.read_text(encoding="utf-8"))
        schema = f"h{uuid.uuid4().hex[:8]}"
        own = self.lake(schema, topology.parent / "state")
        names = {**document["lake"], "catalog": CATALOG, "schema": schema}
        document["lake"] = names if at_a_path else own
        topology.write_text(yaml.safe_dump(document), encoding="utf-8")
        return schema

    def command(self, topology: Path, *words: str) -> "subprocess.CompletedProcess[str]":
        """How a command ends whose session, if it has one, asks the metastore."""
        line = ["-c", str(topology), *words]
        return forked(line, topology.parent, MIRRORLAKE_CORES="2", **self.environment)

    def answer(self, topology: Path, *words: str, code: int = 0) -> Any:
        """What a command answers as JSON."""
        done = self.command(topology, *words, "--json")
        assert done.returncode == code, done.stderr[-4000:]
        assert "Traceback" not in done.stderr, done.stderr[-4000:]
        return json.loads(done.stdout)


def metastore_at(port: int, folder: Path) -> Metastore:
    """A metastore on a port of this machine, whether or not one is there."""
    return Metastore(**vars(local.metastore_at(port, folder)))


@contextmanager
def hive_metastore(folder: Path) -> Iterator[Metastore]:
    """A metastore for the time of the block, without a schema of ours."""
    with local.hive_metastore(folder) as metastore:
        yield Metastore(**vars(metastore))
