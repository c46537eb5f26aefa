"""Where groups of a cluster stood, by what several flows from there had read."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.config.lake import Lake as Location
from mirrorlake.groups.checkpoint_plan import GONE
from mirrorlake.groups.checkpoint_table import positions_as_of, positions_since
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.opening import open_lake
from mirrorlake.offsets.positions import Committed

BEGAN = datetime(2026, 3, 1, tzinfo=timezone.utc)
ALWAYS = 1 << 50


def _no_session() -> Any:
    raise AssertionError("nothing here needs Spark")


def row(
    flow: str, minute: int, position: int, reason: str | None = None, generation: int | None = 0
) -> dict[str, Any]:
    at = BEGAN + timedelta(minutes=minute)
    place = {
        "flow": flow,
        "group_id": "app",
        "topic": "orders",
        "partition": 0,
        "generation": generation,
    }
    return {
        **place,
        "source_position": position,
        "checkpointed_at": at,
        "read_at": at,
        "reason": reason,
    }


WEST, NORTH, OTHER = "east->west", "east->north", "south->west"


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([row(WEST, 1, 10), row(NORTH, 2, 20)], (20, 0)),
        ([row(WEST, 1, 10), row(NORTH, 2, 20), row(WEST, 3, 20, GONE)], (20, 0)),  # it was narrowed
        ([row(WEST, 1, 10), row(WEST, 3, 10, GONE)], None),
        ([row(WEST, 1, 10, GONE), row(WEST, 3, 5)], (5, 0)),
        ([row(WEST, 5, 90), row(NORTH, 2, 20, generation=1)], (20, 1)),
        ([row(WEST, 1, 10, generation=None)], (10, None)),
        ([row(OTHER, 1, 10)], None),
    ],
)
def test_each_flow_speaks_for_itself(
    rows: list[dict[str, Any]], wanted: tuple[int, int | None] | None, tmp_path: Path
) -> None:
    lake = open_lake(_no_session, Location(path=str(tmp_path / "lake")), tmp_path)
    lake.append("checkpoints", rows_of("checkpoints", rows))
    found = positions_as_of(lake.reader, "east", ALWAYS)
    place = ("app", "orders", 0)
    assert found == ({} if wanted is None else {place: (Committed(wanted[0]), wanted[1])})


def test_what_was_read_behind_a_time_alone(tmp_path: Path) -> None:
    """By any flow from there."""
    lake = open_lake(_no_session, Location(path=str(tmp_path / "lake")), tmp_path)
    rows = [row(WEST, 5, 10), row(WEST, 7, 20), row(NORTH, 6, 20), row(OTHER, 1, 10)]
    lake.append("checkpoints", rows_of("checkpoints", rows))
    place, first = ("app", "orders", 0), BEGAN + timedelta(minutes=5)
    for minutes, wanted in ((4, {place: first}), (5, {}), (6, {})):
        until_ms = int((BEGAN + timedelta(minutes=minutes)).timestamp() * 1_000)
        assert positions_since(lake.reader, "east", until_ms) == wanted


@pytest.mark.parametrize(
    ("name", "synced"), [(None, False), ("east.orders", False), ("orders", True)]
)
def test_a_position_is_behind_what_its_own_target_topic_has_lost(
    tmp_path: Path, name: str | None, synced: bool
) -> None:
    """Not behind what one of an earlier policy lost. Where none is named, it may be any."""
    lake = open_lake(_no_session, Location(path=str(tmp_path / "lake")), tmp_path)
    checkpoint = {**row(WEST, 1, 10), "target_topic": "east.orders", "target_position": 10}
    checkpoint |= {"target_generation": 0, "synced": True}
    lake.append("checkpoints", rows_of("checkpoints", [checkpoint]))
    lost = {"flow": WEST, "at": BEGAN, "kind": "target_lost", "topic": "orders", "partition": 0}
    lost |= {"target_generation": 0, "target_offset": 5, "target_topic": name}
    lake.append("incidents", rows_of("incidents", [lost]))
    assert [one["synced"] for one in lake.ask_table("group_positions")] == [synced]
