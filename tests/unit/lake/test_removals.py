"""What the stage has not, as `maintain` and landing note it: in a lake in a folder without
Spark."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from mirrorlake.config.lake import Lake as Location
from mirrorlake.config.lake import Maintenance
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.maintain import maintain
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.retention import Removal
from mirrorlake.lake.table_upkeep import note_removals, removals_from
from tests.support.lake_rows import (
    ago,
    append,
    no_session,
    now_of,
    opened,
    run_row,
    staged,
    write_file,
)

DAY = 86_400


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


def test_nothing_is_deleted_behind_records_that_were_read_again(tmp_path: Path) -> None:
    """They landed later. A flow that came after that went on behind the hole without a word: it
    looks in front of what the stage holds."""
    lake, topology = opened(no_session, write_file(tmp_path))
    append(lake, "records", staged(range(40, 101), 30 * DAY))
    append(lake, "records", staged([*range(40), *range(101, 110)], 2 * DAY))
    append(lake, "offset_map", [run_row(0, 109)])
    assert maintain(lake, topology, Maintenance(retention_days=7))["records"]["removed"] == 0
    assert removals_from(lake, "east") == []
    assert maintain(lake, topology, Maintenance(retention_days=1))["records"]["removed"] == 109
    assert [row["offset"] for row in now_of(lake).table_rows("records")] == [109]
    assert removals_from(lake, "east") == [Removal("east", "orders", 0, 0, 0, 109)]


def test_what_a_killed_run_noted_is_noted_anew_by_the_one_that_deletes_it(tmp_path: Path) -> None:
    """A target topic that was made again in between still wants it. The time of the first note said
    that the topic never could have had it, and the flow went on behind it without a word."""
    lake, topology = opened(no_session, write_file(tmp_path))
    append(lake, "records", staged(range(100), 2 * DAY))
    append(lake, "offset_map", [run_row(0, 99)])
    noted = {**Removal("east", "orders", 0, 0, 0, 99).__dict__, "removed_at": ago(DAY / 2)}
    lake.append("removals", rows_of("removals", [noted]))
    began = ago(3_600)
    (before,) = removals_from(lake, "east")
    assert not before.is_later(began.replace(tzinfo=None))
    assert maintain(lake, topology, Maintenance(retention_days=1))["records"]["removed"] == 99
    (removal,) = removals_from(lake, "east")
    assert removal == before and removal.is_later(began.replace(tzinfo=None))


def test_hosts_differ_in_what_they_call_now() -> None:
    """A clock that is behind by some minutes made a later deletion an earlier one."""
    noted = ago(0)
    removal = Removal("east", "orders", 0, 0, 0, 99, noted)
    assert removal.is_later(noted + timedelta(minutes=4))
    assert not removal.is_later(noted + timedelta(minutes=6))
    assert not removal.is_later(None)
