"""Where a landing batch ends, and how it is shared out over tasks."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from mirrorlake.landing.pace import (
    LEAST_BYTES,
    MOST_BYTES,
    SMALL_ANSWERS_BYTES,
    UNKNOWN_RECORD_BYTES,
    Pace,
)
from mirrorlake.landing.ranges import UNDIVIDED, news_of, next_ranges, shared_out
from mirrorlake.offsets.positions import TopicAndPartition, offset_count

KEYS = st.tuples(st.sampled_from(["orders", "heartbeats", "b"]), st.integers(0, 5))
LOGS = st.dictionaries(
    KEYS, st.tuples(st.integers(0, 1_000_000), st.integers(-10, 200_000)), max_size=8
)


def ends_of(logs: dict[TopicAndPartition, tuple[int, int]]) -> tuple[dict, dict]:
    reached = {key: first for key, (first, _) in logs.items()}
    return reached, {key: max(0, first + count) for key, (first, count) in logs.items()}


def next_ends(reached: dict, log_ends: dict, max_records: int, *args: Any, **others: Any) -> dict:
    """Where the next batch ends, for each partition of `reached`."""
    ranges = next_ranges(news_of(reached, log_ends), max_records, *args, **others)
    assert all(first == reached[key] < end for key, (first, end) in ranges.items())
    return {**reached, **{key: end for key, (_, end) in ranges.items()}}


@given(LOGS, st.integers(1, 300_000))
def test_a_batch_never_goes_back_nor_beyond_the_log_and_has_a_bound(
    logs: dict, max_records: int
) -> None:
    reached, ends = ends_of(logs)
    found = next_ends(reached, ends, max_records)
    assert found.keys() == reached.keys()
    assert all(reached[key] <= end <= max(reached[key], ends[key]) for key, end in found.items())
    # at least one of each
    assert sum(found[key] - reached[key] for key in found) <= max_records + len(found)


@given(LOGS, st.integers(20_000, 300_000))
def test_batch_after_batch_everything_is_read(logs: dict, max_records: int) -> None:
    reached, ends = ends_of(logs)
    wanted = {key: max(first, ends[key]) for key, first in reached.items()}
    for _ in range(2_000_000 // max_records + 2):
        reached = next_ends(reached, ends, max_records, pace=Pace(MOST_BYTES))
    assert reached == wanted


@given(LOGS, st.integers(1_000, 300_000), st.integers(LEAST_BYTES, SMALL_ANSWERS_BYTES))
@example(
    {("orders", at): (0, count) for at, count in enumerate([11150, 15214, 3852, 11150, 11150])}
    | {("heartbeats", 0): (0, 212)},
    12_864,
    12_864_000,
)
def test_of_a_slow_cluster_everything_is_read_with_few_cuts(
    logs: dict, max_records: int, limit: int
) -> None:
    reached, ends = ends_of(logs)
    wanted = {key: max(first, ends[key]) for key, first in reached.items()}
    while reached != wanted:
        found = next_ends(reached, ends, max_records, pace=Pace(limit))
        moved = {key: found[key] - reached[key] for key in found}
        assert 0 < sum(moved.values()) <= min(max_records, limit / UNKNOWN_RECORD_BYTES) + 1
        assert sum(1 for key, count in moved.items() if count and found[key] < wanted[key]) <= 2
        reached = found


def test_of_a_slow_cluster_what_comes_live_goes_in_front_of_a_backlog_and_the_backlog_goes_on() -> (
    None
):
    reached = {("old", 0): 0, ("old", 1): 0, ("live", 0): 0, ("live", 1): 0}
    ends = {("old", 0): 10**6, ("old", 1): 9 * 10**5, ("live", 0): 300, ("live", 1): 200}
    found = next_ends(reached, ends, 10**9, pace=Pace(1_000 * UNKNOWN_RECORD_BYTES))
    assert found == {("live", 1): 200, ("live", 0): 300, ("old", 1): 0, ("old", 0): 500}
    busy = {**ends, ("live", 0): 900}
    found = next_ends(reached, busy, 10**9, pace=Pace(1_000 * UNKNOWN_RECORD_BYTES))
    assert found == {("live", 1): 200, ("live", 0): 300, ("old", 1): 0, ("old", 0): 500}


def test_what_waits_goes_along_with_others_and_makes_no_batch_by_itself() -> None:
    beats, orders = ("heartbeats", 0), ("orders", 0)
    reached = {beats: 5, orders: 7}
    assert next_ends(reached, {beats: 9, orders: 7}, 100, {beats}) == reached
    assert next_ends(reached, {beats: 9, orders: 8}, 100, {beats}) == {beats: 9, orders: 8}
    assert next_ends(reached, {beats: 9, orders: 7}, 100) == {beats: 9, orders: 7}


def test_a_partition_that_does_not_answer_stays_where_it_is() -> None:
    assert next_ends({("a", 0): 3, ("a", 1): 4}, {("a", 1): 9}, 100) == {("a", 0): 3, ("a", 1): 9}


@given(LOGS, st.dictionaries(st.sampled_from(["orders", "b"]), st.floats(1, 10_000_000)))
def test_a_batch_has_a_bound_in_bytes_too(logs: dict, sizes: dict) -> None:
    reached, ends = ends_of(logs)
    found = next_ends(reached, ends, max_records=10**12, pace=Pace(MOST_BYTES, sizes))
    each = {key: sizes.get(key[0], UNKNOWN_RECORD_BYTES) for key in found}
    one_of_each = sum(each.values())
    assert sum((found[key] - reached[key]) * each[key] for key in found) <= MOST_BYTES + one_of_each
    assert found != reached or ends == reached or all(ends[key] <= reached[key] for key in reached)


RANGES = st.dictionaries(
    st.tuples(st.sampled_from(["t0", "t1", "t2"]), st.integers(0, 9)),
    st.tuples(st.integers(0, 10**9), st.integers(1, 5_000_000)).map(lambda s: (s[0], sum(s))),
    max_size=12,
)


@given(
    RANGES, st.integers(1, 6), st.dictionaries(st.sampled_from(["t0", "t1"]), st.floats(1, 10_000))
)
def test_parts_cover_every_offset_once_in_order(ranges: dict, tasks: int, sizes: dict) -> None:
    parts = shared_out(ranges, tasks, sizes)
    assert len(parts) <= tasks
    joined: list[tuple[tuple[str, int], tuple[int, int]]] = []
    for key, (first, end) in (each for part in parts for each in part.items()):
        if joined and joined[-1][0] == key:
            assert joined[-1][1][1] == first
            joined[-1] = (key, (joined[-1][1][0], end))
        else:
            joined.append((key, (first, end)))
    assert joined == list(ranges.items())


@given(RANGES, st.integers(1, 6))
def test_parts_are_about_as_much_work_each(ranges: dict, tasks: int) -> None:
    total = offset_count(ranges)
    assert all(
        offset_count(part) <= total / tasks + UNDIVIDED + tasks
        for part in shared_out(ranges, tasks)
    )


def test_large_records_weigh_more() -> None:
    ranges = {("small", 0): (0, 900_000), ("large", 0): (0, 100_000)}
    first, second = shared_out(ranges, 2, {"small": 100.0, "large": 10_000.0})
    assert [topic for topic, _ in first] == ["small", "large"]
    assert [topic for topic, _ in second] == ["large"]
