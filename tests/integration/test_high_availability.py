"""Two processes of one topology file stand by for each other, by consumer groups of Kafka: who
dies, stands still or is cut off is followed by the other one, and nothing is there twice
(docs/high_availability.md)."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from mirrorlake.config.topology import load_topology
from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.devtools.local.ports import free_ports
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.lake import Lake
from mirrorlake.run.workers import read_workers, works_of
from tests.support.clusters import SETTINGS, ClusterPair
from tests.support.commands import mirrorlake
from tests.support.kafka import create_topic
from tests.support.lake_rows import FLOW, now_of
from tests.support.load import Arrivals, Load, load
from tests.support.prometheus import answer
from tests.support.replication import assert_same, finish, lake_of, start_run, write_topology
from tests.support.slow_link import Link
from tests.support.topologies import ends, live
from tests.support.waiting import until

PARTITIONS = 2
#: How long after a process is gone another one may have produced nothing, seconds.
TAKE_OVER_SECONDS = 20.0
#: The same beside other tests, which take the cores that the one that takes over needs.
BUSY_SECONDS = 3 * TAKE_OVER_SECONDS
#: The same where one process is restarted after the other.
ROLLING_SECONDS = 10.0
#: The same by the newer protocol, of a process that has only just begun to stand by.
NEWER_SECONDS = 30.0
#: Settings of brokers: by the newer protocol it is theirs to say how long a session is.
SHORT_SESSIONS = {
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
}
WORK, LANDING = f"flow {FLOW}", "landing of cluster east"


def by_kafka(topology: Path, **clusters: Mapping[str, object]) -> Path:
    """Have the processes of a file stand by for each other; of clusters, more of their settings."""
    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    document["availability"] = "kafka"
    for alias, more in clusters.items():
        document["clusters"][alias].update(more)
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    return topology


class Scene:
    """A flow of one topic, its file, and its processes."""

    def __init__(
        self,
        spark: SparkSession,
        east: str,
        west: str,
        topic: str,
        folder: Path,
        *,
        clusters: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        self.east, self.west, self.topic = east, west, topic
        create_topic(east, topic, PARTITIONS)
        topology = write_topology(folder, east, west, {"topics": [topic]})
        self.topology = by_kafka(topology, **(clusters or {}))
        self._spark = spark
        self._connections = Connections(load_topology(self.topology))

    @property
    def names(self) -> dict[str, str]:
        return {self.topic: f"east.{self.topic}"}

    @property
    def lake(self) -> Lake:
        return lake_of(self._spark, self.topology)

    @property
    def produces(self) -> bool:
        return ends(self.west, [*self.names.values()]) > 0

    def pids(self, work: str = WORK) -> tuple[list[int], list[int]]:
        """The processes that do some work, and those that stand by for it."""
        flows = load_topology(self.topology).active_flows()
        rows, unchecked = read_workers(self._connections, works_of(self.lake.lake_id, flows))
        assert unchecked == []
        mine = [row for row in rows if row["work"] == work]
        return (
            [row["pid"] for row in mine if row["state"] == "works"],
            [row["pid"] for row in mine if row["state"] == "stands by"],
        )

    def log(self) -> str:
        return (self.topology.parent / "run.log").read_text(encoding="utf-8")

    def is_all_there(self, records: Load) -> None:
        """Once all that was written is mapped: it is there once, and mapped exactly."""
        lake = self.lake
        sql = f"SELECT sum(record_count) AS n FROM offset_map WHERE flow = '{FLOW}'"
        until(lambda: now_of(lake).rows(sql)[0]["n"], "all in the map", gives=records.written)
        assert_same(lake, self.east, self.west, self.names, records.written)


@pytest.fixture
def scene(spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path) -> Scene:
    return Scene(spark, clusters.east, clusters.west, topic_name, tmp_path)


@contextmanager
def run(topology: Path, *flags: str) -> Iterator["subprocess.Popen[bytes]"]:
    """`mirrorlake run` as a process of its own for the time of the block."""
    process = start_run(topology, *flags)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.wide(
    "simulation/test_two_processes.py::test_no_schedule_of_two_processes_breaks_a_law"
)
@pytest.mark.parametrize(
    "within", [pytest.param(TAKE_OVER_SECONDS, marks=pytest.mark.quiet), BUSY_SECONDS]
)
def test_a_standby_takes_over_in_time_after_a_kill(
    spark: SparkSession, scene: Scene, within: float
) -> None:
    with run(scene.topology) as active, load(scene.east, scene.topic, PARTITIONS) as records:
        until(lambda: scene.produces, "the first records")
        with live(spark, scene.topology) as standby:
            both = [active.pid], [os.getpid()]
            until(lambda: scene.pids() == scene.pids(LANDING) == both, "one stands by")
            status = mirrorlake(scene.topology, "status")
            assert {row["work"]: row["pid"] for row in status["workers"][::2]} == {
                WORK: active.pid,
                LANDING: active.pid,
            }
            assert not standby.replicator.running, "who stands by runs nothing"
            active.send_signal(signal.SIGKILL)
            seconds = until(lambda: standby.records_of(FLOW), "the first batch of the standby")
            records.stop()
            scene.is_all_there(records)
            assert scene.pids() == ([os.getpid()], [])
            assert standby.incidents() == []
    assert seconds <= within, seconds


@dataclass
class Pod:
    """A process, and the port of its probes."""

    process: "subprocess.Popen[bytes]"
    port: int


def longest_pause_of_a_restart(scene: Scene, works: Pod, other: Pod, arrivals: Arrivals) -> float:
    """End the one that works as soon as both are ready, as a rollout does; seconds."""
    both = [works.process.pid], [other.process.pid]
    until(lambda: scene.pids() == scene.pids(LANDING) == both, "one stands by")
    ready = lambda pod: answer(pod.port, "/readyz")[0] == 200  # noqa: E731
    until(lambda: ready(works) and ready(other), "both are ready")
    began = time.monotonic()
    works.process.terminate()
    assert finish(works.process, 60) == 0
    until(lambda: arrivals.times[-1] > began + ROLLING_SECONDS, "records come")
    return arrivals.longest_pause(began, time.monotonic())


@pytest.mark.quiet
def test_a_rolling_restart_leaves_less_than_ten_seconds_without_a_record(scene: Scene) -> None:
    with ExitStack() as stack:

        def started() -> Pod:
            (port,) = free_ports(1)
            serves = run(scene.topology, "--metrics", f"127.0.0.1:{port}")
            return Pod(stack.enter_context(serves), port)

        works = started()
        records = stack.enter_context(load(scene.east, scene.topic, PARTITIONS))
        until(lambda: scene.produces, "the first records")
        arrivals = Arrivals(scene.west, scene.names[scene.topic], PARTITIONS)
        until(lambda: arrivals.times, "they come")
        other, pauses = started(), []
        for _ in range(2):
            pauses.append(longest_pause_of_a_restart(scene, works, other, arrivals))
            works, other = other, started()
        arrivals.close()
        records.stop()
        scene.is_all_there(records)
    assert max(pauses) < ROLLING_SECONDS, pauses


@pytest.mark.quiet
def test_by_the_newer_protocol_a_kill_and_an_end_in_order_are_followed_as_well(
    spark: SparkSession,
    topic_name: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """KIP-848, on brokers that have sessions as short as those of the classic protocol."""
    newer = {"consumer": {"group.protocol": "consumer"}}
    with ExitStack() as stack:
        east, west = (
            stack.enter_context(
                EmbeddedCluster(alias, tmp_path / alias, properties={**SETTINGS, **SHORT_SESSIONS})
            ).bootstrap_servers
            for alias in ("east", "west")
        )
        settings = {"east": newer, "west": newer}
        scene = Scene(spark, east, west, topic_name, tmp_path, clusters=settings)
        first = stack.enter_context(run(scene.topology))
        records = stack.enter_context(load(east, topic_name, PARTITIONS))
        until(lambda: scene.produces, "the first records")
        second = stack.enter_context(run(scene.topology))
        both = [first.pid], [second.pid]
        until(lambda: scene.pids() == scene.pids(LANDING) == both, "one stands by")
        arrivals = Arrivals(west, scene.names[topic_name], PARTITIONS)
        killed = time.monotonic()
        first.send_signal(signal.SIGKILL)
        until(lambda: scene.pids() == scene.pids(LANDING) == ([second.pid], []), "the other one")
        third = stack.enter_context(run(scene.topology))
        both = [second.pid], [third.pid]
        until(lambda: scene.pids() == scene.pids(LANDING) == both, "another one stands by")
        ended = time.monotonic()
        second.terminate()
        assert finish(second, 60) == 0
        until(lambda: scene.pids() == scene.pids(LANDING) == ([third.pid], []), "that one works")
        until(lambda: arrivals.times[-1] > ended + 10, "records come")
        arrivals.close()
        records.stop()
        scene.is_all_there(records)
    pauses = [
        arrivals.longest_pause(killed, ended),
        arrivals.longest_pause(ended, arrivals.times[-1]),
    ]
    record_property("seconds without a record", pauses)
    assert pauses[0] <= NEWER_SECONDS and pauses[1] <= TAKE_OVER_SECONDS, pauses


@pytest.mark.quiet
def test_who_stood_still_for_a_minute_writes_nothing_and_stands_by(
    spark: SparkSession, scene: Scene
) -> None:
    with run(scene.topology) as first, load(scene.east, scene.topic, PARTITIONS) as records:
        until(lambda: scene.produces, "the first records")
        with live(spark, scene.topology) as second:
            until(lambda: scene.pids() == ([first.pid], [os.getpid()]), "one stands by")
            first.send_signal(signal.SIGSTOP)
            stopped = time.monotonic()
            assert until(lambda: second.records_of(FLOW), "the standby") <= TAKE_OVER_SECONDS
            until(lambda: time.monotonic() - stopped > 60, "a minute")
            first.send_signal(signal.SIGCONT)
            until(lambda: scene.pids() == ([os.getpid()], [first.pid]), "it stands by again")
            until(lambda: scene.pids(LANDING) == ([os.getpid()], [first.pid]), "landing too")
            before = second.records_of(FLOW)
            until(lambda: second.records_of(FLOW) > before + 200, "the other one goes on")
            records.stop()
            scene.is_all_there(records)
            assert second.incidents() == []
            assert "another process has taken over" in scene.log()
            assert first.poll() is None
            first.terminate()
            assert finish(first, 60) == 0


@contextmanager
def two_doors(folder: Path) -> Iterator[tuple[str, Link]]:
    """A cluster with a door that nothing is wrong with, and one behind a link."""
    ports = free_ports(2)
    link = Link(ports[1])
    properties = {
        **SETTINGS,
        "listeners": f"OPEN://127.0.0.1:{ports[0]},LINKED://127.0.0.1:{ports[1]}",
        "advertised.listeners": f"OPEN://127.0.0.1:{ports[0]},LINKED://{link.address}",
        "listener.security.protocol.map": "OPEN:PLAINTEXT,LINKED:PLAINTEXT",
    }
    try:
        with EmbeddedCluster("doors", folder, properties=properties) as cluster:
            yield cluster.bootstrap_servers.split(",")[0], link
    finally:
        link.close()


@pytest.mark.quiet
@pytest.mark.parametrize("cut", ["east", "west"])
def test_who_is_cut_off_from_one_cluster_leaves_what_is_there_to_the_other(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    cut: str,
    record_property: Callable[[str, object], None],
) -> None:
    """Only what needs that cluster: the other half stays where it is."""
    with two_doors(tmp_path / "doors") as (door, link), ExitStack() as stack:
        sides = {"east": clusters.east, "west": clusters.west, cut: door}
        scene = Scene(spark, sides["east"], sides["west"], topic_name, tmp_path)
        linked = tmp_path / "linked.yml"
        linked.write_text(scene.topology.read_text(encoding="utf-8"), encoding="utf-8")
        by_kafka(linked, **{cut: {"bootstrap_servers": link.address}})
        first = stack.enter_context(run(linked))
        records = stack.enter_context(load(scene.east, scene.topic, PARTITIONS))
        until(lambda: scene.produces, "the first records")
        stack.enter_context(live(spark, scene.topology))
        until(lambda: scene.pids() == scene.pids(LANDING) == ([first.pid], [os.getpid()]), "both")
        left, kept = (LANDING, WORK) if cut == "east" else (WORK, LANDING)
        arrivals = Arrivals(scene.west, scene.names[scene.topic], PARTITIONS)
        began = time.monotonic()
        link.close()
        until(lambda: scene.pids(left)[0] == [os.getpid()], "the other one does it")
        assert scene.pids(kept)[0] == [first.pid]
        until(lambda: time.monotonic() - began > 45, "it goes on so")
        pause = arrivals.longest_pause(began, time.monotonic())
        arrivals.close()
        records.stop()
        scene.is_all_there(records)
        record_property("seconds without a record", pause)
        assert pause <= TAKE_OVER_SECONDS, pause


@pytest.mark.quiet
def test_two_processes_share_the_flows_of_a_file_and_a_third_stands_by_for_both(
    spark: SparkSession, scene: Scene
) -> None:
    back = "west->east"
    document = yaml.safe_load(scene.topology.read_text(encoding="utf-8"))
    document["flows"][back] = {**document["flows"][FLOW], "topics": [f"{scene.topic}-back"]}
    scene.topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    create_topic(scene.west, f"{scene.topic}-back", PARTITIONS)
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(run(scene.topology, "--flow", name)) for name in (FLOW, back)
        )
        records = stack.enter_context(load(scene.east, scene.topic, PARTITIONS))
        stack.enter_context(load(scene.west, f"{scene.topic}-back", PARTITIONS))
        mirrors = [(scene.west, f"east.{scene.topic}"), (scene.east, f"west.{scene.topic}-back")]
        until(lambda: all(ends(side, [name]) for side, name in mirrors), "both flows")
        third = stack.enter_context(live(spark, scene.topology))
        until(lambda: scene.pids() == ([one.pid], [os.getpid()]), "the third one stands by")
        both = ([other.pid], [os.getpid()])
        until(lambda: scene.pids(f"flow {back}"), "and for the other flow", gives=both)
        one.kill()
        seconds = until(lambda: third.records_of(FLOW), "the first batch of the third one")
        assert scene.pids(f"flow {back}") == ([other.pid], [os.getpid()])
        assert scene.pids("landing of cluster west") == ([other.pid], [os.getpid()])
        assert not third.records_of(back)
        records.stop()
        scene.is_all_there(records)
    assert seconds <= TAKE_OVER_SECONDS, seconds


@pytest.mark.slow
def test_one_that_only_stands_by_works_once_another_process_has(scene: Scene) -> None:
    with ExitStack() as stack:
        standby = stack.enter_context(run(scene.topology, "--standby"))
        records = stack.enter_context(load(scene.east, scene.topic, PARTITIONS))
        until(lambda: "waits until another process works" in scene.log(), "it waits")
        first = stack.enter_context(run(scene.topology))
        until(lambda: scene.pids() == ([first.pid], [standby.pid]), "it stands by")
        first.terminate()
        assert finish(first, 60) == 0
        until(lambda: scene.pids() == ([standby.pid], []), "it works")
        records.stop()
        scene.is_all_there(records)


def test_a_standby_that_only_stands_by_needs_availability_by_kafka(
    clusters: ClusterPair, tmp_path: Path
) -> None:
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": ["t"]})
    assert mirrorlake(topology, "run", "--standby", code=2) is None
