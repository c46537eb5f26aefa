"""Counting what a reader gives: a record that is missing is noticed, gaps are not taken for one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.offsets.spans import CountError, Span, Tally, spans_of
from mirrorlake.offsets.stage_index import FileRange, StagedRange, StageIndex

#: Files of a partition: for each the distances between its offsets.
FILES = st.lists(
    st.lists(st.sampled_from([1, 1, 1, 2, 5]), min_size=1, max_size=12), min_size=1, max_size=5
)


def landed(files: list[list[int]]) -> tuple[list[FileRange], list[int]]:
    """Ranges of files and all of their offsets."""
    ranges, offsets, at = [], [], 0
    for number, steps in enumerate(files):
        mine = [at := at + step for step in steps]
        ranges.append(FileRange(number, 0, mine[0], mine[-1], len(mine)))
        offsets += mine
    return ranges, offsets


def take(tally: Tally, offsets: list[int], cuts: list[int]) -> None:
    for part in np.split(
        np.array(offsets, dtype=np.int64), sorted(cut % (len(offsets) + 1) for cut in cuts)
    ):
        tally.take(part)
    tally.end()


@given(FILES, st.lists(st.integers(0, 100), max_size=4))
def test_all_that_is_there_is_right_however_it_comes(
    files: list[list[int]], cuts: list[int]
) -> None:
    ranges, offsets = landed(files)
    take(Tally(spans_of(ranges, 0, offsets[-1])), offsets, cuts)


@given(FILES, st.lists(st.integers(0, 100), max_size=4), st.data())
def test_any_record_that_is_missing_is_noticed(
    files: list[list[int]], cuts: list[int], data: st.DataObject
) -> None:
    ranges, offsets = landed(files)
    missing = data.draw(st.sets(st.sampled_from(offsets), min_size=1))
    left = [offset for offset in offsets if offset not in missing]
    with pytest.raises(CountError) as raised:
        take(Tally(spans_of(ranges, 0, offsets[-1])), left, cuts)
    assert any(raised.value.first <= offset <= raised.value.last for offset in missing)
    take(
        Tally(spans_of(ranges, 0, offsets[-1]), [(offset, offset) for offset in missing]),
        left,
        cuts,
    )


@given(FILES, st.lists(st.integers(0, 100), max_size=4), st.data())
def test_a_record_more_than_there_are_is_noticed(
    files: list[list[int]], cuts: list[int], data: st.DataObject
) -> None:
    ranges, offsets = landed(files)
    gaps = sorted(set(range(offsets[-1] + 3)) - set(offsets))
    more = data.draw(st.sampled_from(gaps))
    with pytest.raises(CountError):
        take(Tally(spans_of(ranges, 0, offsets[-1] + 2)), sorted([*offsets, more]), cuts)


@given(FILES, st.data())
def test_a_part_of_a_range_has_at_least_and_at_most_so_many(
    files: list[list[int]], data: st.DataObject
) -> None:
    ranges, offsets = landed(files)
    first = data.draw(st.integers(0, offsets[-1]))
    last = data.draw(st.integers(first, offsets[-1]))
    held = [range_ for range_ in ranges if range_.last >= first and range_.first <= last]
    inside = [offset for offset in offsets if first <= offset <= last]
    spans = spans_of(held, first, last)
    take(Tally(spans), inside, [])
    if all(item.dense for item in held):
        assert all(span.min_count == span.max_count for span in spans) and sum(
            span.min_count for span in spans
        ) == len(inside)


def test_files_without_gaps_are_one_span() -> None:
    ranges = [FileRange(number, 0, 10 * number, 10 * number + 9, 10) for number in range(100)]
    assert spans_of(ranges, 5, 995) == (Span(5, 995, 991, 991),)


def test_a_hole_in_what_has_no_gaps_is_noticed_before_what_is_behind_it_is_handed_on() -> None:
    tally = Tally([Span(0, 99, 100, 100)])
    tally.take(np.arange(10))
    with pytest.raises(
        CountError,
        match="offsets 0 to 99 have 100 records by the index of the stage, and 20 were read",
    ):
        tally.take(np.arange(11, 21))


def test_a_file_that_ended_early_is_noticed_at_the_next_one() -> None:
    tally = Tally([Span(0, 18, 10, 10), Span(20, 38, 10, 10)])
    tally.take(np.arange(0, 10, 2))
    with pytest.raises(
        CountError,
        match="offsets 0 to 18 have 10 records by the index of the stage, and 5 were read",
    ):
        tally.take(np.arange(20, 40, 2))


def test_counts_within_bounds_that_cut_a_range_with_gaps_are_estimates() -> None:
    index = StageIndex()
    rows = [StagedRange("a", "t", 0, 0, 0, 9, 10), StagedRange("a", "t", 0, 0, 10, 29, 10)]
    index.apply([(str(number), [row]) for number, row in enumerate(rows)], (), 0)
    inside = index.bounded([StagedRange("a", "t", 0, 0, 5, 20, 16)]).topics("a")["t"][0]
    assert spans_of(inside.within(0, 0, 99), 0, 99) == (Span(5, 9, 5, 5), Span(10, 20, 0, 11))
