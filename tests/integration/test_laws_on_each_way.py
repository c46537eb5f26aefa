"""The laws on the ways that few other tests go: a run that opens no Spark session, and a lake in a
catalog, about which Spark answers, or its files where they are at hand; and once by Spark in a
folder, for `make test-matrix`, whose tests these are. And a lake in an object store, without a
session."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from mirrorlake import failpoints
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import MirrorlakeError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.translate import translate
from mirrorlake.run.resolve import Wanted, resolve
from mirrorlake.run.status import read_status
from tests.support.clusters import ClusterPair
from tests.support.commands import exit_code
from tests.support.groups import commit_all, delete_groups
from tests.support.kafka import create_topic, delete_topic, numbered, read_topic, truncate, write
from tests.support.lake_rows import FLOW, now_of
from tests.support.laws import BY_SPARK, IN_STORE
from tests.support.object_store import KEY, SECRET, Store
from tests.support.replication import (
    QUIET,
    answered_by_spark_alone,
    assert_same,
    in_catalog,
    lake_of,
    replicate_once,
    write_topology,
)
from tests.support.topologies import incidents, map_pairs

pytestmark = pytest.mark.matrix

PARTITIONS = 2
#: Points behind which something was just written. By Spark workers produce, and into a catalog it
#: lands, at points that the driver does not pass.
POINTS = {
    "no session": ("landed", "kafka-committed", "produced"),
    "folder": ("landed", "produced"),
    "catalog": ("planned", "produced"),
}


@dataclass
class Scene:
    """Two topics of a flow, and how it is run: as a command without Java, or in this process by
    Spark, into a folder or a catalog."""

    spark: SparkSession
    clusters: ClusterPair
    topology: Path
    topic: str
    beside: str
    way: str
    monkeypatch: pytest.MonkeyPatch
    checkpoints: str
    written: int = 0

    @property
    def by_command(self) -> bool:
        return self.way == "no session"

    @property
    def mirror(self) -> str:
        return f"east.{self.topic}"

    @property
    def lake(self) -> Lake:
        return lake_of(self.spark, self.topology)

    def write(self, count: int) -> None:
        """Write to both topics."""
        for topic in (self.topic, self.beside):
            write(self.clusters.east, topic, numbered(count, PARTITIONS, self.written))
        self.written += count

    def run(self, **environment: str) -> int:
        """`run --once`: its exit code; in this process 1 for whatever it raises."""
        if self.by_command:
            no_java = {"PATH": "/nowhere", "JAVA_HOME": "", "HOME": str(self.topology.parent)}
            return exit_code(self.topology, "run", "--once", **no_java, **environment)
        try:
            replicate_once(self.spark, self.topology)
        except (MirrorlakeError, Stopped):
            return 1
        return 0

    def dies_at(self, point: str) -> None:
        """A run that gets no further than to a point: killed, or, in this process, by an
        exception."""
        if self.by_command:
            once = self.topology.parent / f"once-{point}"
            code = self.run(MIRRORLAKE_CRASH=f"{point}:driver", MIRRORLAKE_CRASH_ONCE=str(once))
            assert (code, once.exists()) == (-9, True), self.said()
            return
        left = [point]

        def stop(at: str) -> None:
            if at in left:
                left.remove(at)
                raise Stopped(at)

        with self.monkeypatch.context() as patch:
            patch.setattr(failpoints, "reached", stop)
            self.run()
        assert not left

    def said(self) -> str:
        """What the commands printed."""
        return (self.topology.parent / "run.log").read_text(encoding="utf-8")

    def target_values(self, topic: str) -> set[tuple[int, bytes | None]]:
        """What a read_committed consumer sees of a mirror."""
        parts = read_topic(self.clusters.west, f"east.{topic}")
        return {(number, record.value) for number, part in enumerate(parts) for record in part}

    def staged_values(self, topic: str) -> set[tuple[int, bytes | None]]:
        rows = now_of(self.lake).rows(
            f"SELECT partition, value FROM records WHERE topic = '{topic}'"
        )
        return {(row["partition"], bytes(row["value"])) for row in rows}

    def assert_whole(self) -> None:
        """Nothing is lost or twice, and the map is exact."""
        names = {topic: f"east.{topic}" for topic in (self.topic, self.beside)}
        assert_same(self.lake, self.clusters.east, self.clusters.west, names, 2 * self.written)


class Stopped(Exception):
    """A run in this process ends here."""


@pytest.fixture(
    params=[
        "no session",
        pytest.param("folder", marks=pytest.mark.slow),
        pytest.param(BY_SPARK, marks=pytest.mark.slow),
        pytest.param(IN_STORE, marks=pytest.mark.slow),
    ]
)
def scene(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    clusters: ClusterPair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Scene:
    topic = f"law-{uuid4().hex[:8]}"
    flow = {"topics": [f"{topic}.*"], "groups": [f"{topic}.*"], "emit_checkpoints_enabled": True}
    by_command = request.param in ("no session", IN_STORE)
    landing = {} if by_command else {"small_batch_records": 0}
    topology = write_topology(tmp_path, clusters.east, clusters.west, {**QUIET, **flow}, landing)
    if request.param in ("catalog", BY_SPARK):
        in_catalog(topology)
    if request.param == BY_SPARK:
        answered_by_spark_alone(monkeypatch)
    checkpoints = (
        "lake/_checkpoints" if request.param in ("no session", "folder") else "checkpoints"
    )
    if request.param == IN_STORE:
        store: Store = request.getfixturevalue("object_store")
        store.hold(topology, topic)
        monkeypatch.setenv(KEY, SECRET)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / checkpoints))
    way = {BY_SPARK: "catalog", IN_STORE: "no session"}.get(request.param, request.param)
    beside = f"{topic}-beside"
    made = Scene(spark, clusters, topology, topic, beside, way, monkeypatch, checkpoints)
    for name in (made.topic, made.beside):
        create_topic(clusters.east, name, PARTITIONS)
    made.write(200)
    return made


@pytest.mark.wide(
    "integration/test_crash.py::test_driver_killed_at_point_after_point",
    "integration/test_crash.py::test_stage_first",
)
@pytest.mark.law("stage first", "exactly once", "exact map")
@pytest.mark.parametrize(
    "scene",
    [
        "no session",
        *(
            pytest.param(way, marks=pytest.mark.slow)
            for way in ("folder", BY_SPARK, "catalog", IN_STORE)
        ),
    ],
    indirect=True,
)
def test_what_dies_behind_any_write_goes_on_exactly(scene: Scene) -> None:
    """And whatever a consumer of the target saw meanwhile was in the stage."""
    for point in POINTS[scene.way]:
        scene.dies_at(point)
        assert scene.target_values(scene.topic) <= scene.staged_values(scene.topic)
        scene.write(100)
    assert scene.run() == 0, scene.said()
    scene.assert_whole()


@pytest.mark.law("nothing silently", "never more than was seen")
def test_what_the_source_lost_stops_its_partition_and_is_told(scene: Scene) -> None:
    assert scene.run() == 0, scene.said()
    scene.write(100)
    truncate(scene.clusters.east, scene.topic, 120)
    assert scene.run() == 1
    told = [
        (row["kind"], row["topic"], row["first_offset"], row["last_offset"])
        for row in incidents(scene.lake)
    ]
    assert told == [("source_truncated", scene.topic, 100, 119)]
    counts = {topic: len(scene.target_values(topic)) for topic in (scene.topic, scene.beside)}
    assert counts == {scene.topic: 100 + 150, scene.beside: 300}, (
        "the other partition and the other topic go on"
    )
    assert (
        read_status(now_of(scene.lake), Connections(load_topology(scene.topology)))["healthy"]
        is False
    )
    if scene.by_command:
        assert exit_code(scene.topology, "status") == 1


@pytest.mark.law("nothing silently", "kept by generation")
@pytest.mark.slow
def test_a_topic_that_was_made_again_is_another_one(scene: Scene) -> None:
    assert scene.run() == 0, scene.said()
    before = map_pairs(scene.lake, FLOW, scene.topic, 0)
    delete_topic(scene.clusters.east, scene.topic)
    create_topic(scene.clusters.east, scene.topic, PARTITIONS)
    scene.write(100)
    assert scene.run() == 1
    assert [(row["kind"], row["topic"]) for row in incidents(scene.lake)] == [
        ("topic_recreated", scene.topic)
    ]
    assert len(scene.target_values(scene.beside)) == 300
    resolve(
        Deployment.opened(scene.lake, Connections(load_topology(scene.topology))),
        Wanted(topic=scene.topic),
        "new-generation",
    )
    assert scene.run() == 0, scene.said()
    there = [record.offset for record in read_topic(scene.clusters.west, scene.mirror)[0]]
    assert len(there) == 100 + 50
    assert map_pairs(scene.lake, FLOW, scene.topic, 0) == before
    assert map_pairs(scene.lake, FLOW, scene.topic, 0, 1) == list(enumerate(there[100:]))
    assert translate(now_of(scene.lake), FLOW, scene.topic, 0, 7).offset == there[107]


@pytest.mark.law("stage is the truth", "progress is offsets")
def test_tables_and_target_are_enough_to_go_on(scene: Scene) -> None:
    """The checkpoints of queries are gone, and the target has forgotten the flow's positions: the
    map has them."""
    assert scene.run() == 0, scene.said()
    group = f"mirrorlake-{scene.lake.lake_id}-{FLOW}"
    delete_groups(scene.clusters.west, [group])
    shutil.rmtree(scene.topology.parent / scene.checkpoints)
    scene.write(100)
    assert scene.run() == 0, scene.said()
    scene.assert_whole()


@pytest.mark.law("never backwards")
def test_a_group_that_read_on_at_the_target_is_not_set_back(scene: Scene) -> None:
    group = f"{scene.topic}-group"
    commit_all(scene.clusters.east, scene.topic, [group], 50, PARTITIONS)
    assert scene.run() == 0, scene.said()
    assert positions(scene, group) == [50, 50]
    commit_all(scene.clusters.west, scene.mirror, [group], 80, PARTITIONS)
    commit_all(scene.clusters.east, scene.topic, [group], 60, PARTITIONS)
    assert scene.run() == 0, scene.said()
    assert positions(scene, group) == [80, 80]


def positions(scene: Scene, group: str) -> list[int]:
    """Where a group stands in the mirror."""
    admin = AdminClient({"bootstrap.servers": scene.clusters.west})
    (asked,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    found = {
        (place.topic, place.partition): place.offset for place in asked.result(20).topic_partitions
    }
    return [found[scene.mirror, number] for number in range(PARTITIONS)]
