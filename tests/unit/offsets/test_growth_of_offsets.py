"""What is computed of offsets grows no faster than the files, parts and ranges that it is of."""

from collections.abc import Callable

import numpy as np
import pytest

from mirrorlake.offsets.as_of import LandedPart, cut_as_of, noted_ends, read_ends
from mirrorlake.offsets.merging import mergeable
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.ranges import OffsetRanges, merged
from mirrorlake.offsets.runs import Segment, add_written, runs_of
from mirrorlake.offsets.spans import Tally, spans_of
from mirrorlake.offsets.stage_index import StageIndex
from tests.support.growth import LINEAR, Made, growth, steps

KEY = ("t", 0)


def files(size: int, partitions: int) -> StageIndex:
    """Small files, of which each has a range of some partition, in turn."""
    index = StageIndex()
    ranges = (
        StagedRange("east", "t", n % partitions, 0, 10 * n, 10 * n + 9, 10) for n in range(size)
    )
    index.apply(((f"f{n}", [one]) for n, one in enumerate(ranges)), (), 0)
    return index


def merging(size: int) -> Callable[[], object]:
    index, sizes = files(size, size // 2), {f"f{n}": 1 for n in range(size)}
    return lambda: mergeable(index, sizes, size)


def parts(size: int, is_open: bool) -> Callable[[], object]:
    landed = [LandedPart(n, 10 * n, 10 * n + 9, 10, end=10 * n + 10) for n in range(size)]
    behind = {KEY: (10, 15)} if is_open else {}
    return lambda: cut_as_of({KEY: landed}, dict.fromkeys(range(size), behind))


def partitions_cut(size: int) -> Callable[[], object]:
    landed = {("t", n): [LandedPart(1, 0, 9, 10, end=10)] for n in range(size)}
    return lambda: cut_as_of(landed, {1: {("t", n): (10, 12) for n in range(size)}})


def spans(size: int) -> Callable[[], object]:
    ranges = files(size, 1).partition("east", KEY)

    def read() -> None:
        held, _ = spans_of(lambda first, last: ranges.within(0, first, last), 0, 10 * size)
        tally = Tally(held, [(10 * n, 10 * n) for n in range(size)])
        for n in range(size):
            tally.take(np.arange(10 * n + 1, 10 * n + 10))
        tally.end()

    return read


def dropped(size: int) -> Callable[[], object]:
    index = files(size, size)
    return lambda: index.apply((), {f"f{n}" for n in range(0, size, 2)}, 1)


def test_young_files_are_joined_without_a_look_at_the_ranges_of_quiet_partitions() -> None:
    """A few steps of each partition are all that it costs, though thousands have no range."""
    size = 400
    index = files(size, size)
    few = [StagedRange("east", "t", n, 0, 10**6, 10**6 + 9, 10) for n in range(3)]
    last = few[0]._replace(first=2 * 10**6, last=2 * 10**6)
    index.apply([("young", few), ("newer", [last])], (), 1)
    sizes = {"young": 1, "newer": 1}
    assert mergeable(index, sizes, 2) == ["young", "newer"]
    assert steps(lambda: mergeable(index, sizes, 2)) < 25 * size
    assert steps(lambda: index.apply([("joined", few)], {"young", "newer"}, 2)) < 25 * size
    assert [held.file for held in index.partition("east", ("t", 0))] == [0, size + 2]


SEGMENTS = [Segment(3 * n, 1, 2 * n, 2) for n in range(240)]
CASES: dict[str, Made] = {
    "small files become one": merging,
    "a cut of one partition": lambda size: parts(size, is_open=False),
    "a cut before an open transaction": lambda size: parts(size, is_open=True),
    "a cut of all partitions": partitions_cut,
    "ends that are noted": lambda size: (
        lambda: read_ends(
            noted_ends({("t", n): 5 for n in range(size)}, {("t", n): 9 for n in range(size)})
        )
    ),
    "records counted by spans": spans,
    "files that went": dropped,
    "runs of segments": lambda size: lambda: runs_of(SEGMENTS[:size]),
    "what was written": lambda size: lambda: add_written([], SEGMENTS[:size]),
    "ranges that overlap": lambda size: lambda: merged((n, n + 5) for n in range(0, 3 * size, 3)),
    "ranges that are given up": lambda size: (
        lambda: [OffsetRanges((3 * n, 3 * n + 1) for n in range(size)).within(0, 3 * size)]
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_grows_as_what_it_is_of(case: str) -> None:
    assert growth(CASES[case]) < LINEAR
