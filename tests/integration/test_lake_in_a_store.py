"""A lake in an object store: the same commands, the same answers, and nothing beside the topology
file on a disk."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mirrorlake.lake.remote_place import IN_MEMORY
from tests.support import azurite
from tests.support.clusters import ClusterPair
from tests.support.commands import forked
from tests.support.hdfs import hdfs_cluster
from tests.support.kafka import create_topic, record_count
from tests.support.object_store import KEY, SECRET, Store
from tests.support.replication import FLOW, write_topology
from tests.support.s3proxy import s3proxy
from tests.support.topologies import fill


def mirrorlake(topology: Path, *words: str, code: int = 0) -> Any:
    """What a command answers as JSON."""
    line = ["-c", str(topology), *words, "--json"]
    done = forked(line, topology.parent, XDG_CACHE_HOME=str(topology.parent / "cache"))
    assert done.returncode == code, done.stderr[-4000:]
    assert "Traceback" not in done.stderr, done.stderr[-4000:]
    return json.loads(done.stdout) if done.stdout.strip() else None


@pytest.fixture
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The one that a test names, with its secret in the environment."""
    monkeypatch.setenv(KEY, azurite.SECRET if request.param == "azure" else SECRET)
    made: Store = request.getfixturevalue(request.param)
    return made


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with azurite.azurite(tmp_path_factory.mktemp("azurite")) as store:
        yield store


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with hdfs_cluster(tmp_path_factory.mktemp("hdfs")) as store:
        yield store


STORES = pytest.mark.parametrize(
    "store",
    ["object_store", *(pytest.param(name, marks=pytest.mark.slow) for name in ("azure", "hdfs"))],
    indirect=True,
)


@STORES
def test_a_lake_in_a_store_is_one_as_any_other(
    clusters: ClusterPair, topic_name: str, tmp_path: Path, store: Store
) -> None:
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    store.hold(topology, topic_name)
    create_topic(clusters.east, topic_name, 2)
    fill(clusters.east, topic_name, "a", 20)
    assert mirrorlake(topology, "plan")
    mirrorlake(topology, "run", "--once")
    fill(clusters.east, topic_name, "b", 20)
    mirrorlake(topology, "run", "--once")
    assert record_count(clusters.west, f"east.{topic_name}") == 40
    status = mirrorlake(topology, "status")
    assert status["healthy"]
    assert mirrorlake(topology, "verify")["proven"] == 40
    place = mirrorlake(
        topology,
        "translate",
        "--flow",
        FLOW,
        "--topic",
        topic_name,
        *"--partition 0 --offset 3".split(),
    )
    assert (place["offset"], place["exact"]) == (3, True)
    assert not (tmp_path / "lake").exists() and not [*tmp_path.glob("*:*")]


@pytest.mark.wide("test_a_lake_in_a_store_is_one_as_any_other")
@STORES
def test_a_lake_in_a_store_is_maintained(
    clusters: ClusterPair, topic_name: str, tmp_path: Path, store: Store
) -> None:
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    store.hold(topology, topic_name)
    create_topic(clusters.east, topic_name, 2)
    fill(clusters.east, topic_name, "a", 40)
    mirrorlake(topology, "run", "--once")
    assert mirrorlake(topology, "verify")["proven"] == 40
    assert mirrorlake(topology, "sql", "SELECT count(*) AS n FROM records") == [{"n": 40}]
    mirrorlake(topology, "maintain")
    assert mirrorlake(topology, "verify", "--again")["proven"] == 40
    mirrorlake(topology, "run", "--once")
    assert not (tmp_path / "lake").exists() and not [*tmp_path.glob("*:*")]


@pytest.mark.slow
@pytest.mark.parametrize("store", ["object_store", "azure", "hdfs"], indirect=True)
def test_tasks_write_and_read_the_store(
    clusters: ClusterPair, topic_name: str, tmp_path: Path, store: Store
) -> None:
    """More records than this process takes itself: Spark's tasks land and produce them."""
    long_way = {"small_batch_records": 0}
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [topic_name]}, long_way
    )
    store.hold(topology, topic_name)
    create_topic(clusters.east, topic_name, 2)
    fill(clusters.east, topic_name, "a", 2_000)
    mirrorlake(topology, "run", "--once")
    assert record_count(clusters.west, f"east.{topic_name}") == 2_000
    assert mirrorlake(topology, "verify")["proven"] == 2_000


@pytest.mark.slow
def test_a_store_without_conditional_puts_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3Proxy over a folder takes If-None-Match, and overwrites all the same."""
    monkeypatch.setenv(KEY, SECRET)
    topology = write_topology(tmp_path, "127.0.0.1:1", "127.0.0.1:1", {"topics": ["orders"]})
    with s3proxy(tmp_path) as store:
        url = store.hold(topology, "lake")
        done = subprocess.run(
            [sys.executable, "-m", "mirrorlake", "-c", str(topology), "plan"],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2, done.stderr
    assert f"no lake can be kept at {url}: its store has overwritten an object" in done.stderr
    assert "choose a store with conditional puts" in done.stderr


@pytest.mark.slow
def test_a_file_in_hdfs_is_made_once_and_as_a_whole(hdfs: Store) -> None:
    folder = hdfs.place("files")
    file = folder / "below" / "file"
    assert file.mark() is None and folder.names() == []
    file.create(b"one")
    mark = file.mark()
    with pytest.raises(FileExistsError) as refused:
        file.create(b"two")
    assert "\n" not in str(refused.value) and file.read() == b"one" and file.mark() == mark
    file.create(b"one")  # as where the answer was lost
    file.write(b"three")
    assert file.read() == b"three" and file.mark() != mark
    assert (folder / "below").names() == ["file"]
    writer = (folder / "large").writer()
    rows = pa.table({"value": pa.array(range(2_000_000), pa.int64())})
    pq.write_table(rows, writer.sink, compression="none", use_dictionary=False)
    assert writer.close() > IN_MEMORY
    with (folder / "large").open_parquet() as parquet:
        assert parquet.read() == rows, "it is read in parts"
    file.delete()
    file.delete()
    assert (folder / "below").names() == [] and folder.names() == ["below", "large"]
