"""Commands whose Spark sessions have their catalog in a Hive metastore."""

import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.support.commands import forked

CATALOG = "spark_catalog"


@dataclass(frozen=True)
class Metastore:
    """Where a metastore listens, and `settings`, the folder with Spark's own file of settings, by
    which a session has its catalog there."""

    port: int
    settings: Path

    def hold(self, topology: Path, at_a_path: bool) -> str:
        """Let a fresh schema have the tables of a topology file, as its own ones or as names of
        those at a path. Returns the schema."""
        document = yaml.safe_load(topology.read_text(encoding="utf-8"))
        schema = f"h{uuid.uuid4().hex[:8]}"
        place = document["lake"] if at_a_path else {"checkpoints": str(topology.parent / "state")}
        document["lake"] = {**place, "catalog": CATALOG, "schema": schema}
        topology.write_text(yaml.safe_dump(document), encoding="utf-8")
        return schema

    def command(self, topology: Path, *words: str) -> "subprocess.CompletedProcess[str]":
        """How a command ends whose session, if it has one, asks the metastore."""
        line = ["-c", str(topology), *words]
        return forked(line, topology.parent, **self.environment)

    @property
    def environment(self) -> dict[str, str]:
        """By which a process's session is configured, as Spark's documentation says."""
        return {"SPARK_CONF_DIR": str(self.settings), "MIRRORLAKE_CORES": "2"}


def metastore_at(port: int, folder: Path) -> Metastore:
    """A metastore on a port of this machine, whether or not one is there; the folder gets the
    tables of its schemas."""
    settings = folder / "settings"
    settings.mkdir(parents=True, exist_ok=True)
    lines = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": f"thrift://127.0.0.1:{port}",
        # three by default, a second apart
        "spark.hadoop.hive.metastore.connect.retries": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    text = "".join(f"{key} {value}\n" for key, value in lines.items())
    (settings / "spark-defaults.conf").write_text(text, encoding="utf-8")
    return Metastore(port, settings)
