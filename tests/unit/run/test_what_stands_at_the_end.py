"""What a flow ends with while partitions wait: what was decided too late for it to go by is not
done, and what others wait for is not over with it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.control import denied_topics, topic_sync
from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.errors import InputError, TargetRefused, TopicRefused
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.targets import LivingMirror
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.run.flow_worker import FlowWorker
from mirrorlake.run.resolve import Resolution, Wanted, resolve
from mirrorlake.run.snapshot import Snapshot
from mirrorlake.run.stopped_partitions import StoppedPartitions
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, no_session, opened, write_file

FIRST, SECOND = ("orders", 0), ("orders", 1)
NONE, BEFORE = LivingMirror(None, None), LivingMirror("orders", 0)
NOW, OTHER_GENERATION = LivingMirror("east.orders", 0), LivingMirror("east.orders", 1)
REFUSED = TargetRefused("lines is refused", topic="lines")


class Bench:
    """A flow of which two partitions were refused; `restarts` counts how often it was asked to
    begin anew."""

    def __init__(self, directory: Path, refused: tuple[tuple[str, int], ...]) -> None:
        lake, topology = opened(no_session, write_file(directory))
        self.deployment = Deployment(lake, Connections(topology), EventLog(lake))
        self.restarts = 0
        self.begin()
        self.refused(*refused)

    def begin(self) -> None:
        """As a process does that knows of nothing that was refused before."""
        targets: Any = SimpleNamespace(
            check=lambda: None, closed=dict, remote_topic=str, mirror=lambda _topic: NOW
        )
        self.stopped = StoppedPartitions(
            FLOW,
            self.deployment.lake,
            targets,
            incidents=self.deployment.event_log.incidents,
            begin_anew=self._begin_anew,
            limits=lambda _topics: {},
        )

    def _begin_anew(self) -> None:
        self.restarts += 1

    def refused(self, *keys: tuple[str, int], offset: int = 5, mirror: LivingMirror = NONE) -> None:
        self.stopped.refused(
            [
                TargetRefused(f"{topic}-{at} is refused", topic=topic, partition=at,
                              first_offset=offset, last_offset=offset, generation=0,
                              target_topic=mirror.name, target_generation=mirror.generation)
                for topic, at in keys
            ]
        )  # fmt: skip

    @property
    def open_ones(self) -> list[tuple[int, int, str | None]]:
        """The partition, offset and target topic of each open incident."""
        rows = self.deployment.lake.ask_table("open_incidents")
        return sorted((row["partition"], row["first_offset"], row["target_topic"]) for row in rows)

    def stopped_in(self, mirror: LivingMirror) -> frozenset[PartitionGeneration]:
        """What an operator has stopped of a mirror."""
        return self.deployment.event_log.incidents.decided(FLOW, lambda _topic: mirror).stopped

    def decided(self, partition: int, choice: str = "retry") -> Resolution:
        return resolve(self.deployment, Wanted(topic="orders", partition=partition), choice)

    @property
    def ends_with(self) -> str | None:
        error = self.stopped.error
        return None if error is None else str(error)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path, (FIRST, SECOND))
    assert made.ends_with == "orders-0 is refused"
    return made


def at(**floors: int) -> Snapshot:
    keys = {("orders", int(name[1:])): floor for name, floor in floors.items()}
    none = frozenset[Any]()
    return Snapshot({}, True, keys, {}, none, none)


def test_what_is_decided_behind_the_end_of_a_run_is_not_done(bench: Bench) -> None:
    """`run --once` asks what was decided when its flows have ended: it ended with exit code 0, with
    the incident of the other partition open, and nothing of either brought."""
    bench.decided(0)
    bench.stopped.check(at(p0=5, p1=5))
    assert bench.ends_with == "orders-0 is refused", "the next run tries it again"
    bench.decided(1)
    bench.stopped.check(at(p0=5, p1=5))
    assert bench.ends_with is not None


def test_what_was_taken_since_is_over_and_the_other_one_is_not(bench: Bench) -> None:
    bench.stopped.check(at(p0=6, p1=5))
    assert bench.ends_with == "orders-1 is refused"
    bench.stopped.check(at(p0=6, p1=6))
    assert bench.ends_with is None


def test_a_later_record_that_is_refused_stands_when_the_one_before_is_over(tmp_path: Path) -> None:
    """The open incident of the first one stood for both: when it was over, `run --once` ended with
    exit code 0, with no open incident, in front of the second one."""
    bench = Bench(tmp_path, (FIRST,))
    bench.begin()
    bench.refused(FIRST, offset=9)
    assert bench.open_ones == [(0, 5, None)]
    for _ in range(2):
        bench.stopped.check(at(p0=9))
        assert bench.ends_with == "orders-0 is refused" and bench.open_ones == [(0, 9, None)]
    assert bench.restarts == 0, "it was tried a moment ago"
    bench.stopped.check(at(p0=10))
    assert bench.ends_with is None and bench.open_ones == []


@pytest.mark.parametrize(("before", "waits"), [(BEFORE, True), (OTHER_GENERATION, False)])
def test_what_waits_of_another_mirror_takes_nothing_with_it(
    tmp_path: Path, before: LivingMirror, waits: bool
) -> None:
    """What one refused that the flow had under another policy is not over with what it has now: it
    was closed. Where the topic was made again since, nothing comes back to it."""
    bench = Bench(tmp_path, ())
    bench.refused(FIRST, mirror=before)
    bench.begin()
    bench.refused(FIRST, offset=9, mirror=NOW)
    bench.stopped.check(at(p0=9))
    assert bench.ends_with == "orders-0 is refused"
    assert bench.open_ones == [(0, 5, "orders")] * waits + [(0, 9, "east.orders")]
    assert bench.restarts == 0


def test_a_decision_is_about_one_mirror(tmp_path: Path) -> None:
    """One about all that was listed decided for the earlier mirror, too; and the flow did not go by
    it while anything of that one waited."""
    bench = Bench(tmp_path, ())
    bench.refused(FIRST, mirror=BEFORE)
    bench.begin()
    bench.refused(FIRST, mirror=NOW)
    decided, left_open = bench.decided(0, "park")
    assert [row["target_topic"] for row in decided] == ["east.orders"]
    assert [row["target_topic"] for row in left_open] == ["orders"]
    assert bench.open_ones == [(0, 5, "orders")]
    incidents = bench.deployment.event_log.incidents
    assert incidents.decided(FLOW, lambda _: BEFORE).parked == {}
    assert incidents.decided(FLOW, lambda _: NOW).parked.keys() == {PartitionGeneration(*FIRST, 0)}
    bench.stopped.check(at(p0=5))
    assert bench.restarts == 1
    resolve(bench.deployment, Wanted(target_topic="orders"), "skip")
    assert bench.open_ones == []


def test_a_decision_about_several_mirrors_of_which_none_is_the_one_of_now_names_one(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, ())
    for mirror in (BEFORE, LivingMirror("copy.orders", 0)):
        bench.refused(FIRST, mirror=mirror)
        bench.begin()
    with pytest.raises(InputError, match="one of copy.orders, orders by --target-topic"):
        bench.decided(0, "skip")
    assert len(bench.open_ones) == 2


@pytest.mark.parametrize("how", ["taken", "parked", "decided"])
@pytest.mark.parametrize(
    "before",
    [
        BEFORE,
        pytest.param(
            OTHER_GENERATION,
            marks=pytest.mark.wide("test_what_was_stopped_of_another_mirror_stays_stopped"),
        ),
    ],
)
def test_what_was_stopped_of_another_mirror_stays_stopped(
    tmp_path: Path, how: str, before: LivingMirror
) -> None:
    bench = Bench(tmp_path, ())
    bench.refused(FIRST, mirror=before)
    bench.decided(0, "stop")
    bench.begin()
    bench.refused(FIRST, mirror=NOW)
    if how == "taken":
        bench.stopped.check(at(p0=6))
    elif how == "parked":
        bench.stopped.parked([PartitionGeneration(*FIRST, 0)])
    else:
        bench.decided(0)
    assert bench.open_ones == []
    assert bench.stopped_in(before) == {PartitionGeneration(*FIRST, 0)}
    assert bench.stopped_in(NOW) == frozenset()


@pytest.mark.parametrize("before", [BEFORE, OTHER_GENERATION])
def test_what_waits_of_another_mirror_is_not_parked(tmp_path: Path, before: LivingMirror) -> None:
    """The flow would go on behind it in that mirror, too, and no operator had chosen so."""
    bench = Bench(tmp_path, ())
    bench.refused(FIRST, mirror=before)
    bench.begin()
    bench.refused(FIRST, mirror=NOW)
    bench.stopped.parked([PartitionGeneration(*FIRST, 0)])
    assert bench.open_ones == [(0, 5, before.name)] and bench.ends_with is None
    incidents = bench.deployment.event_log.incidents
    assert incidents.decided(FLOW, lambda _topic: before).parked == {}


def test_a_flow_that_begins_anew_goes_by_what_was_decided(bench: Bench) -> None:
    bench.decided(0)
    bench.stopped.check(at(p0=5, p1=5))
    assert bench.restarts == 1
    bench.stopped.begin()
    assert bench.ends_with == "orders-1 is refused", "that one waits for a decision still"
    bench.stopped.check(at(p0=5, p1=5))
    assert bench.restarts == 1, "once"
    bench.decided(1)
    bench.stopped.check(at(p0=6, p1=5))
    bench.stopped.begin()
    assert (bench.restarts, bench.ends_with) == (2, None)


def test_what_is_parked_stands_no_more(bench: Bench) -> None:
    bench.stopped.parked([PartitionGeneration(*FIRST, 0)])
    assert bench.ends_with == "orders-1 is refused"


@pytest.mark.parametrize(("once", "waits"), [(True, False), (True, True), (False, False)])
def test_what_was_decided_too_late_about_a_topic_is_not_done(
    tmp_path: Path, once: bool, waits: bool
) -> None:
    """Its target topic was deleted, and is to be made again: a run with an end compares it when it
    begins, and the exit code was 0. One without goes on with it the next time, too."""
    bench = Bench(tmp_path, ())
    closed = {"orders": None} | ({"lines": REFUSED} if waits else {})
    targets = SimpleNamespace(
        closed=lambda: closed, decided=lambda: {"orders"}, flow_ends=lambda: None
    )
    flow: Any = SimpleNamespace(
        flow=SimpleNamespace(name=FLOW), targets=targets, once=once, _stopped=bench.stopped
    )
    FlowWorker._note_closed(flow)
    text = "lines is refused" if waits else "did not begin yet what you decided about topic orders"
    assert (text if once else "None") in str(bench.ends_with)


def test_a_topic_that_may_not_be_written_waits_for_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control looks at topics once more when the flow has ended. It closed the incident, since the
    topic may be written again, and nothing of it was sent."""
    monkeypatch.setattr(denied_topics, "PAUSES", (0.0,))
    monkeypatch.setattr(MemoryCluster, "client", None)
    monkeypatch.setattr(topic_sync, "topic_rights", lambda _, names: dict.fromkeys(names))
    bench = Bench(tmp_path, ())
    lake = bench.deployment.lake
    settings = {"sync_topic_acls_enabled": False, "sync_topic_configs_enabled": False}
    topology = load_topology(write_file(tmp_path, flows={FLOW: {"topics": ["orders"], **settings}}))
    clusters = {
        "east": MemoryCluster("east", {"orders": [5]}),
        "west": MemoryCluster("west", {"east.orders": [0]}),
    }

    def process() -> TargetTopics:
        deployment = Deployment(lake, Connections(topology, clusters), EventLog(lake))
        return TargetTopics(topology.flow(FLOW), deployment)

    targets = process()
    flow: Any = SimpleNamespace(
        flow=SimpleNamespace(name=FLOW), targets=targets, once=True, _stopped=bench.stopped
    )
    flow._begin_anew_if_different = lambda: None
    targets.refresh()
    targets.deny([TopicRefused("orders may not be written", topic="orders")])
    FlowWorker._note_closed(flow)
    for after in (FlowWorker.refresh_topics, FlowWorker.check_targets):
        after(flow)
    assert bench.ends_with == "orders may not be written"
    assert [row["topic"] for row in lake.ask_table("open_incidents")] == ["orders"]
    process().refresh()
    assert lake.ask_table("open_incidents") == [], "it is tried again"
