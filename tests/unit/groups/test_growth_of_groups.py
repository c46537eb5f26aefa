"""What turns, plans and answers about consumer groups cost grows no faster than the positions."""

from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from mirrorlake.groups.checkpoint_plan import plan_checkpoints, to_translate
from mirrorlake.groups.mover import move_in_steps, target_groups
from mirrorlake.groups.moves import documents, mark_synced, plan_moves, standing_of
from mirrorlake.groups.named_groups import refuse_unknown
from mirrorlake.groups.readable import Sides, readable_positions
from mirrorlake.groups.sync_plan import TargetGroup
from mirrorlake.offsets.generations import Begun, SourceGenerations
from mirrorlake.offsets.positions import (
    Committed,
    LogEnds,
    PartitionGeneration,
    TopicAndPartition,
    Translated,
)
from tests.support.group_turns import Goal, Key, Turn, row
from tests.support.growth import LINEAR, SAME, Made, Name, growth


def keys(size: int) -> list[Key]:
    """One group of every topic: all grow together."""
    return [(Name(f"g{n}"), Name(f"t{n}"), 0) for n in range(size)]


def same_topic(size: int) -> list[Key]:
    """One group with a position in each partition of one topic."""
    return [(Name("g"), Name("t"), n) for n in range(size)]


def translated(asked: Collection[tuple[str, int, int]]) -> dict[tuple[str, int, int], Translated]:
    return {one: Translated(*one, exact=one[2] < 20) for one in asked}


SIDES = Sides(
    translated,
    lambda wanted: dict.fromkeys(wanted, 3),
    lambda wanted: dict.fromkeys(wanted, 25),
    lambda wanted: dict.fromkeys(wanted, LogEnds(5, 22)),
)


def planned(position: int, asked_again: bool, of: Callable[[int], list[Key]] = keys) -> Made:
    def made(size: int) -> Callable[[], object]:
        committed = {key: Committed(position) for key in of(size)} if asked_again else {}
        newest = {key: row(key) for key in of(size)}
        leads_to = translated({(*key[1:], position) for key in of(size)})
        groups = [key[0] for key in newest]
        return lambda: plan_checkpoints(committed, leads_to, newest, groups)

    return made


def moved(size: int) -> Callable[[], object]:
    checkpoints, goal = [row(key) for key in keys(size)], Goal(keys(size), 3)
    groups, _ = target_groups(goal, goal.at)  # type: ignore[arg-type]
    return lambda: list(move_in_steps(goal, groups, checkpoints))  # type: ignore[arg-type]


def commanded(size: int) -> Callable[[], object]:
    standings = [
        standing_of(key, Committed(10), Translated(*key[1:], 10, exact=True)) for key in keys(size)
    ]
    newest = {key: row(key, synced=True) for key in keys(size)}
    goals = {key[0]: TargetGroup("EMPTY", {key[1:]: Committed(3)}) for key in keys(size)}

    def command() -> object:
        return documents(plan_moves(mark_synced(standings, newest, False), goals, {}, False))

    return command


def set_back(size: int) -> Callable[[], object]:
    """Partitions of one topic that each began a generation by themselves."""
    known = SourceGenerations(Begun("t", 1, n, 5) for n in range(size))
    places = [PartitionGeneration("t", n, 0) for n in range(size)]
    return lambda: [(known.living(at, 9), known.newest(at.topic_partition)) for at in places]


PURE: dict[str, Made] = {
    "checkpoints that stay": planned(10, True),
    "checkpoints that move": planned(12, True),
    "checkpoints that are gone": planned(10, False),
    "checkpoints of one group": planned(12, True, same_topic),
    "what is to be translated": lambda size: (
        lambda: to_translate({key: Committed(10) for key in keys(size)}, {})
    ),
    "readable positions": lambda size: (
        lambda: readable_positions(
            {(*key[1:], offset) for key in keys(size) for offset in (2, 10, 24, 30)}, SIDES
        )
    ),
    "moves in steps": moved,
    "moves by a command": commanded,
    "groups that are named": lambda size: (
        lambda: refuse_unknown(
            [key[0] for key in keys(size)], {key[0] for key in keys(size)}, "there"
        )
    ),
    "partitions that went back": set_back,
}


@pytest.mark.parametrize("case", PURE)
def test_a_plan_grows_as_its_positions(case: str) -> None:
    assert growth(PURE[case]) < LINEAR


TURNS: dict[str, Callable[[Turn], Callable[[], object]]] = {
    "nothing moved": lambda turn: turn.groups.source.checkpoint,
    "all moved": lambda turn: turn.all_stand_at(12).groups.source.checkpoint,
    "all are gone": lambda turn: turn.all_stand_at(None).groups.source.checkpoint,
    "all are moved at the target": lambda turn: turn.groups.target.sync,
}


def plain(all_keys: list[Key]) -> list[Key]:
    """The same with plain texts, which Arrow takes."""
    return [(str(group), str(topic), partition) for group, topic, partition in all_keys]


@pytest.mark.parametrize("shape", [keys, same_topic])
@pytest.mark.parametrize("case", TURNS)
def test_a_turn_grows_as_its_positions(
    tmp_path: Path, case: str, shape: Callable[[int], list[Key]]
) -> None:
    assert growth(lambda size: TURNS[case](Turn(tmp_path, plain(shape(size))))) < LINEAR


def test_what_counts_is_looked_at_once(tmp_path: Path) -> None:
    """Until a row is written, or a generation begins: no turn looks at each position for that."""

    def made(size: int) -> Callable[[], object]:
        turn = Turn(tmp_path, plain(same_topic(size)))
        turn.groups.source.checkpoint()
        newest = turn.groups.source._newest
        assert len(newest.known()) == size
        return newest.known

    assert growth(made) < SAME


@pytest.mark.parametrize("task", ["nothing moved", "all are moved at the target"])
def test_a_turn_in_which_nothing_moved_looks_at_no_position(tmp_path: Path, task: str) -> None:
    """What it decided about the same before is not decided again: hundreds of groups that rest have
    tens of thousands of positions."""

    def made(size: int) -> Callable[[], object]:
        turn = Turn(tmp_path, plain(same_topic(size)))
        for _ in range(3):
            turn.groups.source.checkpoint()
            turn.groups.target.sync()
        return TURNS[task](turn)

    assert growth(made) < SAME


class Shared(dict[TopicAndPartition, int]):
    """Offsets that all groups share."""

    def __eq__(self, _: object) -> bool:
        raise AssertionError("compared once for each group")

    __hash__ = None  # type: ignore[assignment]


def test_what_all_groups_share_is_not_compared_with_each() -> None:
    """Log starts are other objects each minute, and while a leader is silent at each turn."""
    one, other = (TargetGroup("EMPTY", {}, Shared(), Shared()) for _ in range(2))
    assert one == other


@pytest.mark.parametrize("generation", [{"landed": 1}, {"target": 1}])
@pytest.mark.parametrize("shape", [keys, same_topic])
def test_a_turn_after_new_generations_grows_as_its_positions(
    tmp_path: Path, generation: dict[str, int], shape: Callable[[int], list[Key]]
) -> None:
    def made(size: int) -> Callable[[], object]:
        turn = Turn(tmp_path, plain(shape(size)))
        turn.running.__dict__.update(generation)
        return turn.groups.source.checkpoint

    assert growth(made) < LINEAR
