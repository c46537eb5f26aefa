"""Where groups stand in restored topics, and what a restore does about them."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from mirrorlake.errors import ReplicationError
from mirrorlake.groups.mover import MovePlan
from mirrorlake.groups.moves import MoveResult
from mirrorlake.groups.sync_plan import TargetGroup
from mirrorlake.kafka.groups import GroupAdmin, GroupPositions, Listing
from mirrorlake.lake.changes import Change, MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.positions import Committed, TopicAndPartition, Translated
from mirrorlake.resend.extras import GROUPS, Extras
from mirrorlake.resend.groups import moved_before, plan_groups, restore_groups, standings
from mirrorlake.resend.note import Resend, ResentTopic
from mirrorlake.testing import MemoryCluster, MemoryLake

NAMES = {"orders": "restored.orders"}
BEGAN = {("restored.orders", 0): 0, ("restored.orders", 1): 3}
POSITIONS = {
    ("billing", "orders", 0): Committed(107, "text"),
    ("billing", "orders", 1): Committed(50),
    ("billing", "orders", 2): Committed(1),
    ("billing", "other", 0): Committed(5),
}
TRANSLATED = {
    ("orders", 0, 107): Translated("restored.orders", 0, 7, True, True, end=112),
    ("orders", 1, 50): Translated("restored.orders", 1, 0, False, False, end=0),
}


class Groups:
    """Groups of a cluster in memory."""

    def __init__(self, **groups: dict[TopicAndPartition, Committed]) -> None:
        self.groups = groups
        self.states: dict[str, str] = {}

    def listing(self) -> Listing:
        return Listing({group: self.states.get(group, "EMPTY") for group in self.groups})

    def positions(self, groups: Any) -> GroupPositions:
        return GroupPositions({group: dict(self.groups.get(group, {})) for group in groups})

    def move(
        self, moves: dict[str, dict[TopicAndPartition, Committed]]
    ) -> dict[tuple[str, str, int], str]:
        for group, items in moves.items():
            self.groups.setdefault(group, {}).update(items)
        return {}


def admin(groups: Groups) -> GroupAdmin:
    return cast(GroupAdmin, groups)


def planned_of(
    groups: Groups, moved: dict[str, str] | None = None, starts: tuple[int, int] = (0, 0)
) -> MovePlan:
    """What is planned while the logs of the restored topic begin there."""
    cluster = MemoryCluster("west", {"restored.orders": [12, 9]})
    cluster.starts = {("restored.orders", at): start for at, start in enumerate(starts)}
    positions = standings(POSITIONS, NAMES, TRANSLATED, BEGAN)
    return plan_groups(cluster, admin(groups), positions, moved or {})


def results(
    groups: Groups, moved: dict[str, str] | None = None, starts: tuple[int, int] = (0, 0)
) -> dict[str, MoveResult]:
    steps = restore_groups(admin(groups), planned_of(groups, moved, starts))
    return {item.change().resource: item for step in steps for item in step}


def done(groups: Groups, moved: dict[str, str] | None = None) -> dict[str, str]:
    return {name: item.done for name, item in results(groups, moved).items()}


def test_a_group_reads_on_behind_what_it_had_committed() -> None:
    groups = Groups()
    places = [f"billing restored.orders-{number}" for number in (0, 1)]
    assert done(groups) == dict.fromkeys(places, "moved")
    assert groups.groups["billing"] == {
        ("restored.orders", 0): Committed(7, "text"),
        ("restored.orders", 1): Committed(
            3
        ),  # nothing of that partition was restored: its end then
    }
    assert done(groups) == dict.fromkeys(places, "there")


def test_a_group_is_never_moved_backwards_nor_while_it_reads() -> None:
    ahead = Groups(billing={("restored.orders", 0): Committed(9)})
    assert done(ahead)["billing restored.orders-0"] == "kept"
    assert ahead.groups["billing"]["restored.orders", 0] == Committed(9)
    # It was moved by this restore, and has read on since: that is how it should be.
    assert done(ahead, {"billing restored.orders-0": "7"})["billing restored.orders-0"] == "there"
    reading = Groups(billing={})
    reading.states["billing"] = "STABLE"
    assert set(done(reading).values()) == {"kept"} and reading.groups["billing"] == {}


def test_a_plan_changes_nothing() -> None:
    groups = Groups()
    planned = planned_of(groups)
    assert {item.done for item in planned.results} == {"would move"} and groups.groups == {}
    assert planned.goals == {"billing": TargetGroup(None, {})}


def test_what_retention_has_taken_of_the_restored_topic_is_named() -> None:
    """Its records are old: the position was set in front of the log and called done, and consumers
    began by their auto.offset.reset."""
    groups, name = Groups(), "billing restored.orders-0"
    moved = results(groups, starts=(9, 9))
    assert groups.groups["billing"]["restored.orders", 0] == Committed(9, "text")
    assert (moved[name].done, moved[name].standing.gone) == ("moved", 2)
    assert moved[name].is_left and moved[name].standing.lacks
    whole = moved["billing restored.orders-1"]
    assert (whole.to_position, whole.is_left) == (9, False), "nothing of it was restored"
    groups.groups["billing"]["restored.orders", 0] = Committed(12)
    later = results(groups, {name: "9"}, starts=(10, 9))[name]
    assert (later.done, later.is_left) == ("there", False), "it reads on by itself"


def test_one_that_reads_on_is_where_it_should_be_whatever_retention_took_since() -> None:
    """Of the other partition nothing was restored: the log began behind where the group was set,
    and the same command, given again late, took its own move for one that another had made."""
    name = "billing restored.orders-1"
    groups = Groups(billing={("restored.orders", 1): Committed(9)})
    later = results(groups, {name: "3"}, starts=(0, 6))[name]
    assert (later.done, later.is_left, later.standing.gone) == ("there", False, 0)
    assert results(groups, {}, starts=(0, 6))[name].done == "kept", "it was not moved by this one"


def test_what_was_moved_is_read_from_changes() -> None:
    history = [
        Change("group", "g t-0", None, "7"),
        Change("group", "g t-1", None, "8", outcome="refused", error="no"),
    ]
    assert moved_before(history) == {"g t-0": "7"}


def test_what_producers_wrote_since_is_not_passed() -> None:
    """The call that moves groups may be a later one than that which sent the records. Nothing of
    two partitions was restored, of which the topic got one since it was made."""
    part = ResentTopic(
        "orders", "restored.orders", (StagedRange("east", "orders", 0, 0, 100, 111, 12),), (0, 3)
    )
    resend = Resend("restore", "1", "east", "west", target_id="id", request={}, parts=(part,))
    place = {"asked_topic": "orders", "topic": "restored.orders", "ahead": False, "mapped": True}
    place |= {"exact": True, "known": True}
    lake = MemoryLake(
        {
            "group_positions_as_of": [
                {"group_id": "billing", "topic": "orders", "partition": number, "metadata": ""}
                | {"source_position": 50, "generation": 0}
                for number in (1, 2, 3)
            ],
            "group_positions_since": (),
            "translate_forward": [
                place
                | {"partition": number, "asked_offset": 50}
                | {"offset": 0, "mapped_end": 0, "generation": 0}
                for number in (1, 2, 3)
            ],
        }
    )
    groups, log = Groups(), cast(Any, MemoryLog())
    cluster = MemoryCluster("west", {"restored.orders": [12, 3 + 4, 5]})
    connections: Any = SimpleNamespace(admin=lambda _: cluster, groups=lambda _: groups)
    naming: Any = SimpleNamespace(source="east")
    deployment = Deployment(lake, connections, log)
    extras = Extras(deployment, naming, "west", what=(GROUPS,), until_ms=0)
    planned = extras.plan(resend, (), {}).groups
    done = extras.carry_out(resend, (), {})
    assert groups.groups["billing"] == {
        ("restored.orders", 1): Committed(3),
        ("restored.orders", 2): Committed(0),
    }
    lacking = {"partition": 3, "to_topic": "restored.orders", "done": "failed"}
    assert not done.complete, "the topic has no such partition"
    for rows in (planned, done.groups):
        assert rows[2].items() >= lacking.items() and "no such partition" in rows[2]["detail"]
    cluster.add_partitions("restored.orders", 4)
    assert extras.carry_out(resend, (), {}).complete
    lake.answers["translate_forward"] = [
        {**row, "mapped_end": 111, "ahead": True} for row in lake.answers["translate_forward"]
    ]
    cluster.starts["restored.orders", 2] = 2
    lacks = extras.carry_out(resend, (), {})
    assert lacks.lacking and "restored.orders-2: at 2, since up to 2 records" in lacks.warnings[0]
    assert groups.groups["billing"]["restored.orders", 3] == Committed(0)
    cluster.delete("restored.orders")
    with pytest.raises(ReplicationError, match="west does not show topic restored.orders"):
        extras.carry_out(resend, (), {})
