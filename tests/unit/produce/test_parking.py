"""Where more of what a target refused is looked for: only among records like it, and no longer than
it helps."""

import os
import time
from collections.abc import Sequence

import pyarrow as pa
import pytest

from mirrorlake.offsets.parked import Parked, ParkedOffsets
from mirrorlake.produce.parking import Search

LIMIT = 1_000


def rows(
    values: Sequence[bytes | None], keys: Sequence[bytes | None] = (), times: Sequence[int] = ()
) -> pa.RecordBatch:
    count = max(len(values), len(keys), len(times))
    return pa.record_batch(
        {
            "key": pa.array(keys or [None] * count, pa.binary()),
            "value": pa.array(values or [b""] * count, pa.binary()),
            "timestamp": pa.array(times or [0] * count, pa.timestamp("ms", tz="UTC")),
        }
    )


def found(search: Search, batch: pa.RecordBatch, refuses: Sequence[bool]) -> list[tuple[int, bool]]:
    """What was tried, and whether the target refused it."""
    tried = []
    for at in search.suspects(batch):
        tried.append((at, refuses[at]))
        if not refuses[at]:
            search.was_taken()
    return tried


def test_all_that_are_as_large_are_tried_and_small_ones_are_not() -> None:
    values = [os.urandom(2_000 + at if at % 3 == 0 else 100) for at in range(30)]
    search = Search.like("MSG_SIZE_TOO_LARGE", rows([os.urandom(2_000)]))
    refuses = [len(value) > LIMIT for value in values]
    assert found(search, rows(values), refuses) == [(at, True) for at in range(30) if at % 3 == 0]


def test_what_is_large_until_it_is_compressed_is_not_tried() -> None:
    values = [bytes(50_000), os.urandom(2_000), None, bytes(50_000)]
    search = Search.like("RECORD_LIST_TOO_LARGE", rows([os.urandom(1_900)]))
    assert found(search, rows(values), [False, True, False, False]) == [(1, True)]


def test_a_search_that_guesses_wrong_ends_soon() -> None:
    """The headers were too large: no record's key and value are like that."""
    values = [os.urandom(size) for size in range(100, 200)]
    search = Search.like("MSG_SIZE_TOO_LARGE", rows([b"x"]))
    shuffled = [values[at * 37 % 100] for at in range(100)]
    assert len(found(search, rows(shuffled), [False] * 100)) < 12, (
        "each that is taken raises the bound"
    )


@pytest.mark.parametrize("seconds", [-3_600, 3_600])
def test_times_further_from_now_are_tried(seconds: int) -> None:
    now = time.time_ns() // 1_000_000
    times = [now, now + 500 * seconds, now + 2_000 * seconds, now - 2_000 * seconds]
    search = Search.like("INVALID_TIMESTAMP", rows([], times=[now + 1_000 * seconds]))
    assert [at for at, _ in found(search, rows([], times=times), [False, False, True, False])] == [
        2
    ]


def test_records_without_a_key_are_tried_where_one_was_refused() -> None:
    batch = rows([], keys=[None, b"k", None])
    assert found(Search.like("INVALID_RECORD", rows([], keys=[None])), batch, [True] * 3) == [
        (0, True),
        (2, True),
    ]
    assert found(Search.like("INVALID_RECORD", rows([], keys=[b"k"])), batch, [True] * 3) == []


def test_it_ends_when_its_time_is_over() -> None:
    search = Search.like("MSG_SIZE_TOO_LARGE", rows([b"x"]))
    search.until = time.monotonic() - 1
    assert list(search.suspects(rows([b"xx", b"xx"]))) == []


def test_parked_offsets_are_of_one_generation_on_both_sides() -> None:
    place = ("orders", 0, 1, "east.orders", 2)
    row = Parked(*place[:3], 7, *place[3:], "MSG_SIZE_TOO_LARGE", 10)
    parked = ParkedOffsets([row, row])
    assert parked.within(place, 0, 100) == ((7, 7),)
    assert parked.within(place, 8, 100) == parked.within(place, 0, 6) == ()
    assert parked.within(("orders", 0, 0, "east.orders", 2), 0, 100) == ()
    assert parked.within(("orders", 0, 1, "east.orders", 0), 0, 100) == ()
