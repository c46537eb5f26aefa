"""What `maintain` deleted of a log that is over says nothing of the one that took its place: a
record of that which is on its way would be called removed."""

from pathlib import Path

import pytest

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.retention import Removal
from mirrorlake.lake.table_upkeep import note_removals
from tests.support.lake_rows import FLOW, ago, no_session, opened, write_file


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Offsets 0 to 29 were deleted of the first generation."""
    lake = opened(no_session, write_file(tmp_path))[0]
    note_removals(lake, [Removal("east", "orders", 0, 0, 0, 30)])
    return lake


def begin(lake: Lake, topic: str, partition: int | None, first: int | None) -> None:
    place = {"source_cluster": "east", "topic": topic, "partition": partition}
    begun = {"generation": 1, "topic_id": "its id", "started_at": ago(0), "first_offset": first}
    lake.append("generations", rows_of("generations", [place | begun]))


def removed(lake: Lake) -> list[int]:
    place = {"flow": FLOW, "topic": "orders", "partition": 0}
    return [
        offset
        for offset in (0, 19, 20, 29, 30)
        if lake.now.query_rows("trace_around", offset=offset, **place)[0]["removed_at"] is not None
    ]


def test_of_the_log_that_is_there(lake: Lake) -> None:
    assert removed(lake) == [0, 19, 20, 29]
    begin(lake, "payments", None, None)
    begin(lake, "orders", 1, 0)
    assert removed(lake) == [0, 19, 20, 29]


def test_not_of_a_topic_that_was_made_again(lake: Lake) -> None:
    begin(lake, "orders", None, None)
    assert removed(lake) == []


def test_up_to_where_a_log_went_back(lake: Lake) -> None:
    begin(lake, "orders", 0, 20)
    assert removed(lake) == [0, 19]
