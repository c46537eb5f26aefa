"""A Hive metastore on this machine, of the jars that pyspark brings, to develop and to measure
with: a catalog that Spark sessions of several processes share."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mirrorlake.devtools.local.ports import free_ports
from mirrorlake.devtools.local.process import server
from mirrorlake.spark.jars import pyspark_jars
from mirrorlake.spark.java import find_java

#: As sessions name the catalog of a metastore.
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

    @property
    def environment(self) -> Mapping[str, str]:
        """By which a process's session is configured, as Spark's documentation says."""
        return {"SPARK_CONF_DIR": str(self.settings)}

    def lake(self, schema: str, checkpoints: Path) -> dict[str, object]:
        """What a topology file says as `lake` for one whose tables are a schema's own."""
        return {"catalog": CATALOG, "schema": schema, "checkpoints": str(checkpoints)}


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
    """Run a metastore for the time of the block, without a schema of ours; its files are in
    `folder`. Raises InputError where it does not start."""
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
    with server(command, port, folder / "metastore.log"):
        yield metastore
