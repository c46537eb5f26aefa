"""What holds up one flow holds up no other: dead clusters, refused records, and processes that want
the same."""

import os
import signal
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.errors import TargetRefused
from tests.support.clusters import ClusterPair
from tests.support.control import set_configs
from tests.support.kafka import NewRecord, create_topic, delete_topic, numbered, read_topic, write
from tests.support.replication import (
    FLOW,
    assert_same,
    finish,
    lake_of,
    replicate_once,
    start_run,
    write_topology,
)
from tests.support.topologies import (
    Live,
    assert_mapped,
    ends,
    fill,
    incidents,
    live,
    staged_count,
    texts,
    values,
    write_flows,
)
from tests.support.waiting import until

pytestmark = pytest.mark.slow

#: How long a flow may stand still while the target of another one has just died, seconds.
HELD_UP_SECONDS = 60.0


@dataclass
class Three:
    """East is mirrored to west and north, and north to west."""

    clusters: ClusterPair
    north: EmbeddedCluster
    topic: str
    topology: Path

    def arrived(self, flow: str) -> int:
        source, _, target = flow.partition("->")
        address = self.clusters.west if target == "west" else self.north.bootstrap_servers
        return ends(address, [f"{source}.{self.topic}"])

    def records(self, target: str) -> list[list[str]]:
        address = self.clusters.west if target == "west" else self.north.bootstrap_servers
        return [values(records) for records in read_topic(address, f"east.{self.topic}")]


@pytest.fixture(scope="module")
def north(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("north", tmp_path_factory.mktemp("north")) as cluster:
        yield cluster


@pytest.fixture
def three(clusters: ClusterPair, north: EmbeddedCluster, tmp_path: Path) -> Three:
    topic = f"o{uuid.uuid4().hex[:6]}"
    create_topic(clusters.east, topic, 2)
    create_topic(north.bootstrap_servers, topic, 2)
    fill(clusters.east, topic, "east", 100)
    fill(north.bootstrap_servers, topic, "north", 100)
    addresses = {"east": clusters.east, "west": clusters.west, "north": north.bootstrap_servers}
    flows = dict.fromkeys(("east->west", "east->north", "north->west"), {"topics": [topic]})
    return Three(clusters, north, topic, write_flows(tmp_path, addresses, flows))


def test_two_processes_share_the_work_and_never_do_the_same(
    spark: SparkSession, three: Three
) -> None:
    """One runs east->west, another east->north from the same stage; a third that wants east->west
    is told why not."""
    count = 100
    with live(spark, three.topology, chosen=["east->west"]) as run:
        until(lambda: three.arrived("east->west") >= count, "the first process produces")
        other = start_run(three.topology, "--flow", "east->north")
        third = start_run(three.topology, "--flow", "east->west")
        try:
            assert finish(third) == 1
            log = (three.topology.parent / "run.log").read_text(encoding="utf-8")
            assert f"flow east->west is held by process {os.getpid()} on " in log, log
            assert "Traceback" not in log, log
            until(lambda: three.arrived("east->north") >= count, "the second process produces")
            fill(three.clusters.east, three.topic, "east", 100, start=count)
            count += 100
            until(lambda: three.arrived("east->north") >= count, "it follows the other's landing")
            until(lambda: three.arrived("east->west") >= count, "so does the first")
            assert not run.incidents()
            # The one that landed ends: the other takes over.
            run.replicator.stop()
            fill(three.clusters.east, three.topic, "east", 100, start=count)
            count += 100
            until(lambda: three.arrived("east->north") >= count, "the second process lands")
            other.send_signal(signal.SIGTERM)
            assert other.wait(60) == 0
        finally:
            finish(other, 1) if other.poll() is None else None
    assert staged_count(run.lake, three.topic) == (count, count)
    assert three.records("north") == [texts("east", count, partition=n) for n in (0, 1)]


def test_a_dead_cluster_holds_up_nobody_else(spark: SparkSession, three: Three) -> None:
    """North dies in the middle of the work: east->west goes on, and what waited for north arrives
    later, once."""
    flows = ("east->west", "east->north", "north->west")
    count = 100
    with live(spark, three.topology) as run:
        until(lambda: all(three.arrived(flow) >= count for flow in flows), "all flows work")
        fill(three.clusters.east, three.topic, "east", 1_000, start=count)
        three.north.kill()
        count += 1_000
        waited = []
        for _ in range(4):
            fill(three.clusters.east, three.topic, "east", 100, start=count)
            count += 100
            seconds = until(
                lambda wanted=count: three.arrived("east->west") >= wanted, "east->west goes on"
            )
            waited.append(seconds)
        assert max(waited) < HELD_UP_SECONDS, waited
        assert max(waited[1:]) < HELD_UP_SECONDS / 2, waited
        until(lambda: _unreachable(run) == {"east->north"}, "told of the target", 180)
        three.north.start_broker()
        fill(three.north.bootstrap_servers, three.topic, "north", 100, start=100)
        until(lambda: three.arrived("east->north") >= count, "east->north again", 120)
        until(lambda: three.arrived("north->west") >= 200, "north->west again", 120)
        until(lambda: not run.incidents(), "nothing is left open")
    for target in ("west", "north"):
        assert three.records(target) == [texts("east", count, partition=n) for n in (0, 1)]
    back = read_topic(three.clusters.west, f"north.{three.topic}")
    assert [values(records) for records in back] == [
        texts("north", 200, partition=n) for n in (0, 1)
    ]
    source = read_topic(three.clusters.east, three.topic)
    there = read_topic(three.north.bootstrap_servers, f"east.{three.topic}")
    assert assert_mapped(run.lake, "east->north", source, three.topic, there) == count


def _unreachable(run: Live) -> set[str]:
    return {
        row["flow"]
        for row in run.incidents()
        if row["kind"] in ("cluster_unreachable", "flow_waits")
    }


def test_a_refused_record_stops_its_partition_alone(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    remote = f"east.{topic_name}"
    create_topic(clusters.east, topic_name, 2)
    create_topic(clusters.west, remote, 2, max_message_bytes="5000")
    write(clusters.east, topic_name, numbered(100, 2))
    write(clusters.east, topic_name, [NewRecord(os.urandom(20_000))])  # offset 50 of partition 0
    write(clusters.east, topic_name, numbered(100, 2, 100))
    flow = {"topics": [topic_name], "sync_topic_configs_enabled": False}
    topology = write_topology(tmp_path, clusters.east, clusters.west, flow)
    for _ in range(2):  # the second run tries again, and tells no second incident
        with pytest.raises(TargetRefused):
            replicate_once(spark, topology)
        assert [len(records) for records in read_topic(clusters.west, remote)] == [50, 100]
    with live(spark, topology, expect=True) as run:
        until(lambda: run.raised or run.replicator.running, "it has started")
        write(clusters.east, topic_name, numbered(20, 2, 200))
        until(
            lambda: len(read_topic(clusters.west, remote)[1]) == 110, "the other partition goes on"
        )
        assert len(read_topic(clusters.west, remote)[0]) == 50
        open_now = incidents(run.lake)
        assert [(row["flow"], row["kind"], row["topic"], row["partition"]) for row in open_now] == [
            (FLOW, "target_refused", topic_name, 0)
        ]
        assert (open_now[0]["first_offset"], open_now[0]["last_offset"]) == (50, 50)
    set_configs(clusters.west, remote, {"max.message.bytes": "100000"})
    write(clusters.east, topic_name, numbered(20, 2, 220))
    again = replicate_once(spark, topology)
    assert_same(again.lake, clusters.east, clusters.west, {topic_name: remote}, 241)
    assert not incidents(again.lake)


def test_a_topic_that_the_target_will_not_make_stops_no_other(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """Kafka refuses a name that differs from another one by `.` and `_` only."""
    odd, good = f"{topic_name}.odd", f"{topic_name}.good"
    for topic in (odd, good):
        create_topic(clusters.east, topic, 2)
        write(clusters.east, topic, numbered(100, 2))
    create_topic(clusters.west, f"east.{topic_name}_odd", 1)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [odd, good]})
    with pytest.raises(TargetRefused, match="collides"):
        replicate_once(spark, topology)
    run = lake_of(spark, topology)
    assert_same(run, clusters.east, clusters.west, {good: f"east.{good}"}, 100)
    assert [(row["kind"], row["topic"]) for row in incidents(run)] == [("topic_refused", odd)]
    delete_topic(clusters.west, f"east.{topic_name}_odd")
    again = replicate_once(spark, topology)
    assert_same(
        again.lake,
        clusters.east,
        clusters.west,
        {name: f"east.{name}" for name in (odd, good)},
        200,
    )
    assert not incidents(again.lake)
