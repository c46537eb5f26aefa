"""Services on this machine, for development and measurements: a Hive metastore, of pyspark's own
jars, as a catalog that several processes share; and S3 by moto's server, with an empty bucket."""

import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mirrorlake.devtools.local.ports import free_ports
from mirrorlake.devtools.local.process import server
from mirrorlake.errors import InputError
from mirrorlake.spark.jars import pyspark_jars
from mirrorlake.spark.java import find_java

#: The name of a metastore's catalog in sessions.
CATALOG = "spark_catalog"
_CLASS = "org.apache.hadoop.hive.metastore.HiveMetaStore"
#: In memory: its names end with the process.
_DATABASE = "jdbc:derby:memory:metastore;create=true"
BUCKET = "lakes"
#: The variables that `ObjectStore.options` refers to, for processes that open a lake there.
ENVIRONMENT: Mapping[str, str] = {"MIRRORLAKE_LOCAL_SECRET": "secret"}


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


@dataclass(frozen=True)
class ObjectStore:
    """A running server, by its address. `options` are those of `lake.storage`."""

    address: str

    @property
    def options(self) -> dict[str, str]:
        """delta-rs' options to reach it; the secret is in ENVIRONMENT."""
        (key,) = ENVIRONMENT
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": f"${{env:{key}}}",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def lake(self, name: str, **options: str) -> dict[str, object]:
        """The topology file's `lake` block for a lake in this store, with additional options."""
        return {"path": f"s3://{BUCKET}/{name}", "storage": {**self.options, **options}}


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    """Run a server while the block runs, with its log in `folder`. Raises InputError if moto is not
    installed, or its server does not start."""
    if find_spec("moto") is None:
        raise InputError(
            "an object store on this machine needs moto: pip install 'moto[s3,server]'"
        )
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    with server(command, port, folder / "moto.log"):
        store = ObjectStore(f"http://127.0.0.1:{port}")
        request = urllib.request.Request(f"{store.address}/{BUCKET}", method="PUT")
        urllib.request.urlopen(request).close()
        yield store
