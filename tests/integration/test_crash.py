"""Killed with -9 at the worst moments and started again: nothing lost, nothing twice, the map exact (DESIGN 2)."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from mirrorlake import crash
from mirrorlake.local.cluster import EmbeddedCluster
from mirrorlake.produce.commit_log import CommitLog
from tests.support.clusters import ClusterPair
from tests.support.kafka import NewRecord, create_topic, numbered, partition_count, read_topic, send, write
from tests.support.replication import (
    assert_same,
    finish,
    replicate_once,
    replicating,
    start_run,
    write_topology,
)

PARTITIONS = 3
#: Small landed batches, so that a run is many of them.
LANDING = {"max_records_per_batch": 1_500}
#: Points that a Python worker passes; the others are the driver's own. A worker can take the driver with it.
IN_WORKERS = ("mid-transaction", "kafka-committed")


@dataclass(frozen=True)
class Scene:
    """A topic with records, replicated in part, and the topology that goes on with it."""

    topology: Path
    topic: str
    east: str
    west: str

    @property
    def names(self) -> dict[str, str]:
        return {self.topic: f"east.{self.topic}"}

    def write(self, start: int, count: int) -> None:
        write(self.east, self.topic, numbered(count, PARTITIONS, start, size=10))


@pytest.fixture
def scene(spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path) -> Scene:
    """A flow that has run once, and 4,000 more records waiting."""
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]}, LANDING)
    made = Scene(topology, topic_name, clusters.east, clusters.west)
    create_topic(clusters.east, topic_name, PARTITIONS)
    made.write(0, 2_000)
    replicate_once(spark, topology)
    made.write(2_000, 4_000)
    return made


@pytest.mark.parametrize("point", crash.POINTS)
def test_driver_killed_and_started_again(spark: SparkSession, scene: Scene, tmp_path: Path, point: str) -> None:
    once = tmp_path / "crashed"
    environment = {"MIRRORLAKE_CRASH": f"{point}:driver", "MIRRORLAKE_CRASH_ONCE": str(once)}
    code = finish(start_run(scene.topology, "--once", **environment))
    log = (tmp_path / "run.log").read_text(encoding="utf-8")
    assert once.exists(), f"nobody came to {point}\n{log}"
    assert code == -9, log
    scene.write(6_000, 1_000)
    run = replicate_once(spark, scene.topology)
    assert_same(run.lake, scene.east, scene.west, scene.names, 7_000)


@pytest.mark.parametrize("point", IN_WORKERS)
def test_worker_killed_in_a_task(spark: SparkSession, scene: Scene, tmp_path: Path, point: str) -> None:
    """Spark tries the task again: all is there without anybody's help."""
    once = tmp_path / "crashed"
    environment = spark.sparkContext.environment
    environment.update({"MIRRORLAKE_CRASH": point, "MIRRORLAKE_CRASH_ONCE": str(once)})
    try:
        run = replicate_once(spark, scene.topology)
    finally:
        del environment["MIRRORLAKE_CRASH"], environment["MIRRORLAKE_CRASH_ONCE"]
    assert once.exists(), f"nobody came to {point}"
    assert_same(run.lake, scene.east, scene.west, scene.names, 6_000)


def test_landed_but_not_committed_by_the_stream(spark: SparkSession, scene: Scene, tmp_path: Path) -> None:
    """The driver died behind the commit in `records` and before the one in the streaming checkpoint."""
    replicate_once(spark, scene.topology)
    commits = sorted(
        (path for path in tmp_path.glob("lake/_checkpoints/land/east/*/commits/*") if path.name.isdigit()),
        key=lambda path: int(path.name),
    )
    assert len(commits) > 2
    commits[-1].unlink()
    (commits[-1].parent / f".{commits[-1].name}.crc").unlink(missing_ok=True)
    run = replicate_once(spark, scene.topology)
    assert_same(run.lake, scene.east, scene.west, scene.names, 6_000)
    scene.write(6_000, 1_000)
    run = replicate_once(spark, scene.topology)
    assert_same(run.lake, scene.east, scene.west, scene.names, 7_000)


def test_map_rows_that_were_lost_for_many_batches_are_rebuilt(
    spark: SparkSession, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row of several batches reaches the map: all are rebuilt from the target's metadata and the stage."""
    with monkeypatch.context() as patch:
        patch.setattr("mirrorlake.produce.ledger.Ledger._append_all", lambda _self: None)
        lost = replicate_once(spark, scene.topology)
        assert len(lost.reports) >= 1
    mapped = lost.lake.sql("SELECT sum(record_count) AS n FROM offset_map").collect()[0]["n"]
    assert mapped == 2_000
    assert sum(map(len, read_topic(scene.west, scene.names[scene.topic]))) == 6_000
    scene.write(6_000, 1_000)
    run = replicate_once(spark, scene.topology)
    assert_same(run.lake, scene.east, scene.west, scene.names, 7_000)


def test_deleted_checkpoints_are_rebuilt_from_the_tables(spark: SparkSession, scene: Scene, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "lake" / "_checkpoints")
    run = replicate_once(spark, scene.topology)
    assert_same(run.lake, scene.east, scene.west, scene.names, 6_000)
    shutil.rmtree(tmp_path / "lake" / "_checkpoints")
    scene.write(6_000, 1_000)
    run = replicate_once(spark, scene.topology)
    assert_same(run.lake, scene.east, scene.west, scene.names, 7_000)


class Feeder(Thread):
    """Writes numbered records until it is stopped."""

    def __init__(self, bootstrap: str, topic: str, start: int, rate: int) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._topic, self._rate = topic, rate
        self.number = start
        self._stop_asked = Event()

    def run(self) -> None:
        while not self._stop_asked.wait(0.05):
            for _ in range(self._rate // 20):
                send(self._producer, self._topic, NewRecord(b"%d" % self.number, None, self.number % PARTITIONS))
                self.number += 1
        self._producer.flush(30)

    def end(self) -> None:
        self._stop_asked.set()
        self.join(60)

    def __enter__(self) -> "Feeder":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def test_stage_first(spark: SparkSession, scene: Scene, tmp_path: Path) -> None:
    """Law 1: what a read_committed consumer sees at the target was in `records` by then."""
    stage = CommitLog(tmp_path / "lake" / "records")
    version, seen = 0, []
    with replicating(spark, scene.topology), Feeder(scene.east, scene.topic, 6_000, 1_000):
        for messages in _watch(scene.west, scene.names[scene.topic], enough=9_000):
            while stage.files_of(version + 1) is not None:
                version += 1
            seen.append((version, messages))
    committed: dict[tuple[int, bytes], int] = {}
    for number in range(version + 1):
        for path in stage.files_of(number) or []:
            rows = pq.read_table(path, columns=["partition", "value"]).to_pydict()
            for key in zip(rows["partition"], rows["value"], strict=True):
                committed[key] = number
    checked = 0
    for upto, messages in seen:
        for key in messages:
            assert key in committed and committed[key] <= upto, f"{key} was at the target before it was staged"
            checked += 1
    assert checked >= 9_000
    assert len({upto for upto, _ in seen}) > 5, "it was not watched while batches were landed"


def _watch(bootstrap: str, topic: str, enough: int) -> Iterator[list[tuple[int, bytes]]]:
    """What a read_committed consumer sees of a topic, poll by poll, up to so many records."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "watch",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([TopicPartition(topic, p, 0) for p in range(partition_count(bootstrap, topic))])
    end, seen = time.monotonic() + 120, 0
    try:
        while seen < enough:
            assert time.monotonic() < end, f"only {seen} records arrived"
            messages = consumer.consume(1_000, timeout=0.05)
            seen += len(messages)
            if messages:
                yield [(message.partition(), message.value()) for message in messages if message.error() is None]
    finally:
        consumer.close()


def test_target_broker_killed_under_load(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(clusters.east, topic_name, PARTITIONS)
    write(clusters.east, topic_name, numbered(2_000, PARTITIONS))
    remote = f"east.{topic_name}"
    with EmbeddedCluster("west", tmp_path / "west") as west:
        topology = write_topology(tmp_path, clusters.east, west.bootstrap_servers, {"topics": [topic_name]}, LANDING)
        with Feeder(clusters.east, topic_name, 2_000, 1_000) as feeder, replicating(spark, topology) as run:
            _until(lambda: len(run.reports) >= 4)
            west.kill()
            time.sleep(2)
            west.start_broker()
            done = len(run.reports)
            _until(lambda: len(run.reports) >= done + 3)
            feeder.end()
        run = replicate_once(spark, topology)
        count = feeder.number
        assert_same(run.lake, clusters.east, west.bootstrap_servers, {topic_name: remote}, count)


def _until(fact, seconds: float = 90) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < end, "it does not go on"
        time.sleep(0.1)
