"""What keeping topics, configs and ACLs alike costs grows no faster than these are many."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.control import acl_sync, config_sync, target_generations
from mirrorlake.control.acl_order import removals
from mirrorlake.control.acl_plan import AclChange, Mirrors, implied_acls, owned_acls, plan_acls
from mirrorlake.control.denied_topics import DeniedTopics
from mirrorlake.control.repeats import Contests, RefusedChanges
from mirrorlake.control.target_comparison import compare_targets
from mirrorlake.control.target_generations import TargetGenerations
from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.control.unmade_topics import UnmadeTopics
from mirrorlake.errors import TargetRefused, TopicRefused
from mirrorlake.kafka.admin_configs import Described
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import Acl, ConfigValue
from mirrorlake.lake.changes import Change, MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.other_logs import OtherLogs
from mirrorlake.lake.states import States
from mirrorlake.lake.topic_states import TopicState, applying_acls
from mirrorlake.offsets.generations import NotedTarget, TargetDecision
from mirrorlake.offsets.progress import NOTHING_MAPPED
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.growth import LINEAR, SORTED, Made, Name, growth
from tests.support.lake_rows import FLOW, ago, write_file


def names(size: int, of: Callable[[str], str] = Name) -> dict[str, str]:
    """Target topics by source topic."""
    return {of(f"t{n}"): of(f"east.t{n}") for n in range(size)}


def acl(name: str, pattern: str = "LITERAL", who: str = "User:app", may: str = "READ") -> Acl:
    return Acl(pattern, name, who, "*", may, "ALLOW")


def prefix(text: str) -> str:
    return f"east.{text}"


def planned(
    source: Callable[[str], Iterable[Acl]], there: Callable[[str], Iterable[Acl]], **of_mirrors: Any
) -> Made:
    """A plan of ACLs by what each topic has at the source, and what we made of each mirror."""

    def made(size: int) -> Callable[[], object]:
        all_names = names(size)
        asked = {each for topic in all_names for each in source(topic)}
        owned = {each: "p" for name in all_names.values() for each in there(name)}
        mirrors = Mirrors(all_names, **of_mirrors)
        return lambda: plan_acls(asked, set(owned), owned, mirrors=mirrors, policy="p")

    return made


def removed(undone_on: str) -> Made:
    """As many ACLs are to go as are still to come in their places, of one grant."""

    def made(size: int) -> Callable[[], object]:
        changes = [AclChange("delete", acl(name)) for name in names(size)]
        undone = {acl(undone_on + name, "PREFIXED") for name in names(size)}
        return lambda: removals(changes, undone)

    return made


def refused(size: int) -> Callable[[], object]:
    known = RefusedChanges()

    def turn() -> None:
        for key in names(size):
            known.is_news(key, "not allowed")
        known.due(names(size))
        for key in names(size):
            known.accepted(key)
        known.keep(names(size).keys())

    return turn


def refused_for_reasons(size: int) -> Callable[[], object]:
    known = RefusedChanges()

    def turn() -> None:
        for key in names(size):
            known.is_news(key, f"not allowed on {key}")
        for key in names(size):
            known.accepted(key)

    return turn


def contested(size: int) -> Callable[[], object]:
    known = Contests()
    return lambda: [(known.made(key), known.is_contested(key)) for key in names(size)]


def compared(is_there: bool, choice: str | None) -> Made:
    def made(size: int) -> Callable[[], object]:
        targets = list(names(size).values())
        noted = {name: NotedTarget(0, f"id of {name}") for name in targets}
        ids = {name: f"id of {name}" for name in targets if is_there}
        missing = [name for name in targets if not is_there]
        decisions = [TargetDecision(topic, 0, choice) for topic in names(size)]
        return lambda: compare_targets(names(size), ids, frozenset(missing), noted, decisions)

    return made


def denied(size: int) -> Callable[[], object]:
    incidents: Any = SimpleNamespace(
        open_all=lambda *_: None, settle_all=lambda keys, _: list(keys)
    )
    topics = DeniedTopics(FLOW, incidents, lambda wanted: dict.fromkeys(wanted))
    topics._due = lambda _: 0.0  # type: ignore[method-assign]

    def turn() -> None:
        topics.add(TopicRefused("may not", topic=topic) for topic in names(size))
        topics.resume(names(size))

    return turn


def unmade(size: int) -> Callable[[], object]:
    incidents: Any = SimpleNamespace(
        open_all=lambda *_: None, close=lambda *_: None, close_except=lambda *_: None
    )
    topics = UnmadeTopics(FLOW, incidents, lambda _: True)
    errors = {topic: TargetRefused("no", topic=topic, reason="R") for topic in names(size)}
    return lambda: (topics.add(errors), topics.replace({}, ()))


def known_states(size: int) -> States:
    states = States(MemoryLake({"states_as_of": ()}))
    states.note("east", {topic: TopicState(1, 1, {}, "id", None) for topic in names(size, str)})
    return states


def acls_noted(size: int) -> Callable[[], object]:
    states = known_states(size)
    acls = frozenset(acl(topic) for topic in names(size, str))
    return lambda: states.note_acls("east", acls)


def configs_noted(size: int) -> Callable[[], object]:
    """The configs of all topics come anew, where their ACLs are known."""
    states = known_states(size)
    states.note_acls("east", frozenset(acl(topic) for topic in names(size, str)))
    fresh = {topic: TopicState(1, 1, {"a": "b"}, "id", None) for topic in names(size, str)}
    return lambda: states.note("east", fresh)


PLANS: dict[str, Made] = {
    "ACLs to be made": planned(lambda topic: [acl(topic)], lambda _: ()),
    "ACLs that are there": planned(lambda topic: [acl(topic)], lambda name: [acl(name)]),
    "ACLs whose source is gone": planned(lambda _: (), lambda name: [acl(name)]),
    "ACLs whose source is of other topics": planned(
        lambda topic: [acl(f"no-{topic}")], lambda name: [acl(name)]
    ),
    "prefixes to be made": planned(
        lambda topic: [acl(f"{topic}", "PREFIXED")], lambda _: (), prefix=prefix
    ),
    "prefixes whose source is gone": planned(
        lambda topic: [acl(f"no-{topic}", "PREFIXED")],
        lambda name: [acl(name, "PREFIXED")],
        prefix=prefix,
    ),
    "ACLs below prefixes": planned(
        lambda topic: [acl(topic, "PREFIXED")], lambda name: [acl(name)], prefix=prefix
    ),
    "ACLs of other topics below prefixes": planned(
        lambda topic: [acl(f"no-{topic}", "PREFIXED")], lambda name: [acl(name)], prefix=prefix
    ),
    "prefixes written out": planned(lambda topic: [acl(topic, "PREFIXED")], lambda _: ()),
    "what ACLs imply": lambda size: (
        lambda: implied_acls([acl(topic) for topic in names(size)], Mirrors(names(size)))
    ),
    "whose ACLs are": lambda size: (
        lambda: owned_acls(
            Change("acl", topic, None, acl(topic).text(), outcome="done")
            for topic in names(size, str)
        )
    ),
    "ACLs that apply": lambda size: (
        lambda: applying_acls(names(size), [acl(topic) for topic in names(size)])
    ),
    "ACLs to be taken away": removed("t"),
    "ACLs to be taken away for none": removed("no-"),
    "refusals": refused,
    "refusals for many reasons": refused_for_reasons,
    "contests": contested,
    "targets that are there": compared(True, None),
    "targets that are lost": compared(False, None),
    "targets that are decided": compared(False, "again"),
    "topics that may not be written": denied,
    "topics that are not made": unmade,
    "ACLs noted of the source": acls_noted,
    "configs noted of the source": configs_noted,
}


#: ACLs are done in their order.
SORTING = {case for case in PLANS if "ACLs" in case or "prefixes" in case}


@pytest.mark.parametrize("case", PLANS)
def test_a_plan_grows_as_what_it_is_about(case: str) -> None:
    assert growth(PLANS[case]) < (SORTED if case in SORTING else LINEAR)


class Side:
    """A target and a lake in memory, and incidents that nobody reads."""

    def __init__(self, size: int, **of_topic: Any) -> None:
        self.names = names(size, str)
        self.target = MemoryCluster("west", dict.fromkeys(self.names.values(), [5, 5]))
        self.lake = MemoryLake({"target_decisions": (), "mapped_targets": ()})
        self.lake.answers["target_generations_of"] = [
            {
                "topic": topic,
                "target_topic": name,
                "target_generation": 0,
                "topic_id": self.target._ids[name],
                "begins": "stage",
                "began": [0, 0],
                "started_at": ago(60),
            }
            for topic, name in self.names.items()
        ]
        self.incidents: Any = SimpleNamespace(
            open_all=lambda *_: None, close_except=lambda *_: None, settle_all=lambda *_: None
        )
        self.generations = TargetGenerations(self.lake, FLOW, self.target, self.incidents)

    def turn(self) -> None:
        comparison = self.generations.comparison(self.names)
        self.generations.begin(comparison, {topic: self.names[topic] for topic in comparison.begin})


def no_topic_noted(side: Side) -> None:
    side.lake.answers["target_generations_of"] = ()


def all_made_again(side: Side) -> None:
    side.turn()
    for name in side.names.values():
        side.target.make(name, 0, 0)


def all_decided(side: Side) -> None:
    all_made_again(side)
    side.lake.answers["target_decisions"] = [
        {"topic": topic, "target_topic": None, "target_generation": 0, "open": False}
        | {"resolution": "again"}
        for topic in side.names
    ]


def all_gone(side: Side) -> None:
    side.turn()
    side.target.delete(*side.names.values())


def nothing_new(side: Side) -> None:
    side.turn()


@pytest.mark.parametrize(
    "before", [no_topic_noted, all_made_again, all_decided, all_gone, nothing_new]
)
def test_a_comparison_of_targets_grows_as_they_do(
    before: Callable[[Side], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_generations, "GONE_SECONDS", 0.0)
    monkeypatch.setattr(target_generations, "mapped_targets", lambda *_: {})

    def made(size: int) -> Callable[[], object]:
        before(side := Side(size))
        return side.turn

    assert growth(made) < LINEAR


class Control:
    """The target topics of a flow, between two clusters in memory; `acls` and `configs` are those
    of the clusters, of which the target takes every change."""

    def __init__(self, tmp_path: Path, size: int) -> None:
        topology = load_topology(write_file(tmp_path, flows={FLOW: {"topics": [".*"]}}))
        self.source = MemoryCluster("east", dict.fromkeys(names(size, str), [5, 5]))
        self.target = MemoryCluster("west")
        clusters: Any = {"east": self.source, "west": self.target}
        event_log: Any = MemoryLog()
        event_log.states = known_states(0)
        event_log.incidents = SimpleNamespace(
            other_logs=lambda *_: OtherLogs("east", frozenset(), {}),
            open_all=lambda *_: None,
            close=lambda *_: None,
            close_except=lambda *_: None,
            settle_all=lambda *_: None,
        )
        answers = {"target_generations_of": (), "target_decisions": (), "generations_of": ()}
        lake = MemoryLake(answers)
        deployment = Deployment(lake, Connections(topology, clusters), event_log)
        self.topics = TargetTopics(topology.flow(FLOW), deployment)
        self.plans = [
            PartitionPlan(topic, 0, name, floor=NOTHING_MAPPED, first=0, last=9)
            for topic, name in names(size, str).items()
        ]


@pytest.fixture
def control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Control]:
    acls: dict[str, set[Acl]] = {"east": set(), "west": set()}
    configs: dict[str, str] = {}

    def described(cluster: MemoryCluster, topics: Iterable[str]) -> Described:
        days = configs.get(cluster.alias, "1")
        return Described({t: {"retention.ms": ConfigValue(days, "topic")} for t in topics}, {})

    def change(_: MemoryCluster, changes: Sequence[Any]) -> Mapping[Any, None]:
        return dict.fromkeys(changes)

    monkeypatch.setattr(acl_sync, "describe_topic_acls", lambda of: frozenset(acls[of.alias]))
    monkeypatch.setattr(config_sync, "describe_topic_configs", described)
    monkeypatch.setattr(target_generations, "mapped_targets", lambda *_: {})
    for module, name in (
        (acl_sync, "create_acls"),
        (acl_sync, "delete_acls"),
        (config_sync, "alter_topic_configs"),
    ):
        monkeypatch.setattr(module, name, change)

    def made(size: int) -> Control:
        acls["east"] = {acl(topic) for topic in names(size, str)}
        acls["west"] = {acl(f"east.{topic}", who="User:other") for topic in names(size, str)}
        configs["east"] = "2"
        return Control(tmp_path, size)

    return made


def refreshed(control: Control) -> Control:
    control.topics.refresh()
    return control


def without_some(control: Control) -> Control:
    """A batch with a topic that is not there any more, among topics that wait."""
    control.topics.refresh()
    control.topics.deny(TopicRefused("no", topic=plan.topic) for plan in control.plans[1:])
    control.topics._ready.clear()
    return control


TURNS: dict[str, Callable[[Control], Callable[[], object]]] = {
    "all topics are new": lambda control: control.topics.refresh,
    "no topic is new": lambda control: refreshed(control).topics.refresh,
    "a look at the targets": lambda control: refreshed(control).topics.check,
    "ACLs differ": lambda control: refreshed(control).topics.acls.sync,
    "configs differ": lambda control: refreshed(control).topics.configs.sync,
    "a batch": lambda control: lambda: refreshed(control).topics.ensure(control.plans),
    "generations of all topics": lambda control: (
        lambda: [control.topics.target_generation(plan.topic) for plan in refreshed(control).plans]
    ),
    "names of all topics": lambda control: (
        lambda: [control.topics.produced_topic(plan.topic) for plan in control.plans]
    ),
}


@pytest.mark.parametrize("case", TURNS)
def test_a_turn_of_control_grows_as_the_topics(
    case: str, control: Callable[[int], Control]
) -> None:
    assert growth(lambda size: TURNS[case](control(size))) < SORTED


def test_a_batch_beside_topics_that_wait_grows_as_the_topics(
    control: Callable[[int], Control],
) -> None:
    def made(size: int) -> Callable[[], object]:
        ready = without_some(control(size))
        return lambda: ready.topics.ensure(ready.plans[:1] * size)

    assert growth(made) < LINEAR
