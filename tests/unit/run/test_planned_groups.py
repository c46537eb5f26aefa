"""What a plan says of consumer groups: how many positions a flow would have checkpoints of, and
which groups it leaves out."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.flow import Flow
from mirrorlake.kafka.groups import GroupPositions, Listing
from mirrorlake.offsets.positions import Committed
from mirrorlake.run import plan_groups
from mirrorlake.run.plan_groups import PlannedGroups, planned_groups

POSITIONS = {
    "billing": [("orders", 0), ("orders", 1), ("elsewhere", 0)],
    "connect-sink": [("orders", 0)],
    "other": [("elsewhere", 0)],
    "reports": [("orders", 0)],
    "silent": [("orders", 0)],
}


def found(
    topics: Iterable[str] = ("orders",),
    groups: Mapping[str, list[tuple[str, int]]] = POSITIONS,
    errors: tuple[str, ...] = (),
    patterns: tuple[str, ...] = (".*",),
    **settings: Any,
) -> PlannedGroups:
    """What is planned of the groups of a source, one of which is not answered."""

    def positions(asked: list[str]) -> GroupPositions:
        told = [group for group in asked if group != "silent"]
        answers = {group: dict.fromkeys(groups[group], Committed(7)) for group in told}
        return GroupPositions(answers, {"silent": "its coordinator is away"})

    admin = SimpleNamespace(
        listing=lambda: Listing(dict.fromkeys(groups, "EMPTY"), errors), positions=positions
    )
    connections: Any = SimpleNamespace(groups=lambda _alias: admin)
    flow: Any = SimpleNamespace(source="east", settings=Flow(groups=patterns, **settings))
    return planned_groups(connections, flow, frozenset(topics))


def test_positions_in_topics_of_the_flow_count() -> None:
    """Of the groups that it selects; one that is not answered is taken for like the others."""
    assert found() == PlannedGroups(4, ("connect-sink",)), "three of three, of four"


def test_a_group_that_is_left_out_and_not_answered_for_may_stand_in_a_topic_of_the_flow() -> None:
    """After a failover it would find no position at the target, and the plan did not say so."""
    planned = found(groups_exclude=["billing", "silent"])
    assert (planned.positions, planned.left_out) == (2, ("billing",))
    (why,) = planned.untold
    assert "group silent, which the flow leaves out" in why and "coordinator is away" in why


def test_where_a_broker_lists_no_groups_the_plan_says_so() -> None:
    """As of no groups at all: those that it coordinates are not counted."""
    assert found(errors=("broker 2: timed out",)).untold == ("broker 2: timed out",)
    assert found(groups={}, errors=("away",)) == PlannedGroups(untold=("away",))


def test_where_no_group_of_the_flow_is_answered_for_the_plan_says_so() -> None:
    """A right on groups that is missing, or a coordinator that is away: the plan had 0 positions,
    as where there are none."""
    planned = found(groups={"silent": POSITIONS["silent"]})
    assert planned.positions == 0
    (why,) = planned.untold
    assert "such as silent" in why and "coordinator is away" in why


def test_groups_in_other_topics_are_none() -> None:
    assert found(topics=["new"]) == PlannedGroups()


@pytest.mark.parametrize(("topics", "emit"), [([], True), (["orders"], False)])
def test_nothing_is_asked_where_nothing_would_be_checkpointed(topics: Any, emit: bool) -> None:
    nobody: Any = SimpleNamespace()
    flow: Any = SimpleNamespace(source="east", settings=Flow(emit_checkpoints_enabled=emit))
    assert planned_groups(nobody, flow, topics) == PlannedGroups()


def test_of_many_groups_some_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_groups, "MOST_GROUPS", 3)
    many = {f"group-{number}": [("orders", 0), ("orders", 1)] for number in range(30)}
    assert found(groups=many).positions == 60


@pytest.mark.parametrize(
    ("settings", "unmatched"),
    [
        ({}, {}),
        ({"patterns": ("billing", ".*")}, {}),
        ({"patterns": ("biling", "x.*", "rep.*")}, {"biling": "billing", "x.*": ""}),
        ({"patterns": ("connect-.*",)}, {"connect-.*": "connect-sink"}),
        ({"patterns": ("biling",), "errors": ("broker 2: timed out",)}, {}),
    ],
    ids=["all", "all, too", "misspelt", "excluded", "not all brokers answered"],
)
def test_a_pattern_that_selects_no_group_is_named(
    settings: dict[str, Any], unmatched: dict[str, str]
) -> None:
    """A misspelt one moved nothing at a failover, and no answer had it."""
    assert found(**settings).unmatched == unmatched


def test_of_many_patterns_some_are_compared_with_all_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred and ten thousand groups took a minute, and a note names one."""
    compared: list[str] = []

    def matches(pattern: str, groups: list[str], _count: int) -> list[str]:
        compared.append(pattern)
        return groups[:1]

    monkeypatch.setattr(plan_groups, "get_close_matches", matches)
    patterns = tuple(f"typo-{number}" for number in range(100))
    unmatched = found(patterns=patterns).unmatched
    assert tuple(unmatched) == patterns and compared == [*patterns[:3]]
    assert [pattern for pattern, near in unmatched.items() if near] == compared
