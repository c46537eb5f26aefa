"""What the stage has not, as `maintain` and landing note it: in a lake in a folder without
Spark."""

from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from mirrorlake.config.lake import Lake as Location
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.retention import Removal
from mirrorlake.lake.table_upkeep import note_removals, removals_from


def _no_session() -> Any:
    raise AssertionError("nothing here needs Spark")


def test_what_is_noted_grows_and_is_not_written_twice(tmp_path: Path) -> None:
    lake = open_lake(_no_session, Location(path=str(tmp_path / "lake")), tmp_path)
    other = Removal("east", "orders", 0, 1, 0, 3)
    note_removals(lake, [])
    note_removals(lake, [Removal("east", "orders", 0, 0, 0, 10), other])
    version = DeltaTable(str(tmp_path / "lake/removals")).version()
    note_removals(
        lake, [Removal("east", "orders", 0, 0, 2, 10), Removal("east", "orders", 0, 1, 0, 3)]
    )
    assert DeltaTable(str(tmp_path / "lake/removals")).version() == version
    note_removals(
        lake, [Removal("east", "orders", 0, 0, 10, 80), Removal("west", "orders", 0, 0, 0, 5)]
    )
    assert sorted(removals_from(lake, "east"), key=str) == [
        Removal("east", "orders", 0, 0, 0, 80),
        other,
    ]
    assert removals_from(lake, "west") == [Removal("west", "orders", 0, 0, 0, 5)]
