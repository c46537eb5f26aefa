"""How much a landing batch may hold, by how long the ones before it took."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.landing.pace import (
    FIRST_BYTES,
    LEAST_BYTES,
    LITTLE_BYTES,
    LONG_SECONDS,
    MOST_BYTES,
    UNKNOWN_RECORD_BYTES,
    Pace,
    first_limit,
)

MB = 1 << 20


def batches(
    bytes_per_second: float, backlog: int, overhead: float = 0.3
) -> list[tuple[int, float]]:
    """The batches (bytes, seconds) in which a backlog comes over a link."""
    pace, found = Pace(), []
    while backlog:
        size = min(backlog, first_limit(backlog) if pace.limit is None else pace.limit)
        found.append((size, overhead + size / bytes_per_second))
        backlog -= size
        pace = pace.after(*found[-1])
    return found


def test_a_gigabyte_over_a_megabyte_a_second_comes_in_batches_of_some_seconds() -> None:
    found = batches(MB, 1 << 30)
    assert found[0] == (FIRST_BYTES, pytest.approx(16.3))
    assert all(2 < seconds <= LONG_SECONDS for _, seconds in found[1:-1])


def test_a_fast_link_has_large_batches_from_the_third_on() -> None:
    found = batches(150 * MB, 20 << 30)
    assert found[2][0] > 1_000_000_000
    assert sum(seconds for _, seconds in found) < 1.05 * (20 << 30) / (150 * MB)


def test_only_what_is_known_to_be_slow_and_has_a_backlog_is_read_few_partitions_at_a_time() -> None:
    slow = Pace(8 * MB)
    assert slow.reads_few_partitions(8 * MB)
    assert not slow.reads_few_partitions(MB), "it has caught up: all partitions are waited at"
    assert not Pace().reads_few_partitions(8 * MB)
    assert not Pace(MOST_BYTES).reads_few_partitions(MOST_BYTES)


def test_little_comes_in_one_batch() -> None:
    assert [size for size, _ in batches(MB, LITTLE_BYTES)] == [LITTLE_BYTES]


def test_small_batches_of_a_flow_that_has_caught_up_say_nothing() -> None:
    for pace in (Pace(), Pace(MOST_BYTES)):
        assert pace.after(1_000, 0.3) == pace


@given(
    st.none() | st.integers(LEAST_BYTES, MOST_BYTES),
    st.integers(0, 2 * MOST_BYTES),
    st.floats(0, 1e6),
)
def test_a_limit_stays_within_its_bounds(limit: int | None, size: int, seconds: float) -> None:
    for pace in (Pace(limit).after(size, seconds), Pace(limit).after_failure(seconds)):
        assert pace.limit is None or LEAST_BYTES <= pace.limit <= MOST_BYTES


def test_what_was_not_finished_is_tried_in_smaller_parts_and_answers() -> None:
    pace = Pace(MOST_BYTES)
    for _ in range(3):
        pace = pace.after_failure(60.0)
        assert pace.limit is not None and pace.in_small_answers and pace.limit <= 4 * MB
    assert Pace(MOST_BYTES).after_failure(1.0) == Pace(MOST_BYTES)
    assert Pace().in_small_answers and not Pace(MOST_BYTES).in_small_answers


def test_how_large_records_are_is_kept_until_they_are_clearly_otherwise() -> None:
    pace = Pace().after(1_000, 0.3, {"a": 100.0, "b": 10.0})
    assert pace.record_bytes == {"a": 100.0, "b": 10.0}
    assert pace.after(1_000, 0.3, {"a": 110.0}).record_bytes is pace.record_bytes
    assert pace.after(1_000, 0.3, {"a": 200.0}).record_bytes == {"a": 200.0, "b": 10.0}
    assert pace.after_failure(60.0).record_bytes is pace.record_bytes
    assert pace.size_of({("a", 0): 2, ("b", 3): 1, ("new", 0): 1}) == 210 + UNKNOWN_RECORD_BYTES


@given(st.lists(st.floats(0.0, 30.0), max_size=9), st.floats(0.0, 2.0), st.floats(0.0, 5.0))
def test_small_batches_are_as_far_apart_as_commits_want_within_bounds(
    seconds: list[float], least: float, most: float
) -> None:
    pace = Pace(7, {"a": 1.0}).after_commits(seconds)
    assert (pace.limit, pace.record_bytes) == (7, {"a": 1.0})
    assert pace.after_commits(seconds) == pace, "the same again says nothing new"
    apart = pace.apart_seconds(least, most)
    assert apart >= least and (apart <= most or apart == least)
    slower = pace.after_commits([second * 2 + 0.1 for second in seconds])
    assert slower.apart_seconds(least, most) >= apart


def test_a_commit_in_a_folder_keeps_no_batch_back_and_one_in_a_store_does() -> None:
    def apart(seconds: float) -> float:
        return Pace().after_commits([seconds] * 9).apart_seconds(0.35, 1.0)

    assert [apart(seconds) for seconds in (0.012, 0.1, 0.15, 3.0)] == [0.35, 0.5, 0.75, 1.0]
    one_slow = [0.012] * 6 + [4.0, 0.1, 2.0]
    assert Pace().after_commits(one_slow).apart_seconds(0.35, 1.0) == 0.35, "the usual one counts"
    assert Pace().after_commits([4.0, 4.0]) == Pace(), "too few to know"
