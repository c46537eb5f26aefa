"""What a move of groups tells grows no faster than groups and positions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.failover.left_over import Drained, left_over, warnings_of
from mirrorlake.groups.inventory import GroupInventory
from mirrorlake.groups.moves import MoveResult, standing_of
from mirrorlake.groups.shared_topics import Direction, Route
from mirrorlake.kafka.connections import Connections
from mirrorlake.offsets.positions import Committed, Translated
from mirrorlake.testing import MemoryLake
from tests.support.growth import LINEAR, SORTED, growth
from tests.support.lake_rows import FLOW, write_file


def inventory(size: int) -> GroupInventory:
    """Groups of each kind that something is told of."""
    groups = [f"g{n}" for n in range(size)]
    return GroupInventory(
        (),
        states=dict.fromkeys(groups, "STABLE"),
        errors=dict.fromkeys(groups, "no answer"),
        not_moved=dict.fromkeys(groups, "excluded"),
        closed={f"t{n}": "its mirror is gone" for n in range(size)},
        lost={(f"g{n % 7}", f"t{n % 5}", n): n for n in range(size)},
        unselected={group: tuple(f"t{n}" for n in range(9)) for group in groups},
    )


def results(size: int) -> list[MoveResult]:
    places = [(f"g{n}", f"t{n}", 0) for n in range(size)]
    return [
        MoveResult(
            standing_of(key, Committed(10), Translated(*key[1:], 9, exact=False)), "kept", None, "x"
        )
        for key in places
    ]


@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_left_over_grows_as_the_groups(tmp_path: Path, reverse: bool) -> None:
    flow = load_topology(write_file(tmp_path)).flow(FLOW)
    direction = Direction(flow, reverse)

    def made(size: int) -> Callable[[], object]:
        there, done = inventory(size), results(size)
        drained = [Drained(f"f{n}", False, missing=("t-0",), held=("x",)) for n in range(size)]
        return lambda: left_over(direction, there, done, drained)

    assert growth(made) < SORTED


def test_warnings_grow_as_the_groups(tmp_path: Path) -> None:
    topology = load_topology(write_file(tmp_path))
    lake: Any = MemoryLake({"open_incidents_of": []})
    route = Route(topology.flow(FLOW), lake=lake, connections=Connections(topology))

    def made(size: int) -> Callable[[], object]:
        there = inventory(size)
        return lambda: warnings_of(route, there)

    assert growth(made) < LINEAR
