"""What was seen of a log long ago says what is owed of it, where no record of it was landed."""

from pathlib import Path

import pytest

from mirrorlake.lake.lake import Lake
from mirrorlake.lake.table_upkeep import remove_history, thin_samples
from tests.support.lake_rows import FLOW, ago, append, no_session, opened, sample, write_file

DAY = 86_400.0


def milliseconds(seconds_ago: float) -> int:
    return int(ago(seconds_ago).timestamp() * 1_000)


def seen(lake: Lake) -> dict[tuple[int, int], int | None]:
    rows = lake.ask("covered_ends", prefix="east->")
    return {(row["partition"], row["generation"]): row["covered"] for row in rows}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Of partition 0 no record could be landed since it was seen first, and its source has deleted
    them; partition 1 began another generation since."""
    lake, _ = opened(no_session, write_file(tmp_path))
    unread = {"staged_end": 0, "generation": 0}
    append(lake, "positions", [sample(100 * DAY, 0, 10, **unread)])
    append(lake, "positions", [sample(50 * DAY, 0, 10, **unread, source_start=4)])
    append(lake, "positions", [sample(0, 0, 10, **unread, source_start=10)])
    other = {"partition": 1, "staged_end": 0}
    append(lake, "positions", [sample(100 * DAY, 0, 9, **other, generation=0, source_start=7)])
    append(lake, "positions", [sample(99 * DAY, 0, 9, **other, generation=1, source_start=2)])
    append(lake, "positions", [sample(0, 0, 9, **other, generation=1, source_start=9)])
    return lake


def test_what_is_owed_of_a_log_outlives_its_history(lake: Lake) -> None:
    owed = {(0, 0): 0, (1, 0): 7, (1, 1): 2}
    assert seen(lake) == owed
    assert thin_samples(lake, milliseconds(DAY), milliseconds(7 * DAY)) == 0
    assert remove_history(lake, "positions", milliseconds(20 * DAY)) == 1
    assert seen(lake) == owed


def test_what_could_not_be_sampled_says_nothing_of_where_a_log_began(lake: Lake) -> None:
    append(
        lake,
        "positions",
        [{"flow": FLOW, "topic": "orders", "partition": 2, "sampled_at": ago(60)}],
    )
    assert seen(lake)[2, 0] is None
    began = sample(0, 0, 9, partition=2, staged_end=0, source_start=5)
    append(lake, "positions", [began])
    assert seen(lake)[2, 0] == 5


def test_a_clock_that_was_ahead_when_a_log_was_seen_first_takes_nothing_from_what_is_owed(
    tmp_path: Path,
) -> None:
    """What was sampled first has the latest time, and the log has lost records since."""
    lake, _ = opened(no_session, write_file(tmp_path))
    unread = {"staged_end": 0, "generation": 0}
    append(lake, "positions", [sample(20 * DAY, 0, 10, **unread)])
    append(lake, "positions", [sample(60 * DAY, 0, 10, **unread, source_start=4)])
    append(lake, "positions", [sample(0, 0, 10, **unread, source_start=9)])
    owed = {(0, 0): 0}
    assert seen(lake) == owed
    thin_samples(lake, milliseconds(DAY), milliseconds(7 * DAY))
    remove_history(lake, "positions", milliseconds(10 * DAY))
    assert seen(lake) == owed
