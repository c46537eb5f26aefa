"""What turns, plans and answers about consumer groups cost grows no faster than the positions."""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.groups.checkpoint_plan import Checkpoint, plan_checkpoints, to_translate
from mirrorlake.groups.checkpoint_sync import Checkpoints
from mirrorlake.groups.mover import move_in_steps, target_groups
from mirrorlake.groups.moves import documents, mark_synced, plan_moves, standing_of
from mirrorlake.groups.named_groups import refuse_unknown
from mirrorlake.groups.readable import Sides, readable_positions
from mirrorlake.groups.sync_plan import TargetGroup
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.groups import GroupPositions, Listing
from mirrorlake.lake.changes import MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.reader import Frames, QueryRows
from mirrorlake.offsets.generations import Begun, SourceGenerations
from mirrorlake.offsets.positions import (
    Committed,
    LogEnds,
    PartitionGeneration,
    TopicAndPartition,
    Translated,
)
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.growth import LINEAR, Made, Name, growth
from tests.support.lake_rows import FLOW, write_file

Key = tuple[str, str, int]


def keys(size: int) -> list[Key]:
    """One group of every topic: all grow together."""
    return [(Name(f"g{n}"), Name(f"t{n}"), 0) for n in range(size)]


def same_topic(size: int) -> list[Key]:
    """One group with a position in each partition of one topic."""
    return [(Name("g"), Name("t"), n) for n in range(size)]


def row(key: Key, position: int = 10, **others: Any) -> Checkpoint:
    return Checkpoint(*key, position, target_topic=key[1], target_position=position, **others)


def translated(asked: Collection[tuple[str, int, int]]) -> dict[tuple[str, int, int], Translated]:
    return {one: Translated(*one, exact=one[2] < 20) for one in asked}


SIDES = Sides(
    translated,
    lambda wanted: dict.fromkeys(wanted, 3),
    lambda wanted: dict.fromkeys(wanted, 25),
    lambda wanted: dict.fromkeys(wanted, LogEnds(5, 22)),
)


class Goal:
    """A cluster with groups: what they committed, how they stand."""

    def __init__(self, all_keys: Iterable[Key], position: int | None) -> None:
        self.at: dict[str, dict[TopicAndPartition, Committed]] = {}
        for group, *place in all_keys:
            at = {} if position is None else {tuple(place): Committed(position)}
            self.at.setdefault(group, {}).update(at)  # type: ignore[arg-type]

    def listing(self) -> Listing:
        return Listing(dict.fromkeys(self.at, "EMPTY"))

    def other_kinds(self, _: Listing) -> frozenset[str]:
        return frozenset()

    def positions(self, groups: Iterable[str]) -> GroupPositions:
        return GroupPositions({group: self.at[group] for group in groups if group in self.at})

    def move(
        self, moves: Mapping[str, Mapping[TopicAndPartition, Committed]]
    ) -> dict[tuple[str, str, int], str]:
        return {}


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


class Running:
    """A running flow, whose partitions are all landed in one generation."""

    def __init__(self, generation: int = 0, target_generation: int = 0) -> None:
        self.landed, self.target = generation, target_generation

    def mirrors(self, _: str) -> bool:
        return True

    def refuses(self, _: str) -> bool:
        return False

    def generation(self, _: TopicAndPartition) -> int:
        return self.landed

    def target_generation(self, _: str) -> int:
        return self.target

    def check_targets(self) -> None:
        """They are as they were."""

    def reached(self, _: object) -> None:
        return None


class Mapped(MemoryLake):
    """A lake whose map leads every position to the same one, and knows them up to 20."""

    def query_rows(self, name: str, frames: Frames | None = None, **args: object) -> QueryRows:
        if name != "translate_forward" or frames is None:
            return super().query_rows(name, frames, **args)
        asked: Any = frames["asked"]
        names = ("asked_topic", "partition", "asked_offset", "topic", "offset")
        common = {"exact": True, "ahead": True, "mapped": True, "known": True, "mapped_end": 20}
        return QueryRows(
            {**common, **dict(zip(names, (*one, one[0], one[2]), strict=True))}
            for one in asked.rows
        )


class Turn:
    """The groups of a flow after a turn in which all stood at 10; the target has none of them."""

    def __init__(self, tmp_path: Path, all_keys: list[Key]) -> None:
        topology = load_topology(write_file(tmp_path))
        places = {topic: [100] * 300 for _, topic, _ in all_keys}
        self.cluster: Any = MemoryCluster("east", places)
        connections = Connections(topology, dict.fromkeys(topology.clusters, self.cluster))
        self.source, self.target = Goal(all_keys, 10), Goal(all_keys, None)
        groups: Any = {"east": self.source, "west": self.target}
        connections.groups = groups.__getitem__  # type: ignore[method-assign]
        lake = Mapped(dict.fromkeys(("newest_checkpoints", "mapped_ends"), ()))
        lake.answers.update(left_out_groups=(), generation_begins=())
        deployment = Deployment(lake, connections, MemoryLog())  # type: ignore[arg-type]
        self.running = Running()
        published: Any = SimpleNamespace(publish=list)
        self.groups = Checkpoints(topology.flow(FLOW), deployment, self.running, published)
        assert len(self.groups.checkpoint()) == len(all_keys)

    def all_stand_at(self, position: int | None) -> "Turn":
        for positions in self.source.at.values():
            moved = {} if position is None else dict.fromkeys(positions, Committed(position))
            positions.clear()
            positions.update(moved)
        return self


TURNS: dict[str, Callable[[Turn], Callable[[], object]]] = {
    "nothing moved": lambda turn: turn.groups.checkpoint,
    "all moved": lambda turn: turn.all_stand_at(12).groups.checkpoint,
    "all are gone": lambda turn: turn.all_stand_at(None).groups.checkpoint,
    "all are moved at the target": lambda turn: turn.groups.sync,
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


@pytest.mark.parametrize("generation", [{"landed": 1}, {"target": 1}])
@pytest.mark.parametrize("shape", [keys, same_topic])
def test_a_turn_after_new_generations_grows_as_its_positions(
    tmp_path: Path, generation: dict[str, int], shape: Callable[[int], list[Key]]
) -> None:
    def made(size: int) -> Callable[[], object]:
        turn = Turn(tmp_path, plain(shape(size)))
        turn.running.__dict__.update(generation)
        return turn.groups.checkpoint

    assert growth(made) < LINEAR
