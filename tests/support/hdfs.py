"""HDFS on this machine: a namenode and a datanode of Hadoop's own test cluster (Maven), in one
JVM."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from mirrorlake.devtools.local.ports import free_ports
from mirrorlake.devtools.local.process import server
from mirrorlake.lake.place import Place, place_of
from mirrorlake.spark.jars import JarSet, jars_of
from mirrorlake.spark.java import find_java
from tests.support.object_store import Store
from tests.support.waiting import until

JARS = JarSet("hdfs", "HDFS", 120, ("org.apache.hadoop:hadoop-client-minicluster:3.4.1",))


class HdfsStore(Store):
    """A running cluster; anyone may write there."""

    @property
    def options(self) -> dict[str, str]:
        """Those of `lake.storage`: none."""
        return {}

    def lake(self, name: str, **options: str) -> dict[str, object]:
        """See `ObjectStore.lake`."""
        return {"path": f"{self.address}/{name}", "storage": {**self.options, **options}}

    def place(self, name: str) -> Place:
        """See `Store.place`."""
        return place_of(f"{self.address}/{name}", self.options)


@contextmanager
def hdfs_cluster(folder: Path) -> Iterator[HdfsStore]:
    """A cluster on a free port, with nothing in it, once it takes files."""
    port, page = free_ports(2)
    quiet = folder / "log4j.properties"
    quiet.write_text("log4j.rootLogger=OFF\n")
    command = [str(find_java()), "-Xmx512m", f"-Dtest.build.data={folder / 'data'}"]
    command += [f"-Dlog4j.configuration=file:{quiet}", "-cp", ":".join(map(str, jars_of(JARS)))]
    command += ["org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-datanodes", "1"]
    command += ["-nnport", str(port), "-httpport", str(page), "-D", "dfs.replication=1"]
    with server(command, port, folder / "hdfs.log"):
        store = HdfsStore(f"hdfs://127.0.0.1:{port}")
        until(partial(_takes_files, store), "a datanode takes files", gives=True)
        yield store


def _takes_files(store: HdfsStore) -> bool:
    try:
        store.place("probe").write(b"there")
    except OSError:
        return False
    return True
