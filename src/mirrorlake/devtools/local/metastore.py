"""A local Hive metastore, of pyspark's own jars: a catalog that several processes share."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mirrorlake.devtools.local.ports import free_ports
from mirrorlake.devtools.local.process import server
from mirrorlake.spark.jars import pyspark_jars
from mirrorlake.spark.java import find_java

#: The name of a metastore's catalog in sessions.
CATALOG = "spark_catalog"
_CLASS = "org.apache.hadoop.hive.metastore.HiveMetaStore"
#: In memory: its names end with the process.
_DATABASE = "jdbc:derby:memory:metastore;create=true"


@dataclass(frozen=True)
class Metastore:
    """A metastore's port; what sessions need to use it, and the folder of a spark-defaults.conf
    that has it."""

    port: int
    session: Mapping[str, str]
    settings: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables that configure a process's session."""
        return {"SPARK_CONF_DIR": str(self.settings)}

    def lake(self, schema: str, checkpoints: Path) -> dict[str, object]:
        """The topology file's `lake` block for tables in a schema of this catalog."""
        return {"catalog": CATALOG, "schema": schema, "checkpoints": str(checkpoints)}


def metastore_at(port: int, folder: Path) -> Metastore:
    """A metastore on a local port, running or not; `folder` is for the tables of its schemas."""
    settings = folder / "settings"
    settings.mkdir(parents=True, exist_ok=True)
    lines = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": f"thrift://127.0.0.1:{port}",
        # default: three, a second apart
        "spark.hadoop.hive.metastore.connect.retries": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    text = "".join(f"{key} {value}\n" for key, value in lines.items())
    (settings / "spark-defaults.conf").write_text(text, encoding="utf-8")
    return Metastore(port, lines, settings)


@contextmanager
def hive_metastore(folder: Path) -> Iterator[Metastore]:
    """Run a metastore during the block, its files in `folder`. Raises InputError if it fails."""
    (port,) = free_ports(1)
    metastore = metastore_at(port, folder)
    properties = {
        "javax.jdo.option.ConnectionURL": _DATABASE,
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        # needs a library that pyspark lacks
        "hive.async.log.enabled": "false",
        "hive.log.dir": str(folder),
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
        "derby.stream.error.file": str(folder / "derby.log"),
    }
    command = [str(find_java()), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += [f"-D{key}={value}" for key, value in properties.items()]
    command += ["-cp", str(pyspark_jars() / "*"), _CLASS, "-p", str(port)]
    with server(command, port, folder / "metastore.log"):
        yield metastore
