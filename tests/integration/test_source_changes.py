"""Sources that change under a replicator: partitions, topics, lost records; found, told, decided,
and gone on with."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql import SparkSession

from mirrorlake.config.lake import Lake as Location
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.translate import translate
from mirrorlake.landing.generations import begin_generations, decisions_of
from mirrorlake.landing.source_comparison import TopicGeneration, accepted_starts, blocked
from tests.support.clusters import ClusterPair
from tests.support.kafka import (
    create_topic,
    delete_topic,
    partition_count,
    read_topic,
    topics_of,
    truncate,
)
from tests.support.lake_rows import now_of
from tests.support.lanes import BOTH_LANES
from tests.support.replication import FLOW
from tests.support.topologies import (
    Live,
    assert_mapped,
    ends,
    fill,
    incidents,
    live,
    map_pairs,
    staged_count,
    texts,
    values,
    write_flows,
)
from tests.support.waiting import until

pytestmark = [pytest.mark.slow, *BOTH_LANES]

FOUND_SECONDS = 30.0


@dataclass
class Scene:
    """The two clusters and a family of topics on them."""

    clusters: ClusterPair
    prefix: str

    def source(self, name: str) -> str:
        return self.prefix + name

    def target(self, name: str) -> str:
        return f"east.{self.prefix}{name}"

    def fill(self, name: str, tag: str, count: int, partitions: int = 2, start: int = 0) -> None:
        fill(self.clusters.east, self.source(name), tag, count, partitions, start)

    def create(self, name: str, partitions: int = 2) -> None:
        create_topic(self.clusters.east, self.source(name), partitions)

    def delete(self, name: str) -> None:
        delete_topic(self.clusters.east, self.source(name))
        until(lambda: self.source(name) not in topics_of(self.clusters.east), "the topic is gone")

    def truncate(self, name: str, offset: int) -> None:
        """What retention does: everything of partition 0 below an offset is gone."""
        truncate(self.clusters.east, self.source(name), offset)

    def arrived(self, name: str) -> int:
        """Records and markers on the target."""
        return ends(self.clusters.west, [self.target(name)])

    def seen(self, name: str, partition: int = 0) -> list[str]:
        return values(read_topic(self.clusters.west, self.target(name))[partition])

    def goes_on(self, name: str, tag: str, count: int) -> None:
        """A bystander that nothing may hold up: what is written now arrives soon."""
        before = self.arrived(name)
        self.fill(name, tag, count)
        until(lambda: self.arrived(name) >= before + count, f"{name} goes on")

    def wait_for(self, name: str, value: str, partition: int = 0) -> None:
        until(lambda: value in self.seen(name, partition), f"{value} in {name}")


@pytest.fixture
def scene(clusters: ClusterPair) -> Iterator[Scene]:
    yield Scene(clusters, f"s{uuid.uuid4().hex[:6]}-")


def flow_file(scene: Scene, directory: Path) -> Path:
    addresses = {"east": scene.clusters.east, "west": scene.clusters.west}
    return write_flows(directory, addresses, {FLOW: {"topics": [f"{scene.prefix}.*"]}})


def told(run: Live, kind: str) -> dict[tuple[str, int | None], tuple[int | None, int | None]]:
    """Open incidents of a kind: place -> offsets."""
    return {
        (row["topic"], row["partition"]): (row["first_offset"], row["last_offset"])
        for row in incidents(run.lake, kind)
    }


@pytest.mark.law("nothing silently", "kept by generation")
def test_topics_that_grow_come_go_and_come_again(
    spark: SparkSession, scene: Scene, tmp_path: Path
) -> None:
    """While up: a partition more, a new topic, a deleted one, one deleted and made again; while
    down: one made again, one truncated. The bystander never waits."""
    topology = flow_file(scene, tmp_path)
    for name in ("stays", "grows", "goes", "again", "down", "cut"):
        scene.create(name)
        scene.fill(name, "a", 100)
    with live(spark, topology) as run:
        until(
            lambda: all(
                scene.arrived(name) >= 100
                for name in ("stays", "grows", "goes", "again", "down", "cut")
            ),
            "a",
        )
        _grown(scene)
        _new(scene)
        _gone(run, scene)
        _made_again_while_up(run, scene)
        assert not run.incidents(), run.incidents()
    scene.delete("down")
    scene.create("down")
    scene.fill("down", "b", 60)
    scene.fill("cut", "b", 100)
    scene.truncate("cut", 80)  # partition 0 was landed up to 50
    with live(spark, topology) as run:
        _made_again_while_down(run, scene)
        _overtaken(run, scene)
        until(lambda: not run.incidents(), "nothing is left open")
    _translated(run, scene)
    for name in ("stays", "grows", "new", "goes", "again", "down", "cut"):
        rows, records = staged_count(run.lake, scene.source(name))
        assert rows == records > 0, name


def _grown(scene: Scene) -> None:
    name = scene.source("grows")
    admin = AdminClient({"bootstrap.servers": scene.clusters.east})
    admin.create_partitions([NewPartitions(name, 4)])[name].result(20)
    until(lambda: partition_count(scene.clusters.east, name) == 4, "grown at the source")
    scene.fill("grows", "b", 100, partitions=4)
    seconds = until(
        lambda: partition_count(scene.clusters.west, scene.target("grows")) == 4,
        "grown at the target",
    )
    assert seconds < FOUND_SECONDS
    until(lambda: scene.arrived("grows") >= 200, "records of new partitions")
    assert scene.seen("grows", 3) == texts("b", 100, 4, 3)
    assert scene.seen("grows", 0) == texts("a", 100) + texts("b", 100, 4, 0)


def _new(scene: Scene) -> None:
    scene.create("new", 3)
    scene.fill("new", "a", 90, 3)
    assert until(lambda: scene.arrived("new") >= 90, "a new topic") < FOUND_SECONDS
    assert partition_count(scene.clusters.west, scene.target("new")) == 3


def _gone(run: Live, scene: Scene) -> None:
    scene.delete("goes")
    scene.goes_on("stays", "b", 100)
    goes = scene.source("goes")
    until(
        lambda: (
            [
                row["resource"] for row in run.lake.ask_table("changes") if row["outcome"] == "gone"
            ].count(goes)
            == 1
        ),
        "noted in changes",
    )
    assert scene.seen("goes") == texts("a", 100)
    until(lambda: not run.incidents(), "a deleted topic is no incident")


def _made_again_while_up(run: Live, scene: Scene) -> None:
    again = scene.source("again")
    scene.delete("again")
    scene.create("again")
    scene.fill("again", "b", 40)
    until(lambda: (again, None) in told(run, "topic_recreated"), "made again: told")
    scene.goes_on("stays", "c", 100)
    assert scene.seen("again") == texts("a", 100), "nothing is produced before the decision"
    run.decide("new-generation", topic=again)
    scene.wait_for("again", "b:38")
    scene.wait_for("again", "b:39", 1)
    scene.fill("again", "b", 60, start=40)
    scene.wait_for("again", "b:98")
    assert scene.seen("again") == texts("a", 100) + texts("b", 100)
    until(lambda: not run.incidents(), "decided")


def _made_again_while_down(run: Live, scene: Scene) -> None:
    down, cut = scene.source("down"), scene.source("cut")
    until(lambda: (down, None) in told(run, "topic_recreated"), "made again while down: told")
    until(lambda: (cut, 0) in told(run, "source_truncated"), "truncated: told")
    assert told(run, "source_truncated") == {(cut, 0): (50, 79)}
    assert told(run, "topic_recreated") == {(down, None): (None, None)}
    scene.goes_on("stays", "d", 100)
    # A topic that had a previous generation goes on where it was after a restart.
    scene.goes_on("again", "c", 20)
    assert scene.seen("again") == texts("a", 100) + texts("b", 100) + texts("c", 20)
    run.decide("new-generation", topic=down)
    scene.wait_for("down", "b:58")
    assert scene.seen("down") == texts("a", 100) + texts("b", 60)


def _overtaken(run: Live, scene: Scene) -> None:
    assert scene.seen("cut") == texts("a", 100)
    run.decide("continue", topic=scene.source("cut"))
    scene.wait_for("cut", "b:98")
    lost = texts("b", 100)[:30]  # offsets 50 to 79 of partition 0
    assert scene.seen("cut") == texts("a", 100) + [
        value for value in texts("b", 100) if value not in lost
    ]
    assert scene.seen("cut", 1) == texts("a", 100, partition=1) + texts("b", 100, partition=1)


def _translated(run: Live, scene: Scene) -> None:
    """Of a topic with two generations: positions of the newest one, and the target's whole
    history."""
    again, mirror = scene.source("again"), scene.target("again")
    source, target = (
        read_topic(scene.clusters.east, again)[0],
        read_topic(scene.clusters.west, mirror)[0],
    )
    assert map_pairs(run.lake, FLOW, again, 0, 1) == [
        (record.offset, other.offset) for record, other in zip(source, target[50:], strict=True)
    ]
    for index in (0, 7, len(source) - 1):
        there = translate(now_of(run.lake), FLOW, again, 0, source[index].offset)
        assert (there.offset, there.exact) == (target[50 + index].offset, True)
        back = translate(now_of(run.lake), FLOW, mirror, 0, there.offset, reverse=True)
        assert (back.offset, back.exact) == (source[index].offset, True)
    previous = translate(now_of(run.lake), FLOW, mirror, 0, target[3].offset, reverse=True)
    assert previous.offset == 3
    assert (
        assert_mapped(
            run.lake,
            FLOW,
            read_topic(scene.clusters.east, scene.source("stays")),
            scene.source("stays"),
            read_topic(scene.clusters.west, scene.target("stays")),
        )
        == 400
    )


def test_a_loss_accepted_for_a_previous_generation_is_nothing_to_the_newer_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = open_lake(spark, Location(path="lake"), tmp_path)
    now = datetime.now(timezone.utc)

    def accepted(at: datetime, last: int) -> None:
        row = {
            "flow": FLOW,
            "at": at,
            "kind": "source_truncated",
            "topic": "t",
            "partition": 0,
            "first_offset": 0,
            "last_offset": last,
            "resolved_at": at,
            "resolution": "continue",
        }
        lake.append("incidents", pa.Table.from_pylist([row], schema=_INCIDENT))

    accepted(now - timedelta(hours=1), 999)
    assert accepted_starts(decisions_of(lake, "east")) == {("t", 0): 1_000}
    begin_generations(lake, "east", {"t": TopicGeneration(1, "new")})
    assert accepted_starts(decisions_of(lake, "east")) == {}
    accepted(now + timedelta(hours=1), 9)
    assert accepted_starts(decisions_of(lake, "east")) == {("t", 0): 10}
    assert not any(blocked(decisions_of(lake, "east")))


_TIME = pa.timestamp("us", tz="UTC")
_INCIDENT = pa.schema(
    [
        ("flow", pa.string()),
        ("at", _TIME),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
    ]
    + [
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("resolved_at", _TIME),
        ("resolution", pa.string()),
    ]
)
