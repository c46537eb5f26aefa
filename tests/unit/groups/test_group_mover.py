"""Moves are checked again right before they are sent, in steps, by one process. No Kafka."""

import errno
import fcntl
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.flow import Flow
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnreachable, LakeError, LeaseTaken
from mirrorlake.groups.checkpoint_plan import Checkpoint
from mirrorlake.groups.mover import move_in_steps, sole_mover, target_groups
from mirrorlake.groups.sync_plan import BEHIND, TargetGroup
from mirrorlake.kafka.groups import GroupMembers, GroupPositions, Listing
from mirrorlake.lake.place import place_of
from mirrorlake.naming.naming import Naming
from mirrorlake.offsets.positions import Committed, TopicAndPartition

PLACE = ("east.orders", 0)


class Goal:
    """A cluster of groups; `silent` ones are not told, at `dead` ones nobody answers at all."""

    def __init__(self, positions: Mapping[str, int]) -> None:
        self.positions_now = dict(positions)
        self.silent: set[str] = set()
        self.dead: set[str] = set()
        self.asked: list[set[str]] = []

    def positions(self, groups: Iterable[str]) -> GroupPositions:
        wanted = set(groups)
        self.asked.append(wanted)
        if wanted & self.dead:
            raise ClusterUnreachable("nobody", alias="west")
        told = {
            name: {PLACE: Committed(self.positions_now[name])}
            for name in wanted & self.positions_now.keys()
        }
        return GroupPositions(told, dict.fromkeys(wanted & self.silent, "timed out"))

    def move(
        self, moves: Mapping[str, Mapping[TopicAndPartition, Committed]]
    ) -> dict[tuple[str, str, int], str]:
        for group, items in moves.items():
            self.positions_now[group] = items[PLACE].offset
        return {}


def wanted(*groups: str, at: int = 10) -> list[Checkpoint]:
    return [Checkpoint(group, "orders", 0, at, *PLACE[:1], at) for group in groups]


def positions_now(goal: Goal) -> dict[str, TargetGroup]:
    return {
        name: TargetGroup("EMPTY", {PLACE: Committed(at)})
        for name, at in goal.positions_now.items()
    }


def test_who_has_gone_on_since_the_check_is_left_where_it_is() -> None:
    goal = Goal({"a": 3, "b": 3})
    before = positions_now(goal)
    goal.positions_now["b"] = 12
    (step,) = move_in_steps(goal, before, wanted("a", "b"))  # type: ignore[arg-type]
    assert goal.positions_now == {"a": 10, "b": 12}
    assert {item.checkpoint.group_id: item.kept and item.kept.reason for item in step} == {
        "a": None,
        "b": BEHIND,
    }


def test_an_end_of_before_it_has_gone_on_says_nothing_of_where_it_stands() -> None:
    """The log has grown meanwhile: only a group that stands where it stood, behind the end that was
    asked for since, stands behind what the cluster has lost."""
    goal = Goal({"reads": 3, "lost": 300})
    before = {
        name: replace(group, ends={PLACE: 150}) for name, group in positions_now(goal).items()
    }
    goal.positions_now["reads"] = 200
    (step,) = move_in_steps(goal, before, wanted("reads", "lost"))  # type: ignore[arg-type]
    assert goal.positions_now == {"reads": 200, "lost": 10}
    assert [one.kept and one.kept.reason for one in step] == [BEHIND, None]


def test_steps_are_small_and_one_that_fails_holds_up_nobody() -> None:
    goal = Goal(dict.fromkeys("abcde", 3))
    before = positions_now(goal)
    goal.silent, goal.dead = {"a"}, {"c"}
    steps = list(move_in_steps(goal, before, wanted(*"abcde"), at_once=2))  # type: ignore[arg-type]
    assert goal.asked == [{"a", "b"}, {"c", "d"}, {"e"}]
    refused = {item.checkpoint.group_id: item.refused for step in steps for item in step}
    assert refused == {"a": "timed out", "b": None, "c": "nobody", "d": "nobody", "e": None}
    assert goal.positions_now == {"a": 3, "b": 10, "c": 3, "d": 3, "e": 10}


class HalfListed(Goal):
    """A goal of which one broker lists no groups: of those that it coordinates, and of those that
    are nowhere, only a coordinator knows who is in them. That of `mute` ones does not answer."""

    def __init__(self, members: Mapping[str, int], mute: Iterable[str] = (), why: str = "") -> None:
        super().__init__({"listed": 3, **dict.fromkeys(members, 3)})
        self.in_them, self.mute = members, set(mute)
        self.errors = (why,) if why else ()
        self.described: list[list[str]] = []

    def listing(self) -> Listing:
        return Listing({"listed": "EMPTY"}, self.errors)

    def members(self, groups: Iterable[str]) -> GroupMembers:
        self.described.append(sorted(groups))
        told = {
            group: [("client", True)] * self.in_them.get(group, 0)
            for group in groups
            if group not in self.mute
        }
        return GroupMembers(told, dict.fromkeys(self.mute, "its coordinator is away"))


def test_a_group_that_no_broker_listed_is_none_only_if_its_coordinator_says_so() -> None:
    goal = HalfListed({"reads": 1, "rests": 0}, {"mute"}, "broker 2: timed out")
    groups, errors = target_groups(goal, ["listed", "reads", "rests", "new", "mute"])  # type: ignore[arg-type]
    assert goal.described == [["mute", "new", "reads", "rests"]]
    active = {name: group.is_active for name, group in groups.items()}
    assert active == {"listed": False, "reads": True, "rests": False, "new": False}
    assert set(errors) == {"mute"} and "its coordinator is away" in errors["mute"]
    assert goal.asked == [{"listed", "rests", "new"}], "positions of the others mean nothing"


def test_where_all_brokers_list_their_groups_no_coordinator_is_asked_for_members() -> None:
    goal = HalfListed({})
    groups, errors = target_groups(goal, ["listed", "new"])  # type: ignore[arg-type]
    assert {name: group.state for name, group in groups.items()} == {"listed": "EMPTY", "new": None}
    assert not errors and goal.described == []


def flow(name: str) -> ResolvedFlow:
    source, _, target = name.partition("->")
    return ResolvedFlow(name, source, target, Flow(), Naming("default", source))


def test_one_process_at_a_time(tmp_path: Path) -> None:
    lake: Any = SimpleNamespace(leases=place_of(tmp_path / "leases"))
    with sole_mover(lake, flow("east->west")):
        with sole_mover(lake, flow("north->west")):
            pass
        for name in ("east->west", "west->east"):
            with pytest.raises(LeaseTaken), sole_mover(lake, flow(name), 0.3):
                pass
    with sole_mover(lake, flow("east->west")):
        pass


def test_a_lake_that_has_no_leases_is_no_hindrance() -> None:
    class Reading:
        @property
        def leases(self) -> Path:
            raise LakeError("opened to be read")

    lake: Any = Reading()
    done = []
    with sole_mover(lake, flow("east->west")):
        done.append(True)
    assert done


def test_a_lake_without_locks_is_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(_handle: object, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    lake: Any = SimpleNamespace(leases=place_of(tmp_path / "leases"))
    monkeypatch.setattr(fcntl, "flock", no_locks)
    with sole_mover(lake, flow("east->west")) as unsure:
        assert unsure == []


def test_where_another_host_may_still_move_groups_it_is_said_once(tmp_path: Path) -> None:
    """A host that died amid its moves must not keep groups from being moved, nor be passed over
    without a word."""
    lake: Any = SimpleNamespace(leases=place_of(tmp_path / "leases"))
    with sole_mover(lake, flow("east->west")):
        (file,) = (tmp_path / "leases").glob("*.lock")
    other = {"host": "elsewhere", "pid": 7, "since": "2026-01-01T00:00:00+00:00"}
    file.write_text(json.dumps(other), encoding="utf-8")
    with sole_mover(lake, flow("east->west")) as unsure:
        assert ["process 7 on elsewhere" in sentence for sentence in unsure] == [True]
        with pytest.raises(LeaseTaken), sole_mover(lake, flow("west->east")):
            pass
    with sole_mover(lake, flow("east->west")) as unsure:
        assert unsure == []


def test_where_a_store_does_not_answer_no_group_is_moved() -> None:
    """Whether another process moves groups is not known then."""

    class Silent:
        def __truediv__(self, _name: str) -> "Silent":
            return self

        def names(self) -> list[str]:
            raise OSError("no answer")

    lake: Any = SimpleNamespace(leases=Silent())
    with pytest.raises(LakeError, match="no answer"), sole_mover(lake, flow("east->west")):
        pytest.fail("it moves groups")
