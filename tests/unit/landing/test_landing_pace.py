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
    first_limit,
    in_small_answers,
    limit_after_failure,
    next_limit,
    reads_few_partitions,
)

MB = 1 << 20


def batches(
    bytes_per_second: float, backlog: int, overhead: float = 0.3
) -> list[tuple[int, float]]:
    """The batches (bytes, seconds) in which a backlog comes over a link."""
    limit, found = None, []
    while backlog:
        size = min(backlog, first_limit(backlog) if limit is None else limit)
        found.append((size, overhead + size / bytes_per_second))
        backlog -= size
        limit = next_limit(limit, *found[-1])
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
    assert reads_few_partitions(8 * MB, 8 * MB)
    assert not reads_few_partitions(8 * MB, MB), "it has caught up: all partitions are waited at"
    assert not reads_few_partitions(None, 8 * MB) and not reads_few_partitions(
        MOST_BYTES, MOST_BYTES
    )


def test_little_comes_in_one_batch() -> None:
    assert [size for size, _ in batches(MB, LITTLE_BYTES)] == [LITTLE_BYTES]


def test_small_batches_of_a_flow_that_has_caught_up_say_nothing() -> None:
    assert next_limit(None, 1_000, 0.3) is None
    assert next_limit(MOST_BYTES, 1_000, 0.3) == MOST_BYTES


@given(
    st.none() | st.integers(LEAST_BYTES, MOST_BYTES),
    st.integers(0, 2 * MOST_BYTES),
    st.floats(0, 1e6),
)
def test_a_limit_stays_within_its_bounds(limit: int | None, size: int, seconds: float) -> None:
    for found in (next_limit(limit, size, seconds), limit_after_failure(limit, seconds)):
        assert found is None or LEAST_BYTES <= found <= MOST_BYTES


def test_what_was_not_finished_is_tried_in_smaller_parts_and_answers() -> None:
    limit: int | None = MOST_BYTES
    for _ in range(3):
        limit = limit_after_failure(limit, 60.0)
        assert limit is not None and in_small_answers(limit) and limit <= 4 * MB
    assert limit_after_failure(MOST_BYTES, 1.0) == MOST_BYTES
    assert in_small_answers(None) and not in_small_answers(MOST_BYTES)
