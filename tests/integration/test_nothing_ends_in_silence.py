"""Whatever breaks in a thread of a run, at any step: it is reported, tried again, and never taken
for a good end."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import KafkaError, KafkaException
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.errors import MirrorlakeError, ReplicationError
from mirrorlake.lake.changes import WHOLE_LAKE
from mirrorlake.landing.plan import LandingPlanner
from mirrorlake.landing.sinks import PathSink
from mirrorlake.landing.worker import LandingWorker
from mirrorlake.produce.flow import FlowProducer
from mirrorlake.produce.map_writer import MapWriter
from mirrorlake.produce.shard_writing import ShardWriting
from mirrorlake.run import control_loop, flow_worker, group_lease
from mirrorlake.run.edits import TopologyWatch
from mirrorlake.run.group_member import GroupMember
from mirrorlake.run.upkeep import UpkeepWorker
from mirrorlake.worker import Worker
from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake as command
from tests.support.kafka import create_topic, read_topic, record_count
from tests.support.replication import finish, replicate_once, start_run, write_topology
from tests.support.topologies import fill, incidents, live, texts, values
from tests.support.waiting import until


class Mute(Exception):
    """One whose text is no text."""

    def __str__(self) -> str:
        return None  # type: ignore[return-value]


class Panic(BaseException):
    """As a library in Rust raises it."""


#: Steps of a run by the thread that takes them, and what each can end with.
STEPS: dict[str, tuple[object, str, BaseException]] = {
    "landing: plan": (LandingPlanner, "plan", AssertionError()),
    "landing: start": (LandingWorker, "_land", OSError(28, "No space left on device")),
    "landing: watch": (LandingWorker, "_watch", Mute()),
    "landing: compare": (LandingPlanner, "differs", Panic()),
    "landing: batch": (PathSink, "land", Panic()),
    "flow: make topics": (flow_worker.TargetTopics, "refresh", IndexError()),
    "flow: begin": (FlowProducer, "floors", Panic("a thread of Rust's")),
    "flow: batch": (FlowProducer, "_produce", OSError(28, "No space left on device")),
    "flow: task": (ShardWriting, "write", Mute()),
    "flow: map": (MapWriter, "_append", Mute()),
}
#: Those of which only a continuous run has some.
LASTING: dict[str, tuple[object, str, BaseException]] = {
    "control: turn": (control_loop.ControlLoop, "_turn", AssertionError()),
    "upkeep: turn": (UpkeepWorker, "look_over", Mute()),
    "main: edits": (TopologyWatch, "edited", AssertionError()),
}


@dataclass
class Broken:
    """Steps that break: `left` says how often yet, `met` how often they did."""

    left: dict[str, int] = field(default_factory=dict)
    met: dict[str, int] = field(default_factory=dict)

    def over(self, name: str) -> bool:
        """Whether a step has broken as often as it is to."""
        return not self.left[name]

    def step(self, name: str, real: Callable[..., Any], error: BaseException) -> Callable[..., Any]:
        """A step that breaks while it is to."""

        def call(*args: Any, **words: Any) -> Any:
            if self.left.get(name, 0) > 0:
                self.left[name] -= 1
                self.met[name] = self.met.get(name, 0) + 1
                raise error
            return real(*args, **words)

        return call


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broken]:
    """What breaks in this process; workers pause for a moment only."""
    made, init = Broken(), Worker.__init__

    def impatient(self: Worker, *args: Any, **words: Any) -> None:
        init(self, *args, **words)
        self._retry = replace(self._retry, pauses=(0.05,))

    monkeypatch.setattr(Worker, "__init__", impatient)
    monkeypatch.setattr("mirrorlake.landing.worker.COMPARE_SECONDS", 0.2)
    monkeypatch.setattr("mirrorlake.run.upkeep.TURN_SECONDS", 0.2)
    monkeypatch.setattr("mirrorlake.run.replicator.WATCH_SECONDS", 0.2)
    for name, (owner, attribute, error) in {**STEPS, **LASTING}.items():
        monkeypatch.setattr(owner, attribute, made.step(name, getattr(owner, attribute), error))
    yield made


def arrived(bootstrap: str, topic: str, count: int) -> bool:
    """Whether a topic has so many records; it may not be there yet."""
    return record_count(bootstrap, topic) >= count


@pytest.mark.wide("test_a_worker_that_is_broken_when_the_run_is_stopped_is_what_the_run_ends_with")
def test_what_breaks_is_tried_again_until_it_goes(
    broken: Broken, spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """Each step breaks five times while records come: all arrive, in order, and what was told of it
    is closed."""
    create_topic(clusters.east, topic_name)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    fill(clusters.east, topic_name, "first", 10, 1)
    wanted = texts("first", 10, 1)
    with live(spark, topology, watch=True) as run:
        until(partial(arrived, clusters.west, f"east.{topic_name}", len(wanted)), "it runs")
        for number, name in enumerate((*STEPS, *LASTING)):
            broken.left[name] = 5
            if name.startswith(
                ("flow: begin", "flow: make", "landing: start", "landing: plan", "landing: watch")
            ):
                # these are steps of a beginning
                run.replicator._landings.workers["east"]._changed.set()
                run.replicator._here.running["east->west"].worker._again.set()
            fill(clusters.east, topic_name, f"{number}", 10, 1)
            wanted += texts(f"{number}", 10, 1)
            until(partial(broken.over, name), f"{name} breaks as often as it is to")
            until(
                partial(arrived, clusters.west, f"east.{topic_name}", len(wanted)),
                f"records arrive behind {name}",
            )
        until(lambda: not incidents(run.lake), "what was told is closed")
    assert values(read_topic(clusters.west, f"east.{topic_name}")[0]) == wanted
    assert broken.met == dict.fromkeys((*STEPS, *LASTING), 5)


@pytest.mark.wide("test_a_worker_that_is_broken_when_the_run_is_stopped_is_what_the_run_ends_with")
def test_what_goes_on_breaking_is_told_and_lets_no_run_end_well(
    broken: Broken, spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """For each step: a run with an end ends with an error, an incident is open, and `status` is not
    healthy; and once the step goes again, all is well."""
    create_topic(clusters.east, topic_name)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    wanted: list[str] = []
    for name in STEPS:
        if name == "landing: compare":
            continue  # a run with an end compares once, when it plans
        fill(clusters.east, topic_name, name, 10, 1)
        wanted += texts(name, 10, 1)
        broken.left[name] = 1_000
        with pytest.raises(MirrorlakeError):
            replicate_once(spark, topology)
        status = mirrorlake.open(topology).status()
        assert not status.healthy and status.incidents, name
        broken.left[name] = 0
        run = replicate_once(spark, topology)
        assert not incidents(run.lake), name
        assert values(read_topic(clusters.west, f"east.{topic_name}")[0]) == wanted, name


@pytest.mark.parametrize(
    "name",
    [
        "flow: batch",
        *(
            pytest.param(
                name,
                marks=pytest.mark.wide(
                    "test_a_worker_that_is_broken_when_the_run_is_stopped_is_what_the_run_ends_with"
                ),
            )
            for name in ("landing: watch", "upkeep: turn", "control: turn")
        ),
    ],
)
def test_a_worker_that_is_broken_when_the_run_is_stopped_is_what_the_run_ends_with(
    name: str,
    broken: Broken,
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
) -> None:
    create_topic(clusters.east, topic_name)
    fill(clusters.east, topic_name, "a", 10, 1)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    with live(spark, topology, expect=True) as run:
        broken.left[name] = 1_000_000
        until(lambda: incidents(run.lake), "it is told")
        told = incidents(run.lake)
        status = mirrorlake.open(topology).status()
        assert not status.healthy
    assert {row["flow"] for row in told} == {
        WHOLE_LAKE if name.startswith("upkeep") else "east->west"
    }
    assert len(run.raised) == 1 and isinstance(run.raised[0], MirrorlakeError)


@pytest.mark.wide("test_a_worker_that_is_broken_when_the_run_is_stopped_is_what_the_run_ends_with")
def test_a_process_that_could_not_stand_by_does_not_end_well(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The threads that keep it a member of its groups are workers as the others are."""

    def refused(_self: GroupMember) -> None:
        raise KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))

    monkeypatch.setattr(GroupMember, "poll", refused)
    monkeypatch.setattr(group_lease, "PAUSES", (0.05,))
    create_topic(clusters.east, topic_name)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    with topology.open("a", encoding="utf-8") as file:
        file.write("availability: kafka\n")
    with live(spark, topology, expect=True) as run:
        until(lambda: incidents(run.lake), "it is told")
        assert {row["kind"] for row in incidents(run.lake)} == {"not_a_member"}
        assert not mirrorlake.open(topology).status().healthy
    assert [type(error) for error in run.raised] == [ReplicationError]


@pytest.mark.wide(
    "unit/run/test_killed_runs.py::test_one_that_was_killed_needs_attention_until_the_next_one"
)
def test_a_process_that_was_killed_is_told_until_another_one_came_to_its_end(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """Its last sample is some seconds old, and says that it has caught up."""
    create_topic(clusters.east, topic_name)
    fill(clusters.east, topic_name, "a", 10, 1)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    run = start_run(topology)
    until(partial(arrived, clusters.west, f"east.{topic_name}", 10), "it runs")
    until(lambda: command(topology, "status")["healthy"], "it is well", 30)
    run.kill()
    run.wait()
    fill(clusters.east, topic_name, "b", 10, 1)
    status = command(topology, "status", code=1)
    assert not status["healthy"] and "was killed before it came to its end" in " ".join(
        status["attention"]
    )
    command(topology, "run", "--once")
    assert command(topology, "status")["healthy"]
    assert values(read_topic(clusters.west, f"east.{topic_name}")[0]) == texts("a", 10, 1) + texts(
        "b", 10, 1
    )


@pytest.mark.slow
def test_a_session_that_dies_ends_the_run_which_says_so(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """No other JVM can be had in that process: who started it starts it again."""
    create_topic(clusters.east, topic_name)
    fill(clusters.east, topic_name, "a", 10, 1)
    flow, by_spark = {"topics": [topic_name]}, {"small_batch_records": 0}
    topology = write_topology(tmp_path, clusters.east, clusters.west, flow, by_spark)
    run = start_run(topology)
    until(partial(arrived, clusters.west, f"east.{topic_name}", 10), "it runs")
    (jvm,) = [
        child
        for child in psutil.Process(run.pid).children(recursive=True)
        if child.name() == "java"
    ]
    jvm.kill()
    fill(clusters.east, topic_name, "b", 10, 1)
    assert finish(run, 60) == 1
    assert "the JVM of this process's Spark session is gone" in (tmp_path / "run.log").read_text(
        encoding="utf-8"
    )
    assert not mirrorlake.open(topology).status().healthy
    assert finish(start_run(topology, "--once")) == 0
    assert mirrorlake.open(topology).status().healthy
    assert values(read_topic(clusters.west, f"east.{topic_name}")[0]) == texts("a", 10, 1) + texts(
        "b", 10, 1
    )
