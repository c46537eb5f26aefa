"""A Hive metastore on this machine, of the jars that pyspark brings, and commands whose Spark
sessions have their catalog there: processes that share no more than the metastore and a disk."""

import json
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mirrorlake.devtools.local.ports import free_ports, is_open
from mirrorlake.devtools.local.process import start_guarded
from mirrorlake.spark.jars import pyspark_jars
from mirrorlake.spark.java import find_java
from tests.support.commands import forked
from tests.support.waiting import until

CATALOG = "spark_catalog"
_CLASS = "org.apache.hadoop.hive.metastore.HiveMetaStore"
#: In memory: it is gone with the process, as its names are then.
_DATABASE = "jdbc:derby:memory:metastore;create=true"


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

    def answer(self, topology: Path, *words: str, code: int = 0) -> Any:
        """What a command answers as JSON."""
        done = self.command(topology, *words, "--json")
        assert done.returncode == code, done.stderr[-4000:]
        assert "Traceback" not in done.stderr, done.stderr[-4000:]
        return json.loads(done.stdout)

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


@contextmanager
def hive_metastore(folder: Path) -> Iterator[Metastore]:
    """A metastore for the time of the block, without a schema of ours."""
    (port,) = free_ports(1)
    metastore = metastore_at(port, folder)
    properties = {
        "javax.jdo.option.ConnectionURL": _DATABASE,
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        # of a library that pyspark does not bring
        "hive.async.log.enabled": "false",
        "hive.log.dir": str(folder),
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
        "derby.stream.error.file": str(folder / "derby.log"),
    }
    command = [str(find_java()), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += [f"-D{key}={value}" for key, value in properties.items()]
    command += ["-cp", str(pyspark_jars() / "*"), _CLASS, "-p", str(port)]
    output = folder / "metastore.log"
    process = start_guarded(command, str(folder), output)

    def is_there() -> bool:
        assert process.alive(), output.read_text(encoding="utf-8")[-4000:]
        return is_open(port)

    try:
        until(is_there, "the metastore takes connections", 300)
        yield metastore
    finally:
        process.signal(signal.SIGKILL)
        process.wait(10)
