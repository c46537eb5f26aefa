"""Target topics that are deleted, or deleted and made again, while nobody runs and while the flow
does: told, waited for, decided, and gone on with; translation and groups never by offsets of a
topic that is gone."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import ReplicationError
from mirrorlake.failover.failover import MoveOptions, move_groups
from mirrorlake.groups.shared_topics import Direction
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.translate import translate, translate_all
from mirrorlake.naming.at_target import name_at_target
from mirrorlake.run.resolve import Wanted, resolve
from mirrorlake.run.status import read_status
from tests.support.clusters import ClusterPair
from tests.support.groups import commit, position
from tests.support.kafka import NewRecord, create_topic, delete_topic, read_topic, topics_of, write
from tests.support.lake_rows import now_of
from tests.support.lanes import BOTH_LANES
from tests.support.replication import FLOW, lake_of, replicate_once
from tests.support.topologies import (
    Live,
    fill,
    incidents,
    live,
    map_pairs,
    texts,
    values,
    write_flows,
)
from tests.support.waiting import until

pytestmark = BOTH_LANES

#: Source offset that the group of every topic stands at.
READ = 40


@dataclass
class Scene:
    """The two clusters and a family of topics on them, of one partition each."""

    clusters: ClusterPair
    prefix: str

    def source(self, name: str) -> str:
        return self.prefix + name

    def target(self, name: str) -> str:
        return f"east.{self.prefix}{name}"

    def fill(self, name: str, tag: str, count: int, start: int = 0) -> None:
        fill(self.clusters.east, self.source(name), tag, count, 1, start)

    def begin(self, *names: str) -> None:
        """Topics of 100 records at the source."""
        for name in names:
            create_topic(self.clusters.east, self.source(name))
            self.fill(name, "a", 100)

    def delete(self, *names: str) -> None:
        for name in names:
            delete_topic(self.clusters.west, self.target(name))
        gone = {self.target(name) for name in names}
        until(lambda: not gone & topics_of(self.clusters.west), "the topics are gone")

    def make_again(self, *names: str) -> None:
        """With a record of somebody else in it, so that its offsets are not those of the stage."""
        for name in names:
            create_topic(self.clusters.west, self.target(name))
            write(self.clusters.west, self.target(name), [NewRecord(b"foreign")])

    def seen(self, name: str) -> list[str]:
        """What a consumer of the target reads; a topic that is not there has nothing."""
        records = read_topic(self.clusters.west, self.target(name))
        return values(records[0]) if records else []


@pytest.fixture
def scene(clusters: ClusterPair) -> Iterator[Scene]:
    yield Scene(clusters, f"g{uuid.uuid4().hex[:6]}-")


def flow_file(scene: Scene, directory: Path, **settings: object) -> Path:
    addresses = {"east": scene.clusters.east, "west": scene.clusters.west}
    return write_flows(directory, addresses, {FLOW: {"topics": [f"{scene.prefix}.*"], **settings}})


def broken(lake: Lake, topology: Path) -> set[str]:
    """What `status` finds wrong, except lateness: what an operator stopped lags for good."""
    alerts = read_status(now_of(lake), Connections(load_topology(topology)))["alerts"]
    return {row["alert"] for row in alerts} - {"lag", "stuck", "latency"}


def decide(lake: Lake, topology: Path, choice: str, topic: str) -> None:
    """What `mirrorlake resolve` does."""
    assert resolve(
        Deployment.opened(lake, Connections(load_topology(topology))),
        Wanted(topic=topic, kind="target_recreated"),
        choice,
    ).decided


def assert_exact(lake: Lake, scene: Scene, name: str, first: int, last: int) -> None:
    """Every source record from `first` to `last` (offsets, inclusive) is mapped once, to the same
    record in the topic that is there now, and nothing else is; translation agrees in both
    directions."""
    source = {
        record.offset: record.value
        for record in read_topic(scene.clusters.east, scene.source(name))[0]
    }
    target = {
        record.offset: record.value
        for record in read_topic(scene.clusters.west, scene.target(name))[0]
    }
    pairs = map_pairs(lake, FLOW, scene.source(name), 0)
    assert [one for one, _ in pairs] == list(range(first, last + 1)), name
    assert all(source[one] == target[other] for one, other in pairs), name
    assert [other for _, other in pairs] == [
        offset for offset, value in target.items() if value != b"foreign"
    ], name
    there = translate_all(now_of(lake), FLOW, [(scene.source(name), 0, one) for one, _ in pairs])
    found = {position[2]: (item.offset, item.exact) for position, item in there.items()}
    assert found == {one: (other, True) for one, other in pairs}, name
    back = translate_all(
        now_of(lake), FLOW, [(scene.target(name), 0, other) for _, other in pairs], reverse=True
    )
    found = {position[2]: (item.offset, item.exact) for position, item in back.items()}
    assert found == {other: (one, True) for one, other in pairs}, name


@pytest.mark.law("nothing silently", "kept by generation")
@pytest.mark.slow
def test_topics_that_were_deleted_while_nobody_ran(
    spark: SparkSession, scene: Scene, tmp_path: Path
) -> None:
    """Deleted (gone), deleted and made again (made, on, over): told, waited for, and each
    choice."""
    topology = flow_file(scene, tmp_path, emit_checkpoints_enabled=True)
    lost = ("gone", "made", "on", "over")
    scene.begin("stays", *lost)
    for name in ("stays", *lost):
        commit(scene.clusters.east, scene.prefix + name, scene.source(name), READ)
    replicate_once(spark, topology)
    scene.delete(*lost)
    scene.make_again("made", "on", "over")
    for name in ("stays", *lost):
        scene.fill(name, "b", 10)
    lake = lake_of(spark, topology)
    for _ in range(2):  # it is told once, and waited for each time
        with pytest.raises(ReplicationError, match="resolve"):
            replicate_once(spark, topology)
        assert scene.seen("stays") == texts("a", 100, 1) + texts("b", 10, 1)
        assert scene.target("gone") not in topics_of(scene.clusters.west)
        assert [scene.seen(name) for name in lost[1:]] == [["foreign"]] * 3, (
            "nothing is produced before the decision"
        )
    _told(lake, topology, scene, lost)
    decide(lake, topology, "again", scene.source("gone"))
    decide(lake, topology, "again", scene.source("made"))
    decide(lake, topology, "continue", scene.source("on"))
    decide(lake, topology, "stop", scene.source("over"))
    replicate_once(spark, topology)
    assert scene.seen("gone") == texts("a", 100, 1) + texts("b", 10, 1)
    assert scene.seen("made") == ["foreign", *texts("a", 100, 1), *texts("b", 10, 1)]
    assert scene.seen("on") == ["foreign", *texts("b", 10, 1)]
    assert scene.seen("over") == ["foreign"]
    for name, first in (("stays", 0), ("gone", 0), ("made", 0), ("on", 100)):
        assert_exact(lake, scene, name, first, 109)
    _groups(scene)
    assert not broken(lake, topology)
    scene.fill("on", "c", 5)
    replicate_once(spark, topology)
    assert scene.seen("on") == ["foreign", *texts("b", 10, 1), *texts("c", 5, 1)]
    assert_exact(lake, scene, "on", 100, 114)


def _told(lake: Lake, topology: Path, scene: Scene, lost: tuple[str, ...]) -> None:
    """While it waits: incidents with offsets, nothing is exact, and no group is moved by what was
    there."""
    found = {row["topic"]: row for row in incidents(lake)}
    assert {row["kind"] for row in found.values()} == {"target_recreated"}
    assert {name: (row["first_offset"], row["last_offset"]) for name, row in found.items()} == {
        scene.source(name): (0, 99) for name in lost
    }
    assert broken(lake, topology) == {"incident"}
    for name in lost:
        for offset in (0, READ, 100):
            there = translate(now_of(lake), FLOW, scene.source(name), 0, offset)
            assert (there.topic, there.offset, there.exact) == (scene.target(name), 0, False), name
        back = translate(now_of(lake), FLOW, scene.target(name), 0, 5, reverse=True)
        assert (back.topic, back.offset, back.exact) == (scene.source(name), 0, False), name
        assert position(scene.clusters.west, scene.prefix + name, scene.target(name)) is None, name
    assert position(scene.clusters.west, scene.prefix + "stays", scene.target("stays")) == READ
    options = MoveOptions(tuple(scene.prefix + name for name in ("stays", "made")), drain=False)
    flow = load_topology(topology).flow(FLOW)
    moved = move_groups(
        Deployment.opened(lake, Connections(load_topology(topology))), Direction(flow), options
    )
    assert [item["group"] for item in moved["groups"]] == [scene.prefix + "stays"]
    assert not moved["complete"] and any(scene.source("made") in line for line in moved["left"])


def _groups(scene: Scene) -> None:
    """Each reads on at the first record that it has not read, in the topic that is there now."""
    for name, wanted in (("stays", "a:40"), ("gone", "a:40"), ("made", "a:40"), ("on", "b:0")):
        offset = position(scene.clusters.west, scene.prefix + name, scene.target(name))
        records = read_topic(scene.clusters.west, scene.target(name))[0]
        at = next(record for record in records if offset is not None and record.offset >= offset)
        assert (at.value or b"").decode() == wanted, name
    assert position(scene.clusters.west, scene.prefix + "over", scene.target("over")) is None


@pytest.mark.slow
def test_topics_that_are_deleted_while_the_flow_runs(
    spark: SparkSession, scene: Scene, tmp_path: Path
) -> None:
    """Records come while nobody has noticed yet: none may be written twice, or be mapped to what
    was there before."""
    topology = flow_file(scene, tmp_path)
    scene.begin("stays", "gone", "made")
    with live(spark, topology, expect=True) as run:
        until(lambda: all(len(scene.seen(name)) == 100 for name in ("stays", "gone", "made")), "a")
        scene.delete("gone", "made")
        scene.make_again("made")
        for name in ("stays", "gone", "made"):
            scene.fill(name, "b", 10)
        wanted = {scene.source("gone"), scene.source("made")}
        until(lambda: {row["topic"] for row in run.incidents("target_recreated")} == wanted, "told")
        until(lambda: len(scene.seen("stays")) == 110, "the other topics go on")
        assert scene.seen("made") == ["foreign"]
        _decided_while_up(run, scene)
        until(lambda: not run.incidents(), "nothing is left open")
    assert not run.raised, run.raised
    assert_exact(run.lake, scene, "stays", 0, 119)
    assert_exact(run.lake, scene, "made", 0, 119)
    assert_exact(run.lake, scene, "gone", 100, 119)


@pytest.mark.slow
def test_a_position_that_the_target_forgot_while_rows_were_not_mapped(
    spark: SparkSession, scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flow's group is deleted: what lies behind the map's end may be the flow's own, so an
    operator says."""
    topology = flow_file(scene, tmp_path)
    scene.begin("stays", "lost")
    lake = replicate_once(spark, topology).lake
    with monkeypatch.context() as patch:
        patch.setattr(LakeMap, "append_map", lambda *_: None)
        scene.fill("lost", "b", 10)
        replicate_once(spark, topology)
    admin = AdminClient({"bootstrap.servers": scene.clusters.west})
    group = name_at_target(lake.lake_id, FLOW)
    admin.delete_consumer_groups([group])[group].result(20)
    for name in ("stays", "lost"):
        scene.fill(name, "c", 10)
    for _ in range(2):
        with pytest.raises(ReplicationError, match="resolve"):
            replicate_once(spark, topology)
    assert scene.seen("lost") == [*texts("a", 100, 1), *texts("b", 10, 1)], (
        "nothing is written twice"
    )
    assert scene.seen("stays") == [*texts("a", 100, 1), *texts("c", 10, 1)]
    assert [
        (row["kind"], row["topic"], row["partition"], row["first_offset"])
        for row in incidents(lake)
    ] == [("position_lost", scene.source("lost"), 0, 100)]
    assert broken(lake, topology) == {"incident"}
    resolve(
        Deployment.opened(lake, Connections(load_topology(topology))),
        Wanted(topic=scene.source("lost")),
        "continue",
    )
    replicate_once(spark, topology)
    # The operator was wrong, and is taken at their word.
    twice = [*texts("b", 10, 1), *texts("b", 10, 1), *texts("c", 10, 1)]
    assert scene.seen("lost") == [*texts("a", 100, 1), *twice]
    assert not broken(lake, topology)


def _decided_while_up(run: Live, scene: Scene) -> None:
    run.decide("again", topic=scene.source("made"), kind="target_recreated")
    run.decide("continue", topic=scene.source("gone"), kind="target_recreated")
    for name in ("stays", "gone", "made"):
        scene.fill(name, "c", 10)
    new = [*texts("b", 10, 1), *texts("c", 10, 1)]
    until(lambda: scene.seen("gone") == new, "gone goes on")
    until(
        lambda: scene.seen("made") == ["foreign", *texts("a", 100, 1), *new], "made gets all again"
    )
    until(lambda: scene.seen("stays") == [*texts("a", 100, 1), *new], "stays goes on")
