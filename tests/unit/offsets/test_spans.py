"""Counting what a reader gives: a record that is missing is noticed, gaps are not taken for one."""

from functools import partial
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.offsets.partition_ranges import FileRange, StagedRange
from mirrorlake.offsets.ranges import are_in
from mirrorlake.offsets.spans import CountError, Span, Tally, narrowed, outside, spans_of
from mirrorlake.offsets.stage_index import StageIndex

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


def spans(ranges: list[FileRange], first: int, last: int) -> tuple[Span, ...]:
    def within(first: int, last: int) -> list[FileRange]:
        return [one for one in ranges if one.last >= first and one.first <= last]

    return spans_of(within, first, last)[0]


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
    take(Tally(spans(ranges, 0, offsets[-1])), offsets, cuts)


@given(FILES, st.lists(st.integers(0, 100), max_size=4), st.data())
def test_any_record_that_is_missing_is_noticed(
    files: list[list[int]], cuts: list[int], data: st.DataObject
) -> None:
    ranges, offsets = landed(files)
    missing = data.draw(st.sets(st.sampled_from(offsets), min_size=1))
    left = [offset for offset in offsets if offset not in missing]
    with pytest.raises(CountError) as raised:
        take(Tally(spans(ranges, 0, offsets[-1])), left, cuts)
    assert any(raised.value.first <= offset <= raised.value.last for offset in missing)
    take(Tally(spans(ranges, 0, offsets[-1]), [(offset, offset) for offset in missing]), left, cuts)


@given(FILES, st.lists(st.integers(0, 100), max_size=4), st.data())
def test_a_record_more_than_there_are_is_noticed(
    files: list[list[int]], cuts: list[int], data: st.DataObject
) -> None:
    ranges, offsets = landed(files)
    gaps = sorted(set(range(offsets[-1] + 3)) - set(offsets))
    more = data.draw(st.sampled_from(gaps))
    with pytest.raises(CountError):
        take(Tally(spans(ranges, 0, offsets[-1] + 2)), sorted([*offsets, more]), cuts)


@given(FILES, st.data())
def test_a_part_of_a_range_has_what_is_not_counted_outside(
    files: list[list[int]], data: st.DataObject
) -> None:
    ranges, offsets = landed(files)
    first = data.draw(st.integers(offsets[0], offsets[-1]))
    last = data.draw(st.integers(first, offsets[-1]))
    inside = [offset for offset in offsets if first <= offset <= last]
    whole = spans(ranges, first, last)
    counts = [
        sum(start <= offset <= end for offset in offsets)
        for start, end in outside(whole, first, last)
    ]
    exact = narrowed(whole, first, last, counts)
    take(Tally(exact), inside, [])
    assert sum(span.record_count for span in exact) == len(inside)
    if inside:
        missing = data.draw(st.sampled_from(inside))
        with pytest.raises(CountError):
            take(Tally(exact), [offset for offset in inside if offset != missing], [])


@given(FILES, st.randoms(use_true_random=False), st.data())
def test_what_lies_between_the_records_of_another_file_is_counted_with_it(
    files: list[list[int]], random: Random, data: st.DataObject
) -> None:
    """Files of any order, as OPTIMIZE leaves them: spans that are whole hold all that lies within
    them, of whichever file, also where bounds leave it out."""
    _, offsets = landed(files)
    owners = [random.randrange(len(files)) for _ in offsets]
    index = StageIndex()
    for number in range(len(files)):
        mine = [offset for offset, owner in zip(offsets, owners, strict=True) if owner == number]
        if mine:
            row = StagedRange("a", "t", 0, 0, mine[0], mine[-1], len(mine))
            index.apply([(str(number), [row])], (), number)
    last = data.draw(st.sampled_from(offsets))
    first = data.draw(st.sampled_from([offset for offset in offsets if offset <= last]))
    bounded = index.bounded([StagedRange("a", "t", 0, 0, first, last, 1)])
    for partition in (index.partition("a", ("t", 0)), bounded.partition("a", ("t", 0))):
        held, _ = spans_of(partial(partition.uncut.within, 0), first, last)
        for span in held:
            count = sum(span.first <= offset <= span.last for offset in offsets)
            assert span.record_count == count
        covered = [(span.first, span.last) for span in held]
        assert all(are_in(covered, np.array([o for o in offsets if first <= o <= last])))


def test_files_that_fill_the_gaps_of_one_another_come_to_an_end() -> None:
    """What is whole behind the range reaches for more; what is whole in front of it has no gap any
    more by then, and is cut."""
    files = [FileRange(0, 0, 0, 2, 2), FileRange(1, 0, 1, 1, 1), FileRange(2, 0, 4, 9, 2)]
    asked: list[tuple[int, int]] = []

    def within(first: int, last: int) -> list[FileRange]:
        assert len(asked) < 9, asked
        asked.append((first, last))
        return [one for one in files if one.last >= first and one.first <= last]

    held, _ = spans_of(within, 2, 4)
    assert held == (Span(2, 2, 1), Span(4, 9, 2))


def test_files_without_gaps_are_one_span() -> None:
    ranges = [FileRange(number, 0, 10 * number, 10 * number + 9, 10) for number in range(100)]
    assert spans(ranges, 5, 995) == (Span(5, 995, 991),)


def test_a_hole_in_what_has_no_gaps_is_noticed_before_what_is_behind_it_is_handed_on() -> None:
    tally = Tally([Span(0, 99, 100)])
    tally.take(np.arange(10))
    with pytest.raises(
        CountError,
        match="offsets 0 to 99 have 100 records by the index of the stage, and 20 were read",
    ):
        tally.take(np.arange(11, 21))


def test_a_file_that_ended_early_is_noticed_at_the_next_one() -> None:
    tally = Tally([Span(0, 18, 10), Span(20, 38, 10)])
    tally.take(np.arange(0, 10, 2))
    with pytest.raises(
        CountError,
        match="offsets 0 to 18 have 10 records by the index of the stage, and 5 were read",
    ):
        tally.take(np.arange(20, 40, 2))


def test_a_range_with_gaps_that_bounds_cut_is_whole() -> None:
    index = StageIndex()
    rows = [StagedRange("a", "t", 0, 0, 0, 9, 10), StagedRange("a", "t", 0, 0, 10, 29, 10)]
    index.apply([(str(number), [row]) for number, row in enumerate(rows)], (), 0)
    inside = index.bounded([StagedRange("a", "t", 0, 0, 5, 20, 16)]).topics("a")["t"][0]
    assert [(one.first, one.last) for one in inside] == [(5, 9), (10, 20)]
    cut, held = spans_of(partial(inside.uncut.within, 0), 5, 20)
    assert cut == (Span(5, 9, 5), Span(10, 29, 10)) and [one.file for one in held] == [0, 1]
