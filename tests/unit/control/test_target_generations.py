"""What a flow notes of its target topics, and when: over a target and a lake in memory."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.control import target_generations
from mirrorlake.control.config_plan import ALWAYS
from mirrorlake.control.target_generations import TargetGenerations
from mirrorlake.control.topic_sync import TargetTopics, TopicsUnmade
from mirrorlake.errors import ClusterUnreachable, TargetRefused
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.targets import MappedTarget
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.offsets.generations import NotedTarget, TargetDecision
from mirrorlake.offsets.progress import NOTHING_MAPPED
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.attempts_clock import attempts_go_by
from tests.support.lake_rows import write_file

FLOW = "east->west"
NAMES = {"t": "east.t"}
PLAN = PartitionPlan("t", 0, "east.t", floor=NOTHING_MAPPED, first=0, last=9)


@dataclass
class World:
    """Both clusters, and the tables of a lake that survive a process."""

    target: MemoryCluster = field(default_factory=lambda: MemoryCluster("west"))
    source: MemoryCluster = field(default_factory=lambda: MemoryCluster("east"))
    noted: list[tuple[str, str, NotedTarget]] = field(default_factory=list)
    decisions: list[TargetDecision] = field(default_factory=list)
    mapped: dict[str, list[MappedTarget]] = field(default_factory=dict)
    told: list[dict[str, Any]] = field(default_factory=list)
    states: dict[str, TopicState] = field(default_factory=dict)

    def make(self, *ends: int, name: str = "east.t") -> None:
        self.target.make(name, *ends)

    def topic_id(self) -> str:
        """Of the target topic, as it is now."""
        return self.target.identities(["east.t"])[0]["east.t"].topic_id

    def clear(self) -> None:
        """All target topics are deleted."""
        self.target.delete(*list(self.target.ends))

    def set_source(self, topics: dict[str, int] | None) -> None:
        """The topics of the source, by their partitions; None when it does not answer."""
        self.source.refusal = (
            ClusterUnreachable("no answer", alias="east") if topics is None else None
        )
        self.source.delete(*list(self.source.ends))
        for name, count in (topics or {}).items():
            self.source.make(name, *[0] * count)

    def decide(self, choice: str, generation: int = 0) -> None:
        self.decisions.append(TargetDecision("t", generation, choice))

    def process(self) -> TargetGenerations:
        """A process that begins."""
        return TargetGenerations(MemoryLake(), FLOW, self.target, self)  # type: ignore[arg-type]

    # As Incidents.

    def close(self, _over: object) -> None:
        """Nothing of what other kinds say is kept."""

    def close_except(self, *_: object) -> None:
        """Nor here."""

    def open_all(self, flow: str, kind: str, errors: Sequence[Any]) -> None:
        """Told, and open until an operator decides."""
        if kind == "topic_refused":
            self.told += [{"said": str(error)} for error in errors]
            return
        assert (flow, kind) == (FLOW, "target_recreated")
        self.told += [{**vars(error), "said": str(error)} for error in errors]
        self.decisions += [
            TargetDecision(error.topic, error.target_generation, None) for error in errors
        ]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    found = World()

    def noted_targets(*_: object) -> tuple[dict[str, list[NotedTarget]], dict[str, str]]:
        generations: dict[str, list[NotedTarget]] = {}
        for _topic, target, noted in found.noted:
            generations.setdefault(target, []).append(noted)
        return generations, {topic: target for topic, target, _ in found.noted}

    def note_targets(_lake: object, _flow: str, begun: dict[tuple[str, str], NotedTarget]) -> None:
        found.noted += [(*names, noted) for names, noted in begun.items()]

    monkeypatch.setattr(target_generations, "noted_targets", noted_targets)
    monkeypatch.setattr(target_generations, "note_targets", note_targets)
    monkeypatch.setattr(target_generations, "target_decisions", lambda *_: list(found.decisions))
    monkeypatch.setattr(target_generations, "mapped_targets", lambda *_: found.mapped)
    monkeypatch.setattr(target_generations, "GONE_SECONDS", 0.01)
    monkeypatch.setattr(target_generations, "MADE_SECONDS", 0.01)
    return found


def begun(world: World) -> TargetGenerations:
    """A process that has made the topic and may write to it."""
    process = world.process()
    comparison = process.comparison(NAMES)
    if "east.t" not in world.target.ends:
        world.make(0, 0)
    process.begin(comparison, {topic: NAMES[topic] for topic in comparison.begin})
    return process


def test_a_topic_is_noted_with_its_ends_before_it_may_be_written_to(world: World) -> None:
    world.make(3, 0)
    process = world.process()
    comparison = process.comparison(NAMES)
    assert not process.living and not world.noted
    process.begin(comparison, NAMES)
    assert world.noted == [("t", "east.t", NotedTarget(0, world.topic_id(), "stage", (3, 0)))]
    assert process.living["east.t"].number == 0


def test_who_noted_a_generation_knows_that_nobody_else_wrote_for_the_flow(world: World) -> None:
    world.make(3, 0)
    assert begun(world).living["east.t"].began == ()
    later = world.process()
    later.comparison(NAMES)
    assert later.living["east.t"].began == (3, 0)


def test_a_topic_of_which_a_leader_is_away_holds_up_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_generations, "MADE_SECONDS", 0.05)
    monkeypatch.setattr(target_generations, "_PAUSE_SECONDS", 0.01)
    world.make(3, 0)
    world.make(5, name="east.u")
    world.target.silent = {("east.t", 1)}
    process, names = world.process(), {**NAMES, "u": "east.u"}
    for waited in (True, False):  # it is waited for once
        world.target.asked.clear()
        refused = process.begin(process.comparison(names), names)
        assert list(refused) == ["t"] and "does not say where the logs" in str(refused["t"])
        assert process.living.keys() == {"east.u"}
        assert (world.target.asked["end_offsets"] > 1) is waited
        names = NAMES
    world.target.silent = set()
    assert process.begin(process.comparison(NAMES), NAMES) == {}
    assert process.living.keys() == {"east.t", "east.u"}


def test_topics_that_a_cluster_takes_long_to_make_are_waited_for_while_some_come(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that makes thousands of them has leaders one after the other, for minutes."""
    monkeypatch.setattr(target_generations, "MADE_SECONDS", 1.0)
    clock = attempts_go_by(monkeypatch)
    names = {f"t{number}": f"east.t{number}" for number in range(20)}
    for target in names.values():
        world.make(0, name=target)
    ask, leaders = world.target.end_offsets, [(target, 0) for target in names.values()]

    def end_offsets(*args: Any, **named: Any) -> Any:
        world.target.silent = set(leaders[int(clock.now / 0.7) :])  # one in 0.7 s
        return ask(*args, **named)

    monkeypatch.setattr(world.target, "end_offsets", end_offsets)
    process = world.process()
    assert process.begin(process.comparison(names), names) == {}
    assert process.living.keys() == set(names.values()) and clock.now > 10


def test_what_an_earlier_version_wrote_is_not_gone_while_a_leader_is_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_generations, "MADE_SECONDS", 0.0)
    world.make(3)
    world.mapped = {"east.t": [MappedTarget("t", 0, 0, 0, 2, 3, 3)]}
    world.target.silent = {("east.t", 0)}
    process = world.process()
    process.comparison(NAMES)
    assert world.noted == [] == world.told
    world.target.silent = set()
    assert process.begin(process.comparison(NAMES), NAMES) == {}
    assert [generation.topic_id for _, _, generation in world.noted] == [world.topic_id()]


def test_each_refresh_asks_the_target_one_question(world: World) -> None:
    process = begun(world)
    world.target.asked.clear()
    for _ in range(3):
        process.comparison(NAMES)
    assert world.target.asked == {"identities": 3}


def test_a_death_between_making_a_topic_and_noting_it_is_made_up_for(world: World) -> None:
    world.process().comparison(NAMES)
    world.make(0)  # and the process dies
    assert begun(world).living["east.t"].number == 0
    world.clear()
    world.process().comparison(NAMES)
    world.decide("again")
    world.process().comparison(NAMES)
    world.make(0)  # and dies again
    again = begun(world)
    assert again.living["east.t"].number == again.living["east.t"].counts_from == 1
    assert len(world.told) == 1


@pytest.mark.parametrize("choice", ["again", "continue", "stop"])
def test_a_topic_that_was_made_again_gets_nothing_until_it_is_decided(
    world: World, choice: str
) -> None:
    process = begun(world)
    world.mapped = {
        "east.t": [MappedTarget("t", 0, 0, 5, 9, 5, 5), MappedTarget("t", 1, 0, 0, 3, 4, 4)]
    }
    world.make(0, 0)
    for _ in range(2):
        assert process.comparison(NAMES).waiting == {"t"} and not process.living
        process = world.process()
    assert [
        (row["first_offset"], row["last_offset"], row["target_generation"]) for row in world.told
    ] == [(0, 9, 0)]
    assert (
        "9 records of t (source offsets, partition 0: 5 to 9, partition 1: 0 to 3)"
        in world.told[0]["said"]
    )
    world.decide(choice)
    comparison = process.comparison(NAMES)
    assert not process.waiting and not process.living, "nothing before it is noted"
    process.begin(comparison, {topic: NAMES[topic] for topic in comparison.begin})
    if choice == "stop":
        assert process.stopped == {"t"} and not process.living
    else:
        living = process.living["east.t"]
        assert (living.number, living.counts_from) == (1, 1 if choice == "again" else 0)


def test_a_topic_that_only_one_answer_did_not_know_is_not_gone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = begun(world)
    answers = [({}, frozenset({"east.t"}))]
    real = world.target.identities
    monkeypatch.setattr(
        world.target, "identities", lambda topics: answers.pop() if answers else real(topics)
    )
    assert not process.comparison(NAMES).losses and not world.told
    assert process.living


def test_one_topic_more_that_is_gone_brings_none_back_that_waits(world: World) -> None:
    both = {**NAMES, "u": "east.u"}
    world.make(0)
    world.make(0, name="east.u")
    process = world.process()
    process.begin(process.comparison(both), both)
    world.target.delete("east.t")
    assert process.comparison(both).waiting == {"t"}
    world.target.delete("east.u")
    assert process.comparison(both).waiting == {"t", "u"} and not process.living


def test_a_lake_of_an_earlier_version_notes_what_is_there_unless_it_has_less_than_the_map_says(
    world: World,
) -> None:
    world.make(10, 4)
    world.mapped = {
        "east.t": [MappedTarget("t", 0, 0, 0, 9, 10, 10), MappedTarget("t", 1, 0, 0, 3, 4, 4)]
    }
    assert begun(world).living["east.t"].number == 0
    world.noted.clear()
    for change in (lambda: world.make(10, 3), lambda: world.make(10), world.clear):
        world.noted.clear()
        world.told.clear()
        world.decisions.clear()
        change()
        comparison = world.process().comparison(NAMES)
        assert comparison.waiting == {"t"} and len(world.told) == 1
        assert [noted.topic_id for *_, noted in world.noted] == [""]


@pytest.fixture
def flow_topics(world: World, tmp_path: Path) -> TargetTopics:
    """What a running flow has of its target: topic t is at the source, with two partitions."""
    return topics_of_flow(world, tmp_path, False)


def topics_of_flow(world: World, tmp_path: Path, synced: bool) -> TargetTopics:
    topology = load_topology(
        write_file(
            tmp_path,
            flows={
                FLOW: {
                    "topics": ["t"],
                    "sync_topic_configs_enabled": synced,
                    "sync_topic_acls_enabled": False,
                }
            },
        )
    )
    world.set_source({"t": 2})
    connections = Connections(topology, {"east": world.source, "west": world.target})
    states = SimpleNamespace(
        newest=lambda cluster, fresh: world.states, note=lambda *_: None, note_acls=list
    )
    event_log: Any = SimpleNamespace(incidents=world, states=states, record=lambda *_: None)
    deployment = Deployment(MemoryLake(), connections, event_log)
    return TargetTopics(topology.flow(FLOW), deployment)


def test_a_batch_does_not_wait_for_a_source_that_is_away_from_here_alone(
    world: World, flow_topics: TargetTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where another process lands it."""
    flow_topics.ensure([PLAN])
    asked, answer, done = Event(), Event(), Event()

    def silent() -> None:
        asked.set()
        answer.wait(30)
        raise ClusterUnreachable("away", alias="east")

    monkeypatch.setattr(world.source, "topics", silent)

    def refresh() -> None:
        with suppress(ClusterUnreachable):
            flow_topics.refresh(begins=False)

    refreshing = Thread(target=refresh)
    refreshing.start()
    assert asked.wait(10)
    Thread(target=lambda: (flow_topics.ensure([PLAN]), done.set()), daemon=True).start()
    try:
        assert done.wait(5)
    finally:
        answer.set()
        refreshing.join()


def test_a_batch_is_handed_over_only_when_its_topics_are_noted(
    world: World, flow_topics: TargetTopics
) -> None:
    flow_topics.ensure([PLAN])
    assert [noted.number for *_, noted in world.noted] == [0]
    assert flow_topics.target_generation("t") == 0
    world.make(0, 0)
    flow_topics.ensure([PLAN])  # nobody has asked since: tasks find out by offsets
    flow_topics.check()
    with pytest.raises(TopicsUnmade):
        flow_topics.ensure([PLAN])
    assert flow_topics.closed().keys() == {"t"} and flow_topics.target_generation("t") is None


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("source", ["answers", "has it no more", "is silent"])
def test_what_is_decided_begins_between_two_batches_only(
    world: World, flow_topics: TargetTopics, there: bool, source: str
) -> None:
    world.states = {"t": TopicState(2, 1)}
    flow_topics.refresh()
    world.clear()
    if there:
        world.make(5, 0)
    flow_topics.refresh(begins=False)
    assert flow_topics.closed()["t"] is not None and not flow_topics.decided()
    world.decide("again")
    world.set_source({"answers": {"t": 2}, "has it no more": {}, "is silent": None}[source])
    for step in (flow_topics.check, lambda: flow_topics.refresh(begins=False)):
        try:
            step()
        except ClusterUnreachable:
            assert source == "is silent"
    assert flow_topics.decided() == flow_topics.closed().keys() == {"t"}, (
        "the flow has to begin anew"
    )
    with pytest.raises(TopicsUnmade):
        flow_topics.ensure([PLAN])
    assert len(world.noted) == 1 and ("east.t" in world.target.ends) is there
    try:
        flow_topics.refresh()
    except ClusterUnreachable:
        assert source == "is silent"
    assert [noted.number for *_, noted in world.noted] == [0, 1]
    assert world.noted[1][2].began == ((5, 0) if there else (0, 0))
    assert not flow_topics.closed() and flow_topics.target_generation("t") == 1
    flow_topics.ensure([PLAN])


def test_a_topic_that_is_gone_at_the_source_is_made_by_what_is_staged(
    world: World, flow_topics: TargetTopics
) -> None:
    world.set_source({})
    flow_topics.ensure([PLAN])
    assert len(world.target.ends["east.t"]) == 1 and flow_topics.target_generation("t") == 0
    world.clear()
    flow_topics.check()
    with pytest.raises(TopicsUnmade):
        flow_topics.ensure([PLAN])
    assert not world.target.ends, "never made again unasked"


@pytest.mark.parametrize("decided", [False, True])
def test_a_silent_sources_topic_is_made_as_the_lake_knows_it(
    world: World, tmp_path: Path, decided: bool
) -> None:
    """A compacted topic stays compacted, with the replicas it had, as far as the target has
    brokers."""
    topics = topics_of_flow(world, tmp_path, synced=True)
    configs = {"cleanup.policy": "compact", "min.insync.replicas": "2", "retention.ms": "-1"}
    world.states, world.target.registered = {"t": TopicState(6, 3, configs)}, 5
    world.set_source(None)
    if decided:
        world.make(0, name="east.t")
        first = world.process()
        first.begin(first.comparison(NAMES), NAMES)
        world.clear()
        topics.check()
        world.decide("again")
        with pytest.raises(ClusterUnreachable):
            topics.refresh()
    topics.ensure([PLAN])
    wanted = {"cleanup.policy": "compact", "retention.ms": "-1", **ALWAYS}
    assert [(made.partitions, made.factor, made.configs) for made in world.target.made] == [
        (6, 3, wanted)
    ]


def test_a_silent_sources_topic_that_the_lake_does_not_know_waits_and_it_is_said(
    world: World, flow_topics: TargetTopics
) -> None:
    world.set_source(None)
    for _ in range(2):
        with pytest.raises(TopicsUnmade):
            flow_topics.ensure([PLAN])
    assert not world.target.made and flow_topics.closed().keys() == {"t"}
    (told,) = world.told
    assert "the lake does not know how t is there; wait for the source" in told["said"]
    world.set_source({"t": 2})
    flow_topics.refresh()
    flow_topics.ensure([PLAN])
    assert [made.partitions for made in world.target.made] == [2]


def test_what_the_target_does_not_make_in_time_stops_no_flow(
    world: World, flow_topics: TargetTopics
) -> None:
    world.set_source({})
    late = TargetRefused("too slow", topic="east.t", reason="REQUEST_TIMED_OUT")
    world.target.refuses = {"east.t": late}
    with pytest.raises(TopicsUnmade):
        flow_topics.ensure([PLAN])
    assert flow_topics.closed() == {"t": late}
    flow_topics._unmade.topics, world.target.refuses = {}, {}
    flow_topics.ensure([PLAN])
    assert [made.factor for made in world.target.made] == [-1], (
        "the target's own default, where nobody knows"
    )
