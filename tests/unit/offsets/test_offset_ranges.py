"""Ranges of offsets are found by their order: a batch that needs few of many takes no longer for
it."""

from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.offsets.parked import Parked
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.produce.batch import NOTHING_MAPPED, PartitionPlan
from mirrorlake.produce.codecs import Codecs
from mirrorlake.produce.refused_records import RefusedRecords
from mirrorlake.produce.spec import FlowSpec

PAIRS = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(PAIRS, max_size=6), st.lists(PAIRS, max_size=6), PAIRS)
def test_they_hold_what_they_were_given(
    before: list[tuple[int, int]], later: list[tuple[int, int]], asked: tuple[int, int]
) -> None:
    ranges = OffsetRanges(before)
    assert _offsets(ranges.within(0, 40)) == _offsets(before)
    ranges.add(later)
    assert _offsets(ranges.within(*asked)) == _offsets([*before, *later]) & set(
        range(asked[0], asked[1] + 1)
    )
    found = list(ranges)
    assert all(one[1] < two[0] for one, two in zip(found, found[1:], strict=False)), (
        "in order, without overlaps"
    )


@given(PAIRS, st.lists(PAIRS, max_size=6), st.integers(0, 41))
def test_what_they_lack_is_what_they_do_not_hold(
    asked: tuple[int, int], held: list[tuple[int, int]], offset: int
) -> None:
    ranges, wanted = OffsetRanges(held), set(range(asked[0], asked[1] + 1))
    lacking = ranges.lacking(*asked)
    assert _offsets(lacking) == wanted - _offsets(held) and lacking == sorted(lacking)
    assert (offset in ranges) == (offset in _offsets(held))
    assert ranges.lacking(asked[1] + 1, asked[0]) == []


def _offsets(ranges: Any) -> set[int]:
    return set(chain.from_iterable(range(first, last + 1) for first, last in ranges))


class Looked(int):
    """An offset that counts how often anybody looks at one."""

    times = 0

    def _counted(name: str) -> Any:  # type: ignore[misc]
        def compared(self: int, other: int) -> bool:
            Looked.times += 1
            return bool(getattr(int, name)(self, other))

        return compared

    __lt__, __le__, __gt__, __ge__ = map(_counted, ("__lt__", "__le__", "__gt__", "__ge__"))


class Store:
    """A map in which `rows` are parked."""

    def __init__(self, rows: list[Parked]) -> None:
        self.rows = rows

    def parked(self) -> list[Parked]:
        return self.rows


def looks(count: int) -> int:
    """How many offsets a batch in the middle looks at, where so many are left out for each
    reason."""
    parked = [
        Parked("orders", 0, 0, Looked(10 * n), "east.orders", 0, "RECORD_TOO_LARGE", 1)
        for n in range(count)
    ]
    ranges = [(Looked(10 * n), Looked(10 * n + 1)) for n in range(count)]
    spec = replace(
        FlowSpec(
            "a->b",
            source_cluster="a",
            name_at_target="name",
            remote_topic=lambda topic: topic,
            client={},
            producer={},
            produce_tasks=1,
            transactional=True,
        ),
        skipped={PartitionGeneration("orders", 0, 0): OffsetRanges(ranges)},
        forgotten={PartitionGeneration("orders", 0, 0): OffsetRanges(ranges)},
    )
    refusals = RefusedRecords(Store(parked), Codecs({}))  # type: ignore[arg-type]
    plan = PartitionPlan(
        "orders", 0, "east.orders", floor=NOTHING_MAPPED, first=5 * count, last=5 * count + 9
    )
    first = refusals.skipped([plan], spec)  # the first batch of a flow brings them into order
    Looked.times = 0
    assert refusals.skipped([plan], spec) == first
    assert _offsets(first["orders", 0]) == {5 * count, 5 * count + 1}
    return Looked.times


@pytest.mark.parametrize("count", [1_000])
def test_four_times_as_many_are_two_steps_more(count: int) -> None:
    few, many = looks(count), looks(4 * count)
    assert few < 100, "it is no scan"
    assert many - few <= 6 * 4, (few, many)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5))), st.integers(-2, 40), st.data())
def test_a_count_is_that_of_each_offset(
    given_ranges: list[tuple[int, int]], first: int, data: st.DataObject
) -> None:
    ranges = OffsetRanges((start, start + more) for start, more in given_ranges)
    last = data.draw(st.integers(first - 1, 42))
    inside = [offset for offset in range(first, last + 1) if offset in ranges]
    assert ranges.count(first, last) == len(inside)
