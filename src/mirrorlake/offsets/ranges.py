"""Ranges of offsets, kept in order: a batch finds its own among a hundred thousand. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import numpy as np

#: Above every offset.
NO_END = 2**62
Extent = tuple[int, int]
"""Offsets, first and last inclusive."""


def merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same offsets, as rising ranges (inclusive) that do not touch."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def are_in(ranges: Sequence[tuple[int, int]], offsets: np.ndarray) -> np.ndarray:
    """Whether each offset lies in one of some `merged` ranges."""
    firsts, lasts = np.array(ranges, dtype=np.int64).reshape(-1, 2).T
    before = np.searchsorted(firsts, offsets, side="right") - 1
    inside: np.ndarray = (before >= 0) & (offsets <= np.append(lasts, -1)[before])
    return inside


class OffsetRanges:
    """Ranges of offsets of one partition, first and last inclusive. They may be given in any order
    and with overlaps; they are kept sorted and without."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        #: How many offsets lie in the ranges before each one.
        self._before: list[int] = []
        self._fresh = list(ranges)

    def add(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Add ranges."""
        self._fresh.extend(ranges)

    def __bool__(self) -> bool:
        return bool(self._firsts or self._fresh)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetRanges) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # ranges may be added

    def __repr__(self) -> str:
        return f"OffsetRanges({list(self)})"

    def __contains__(self, offset: int) -> bool:
        return bool(self.within(offset, offset))

    def covers(self, first: int, last: int) -> bool:
        """Whether all offsets from `first` to `last`, inclusive, lie in the ranges."""
        return sum(end - start + 1 for start, end in self.within(first, last)) == last - first + 1

    def count(self, first: int, last: int) -> int:
        """How many offsets from `first` to `last`, inclusive, lie in the ranges."""
        self._sort()
        return max(0, self._count_below(last + 1) - self._count_below(first))

    def _count_below(self, offset: int) -> int:
        at = bisect_left(self._firsts, offset) - 1
        if at < 0:
            return 0
        return self._before[at] + min(self._lasts[at], offset - 1) - self._firsts[at] + 1

    def __iter__(self) -> Iterator[tuple[int, int]]:
        self._sort()
        return iter(zip(self._firsts, self._lasts, strict=True))

    def within(self, first: int, last: int) -> tuple[tuple[int, int], ...]:
        """The ranges between two offsets, both inclusive, cut to these."""
        self._sort()
        here = slice(bisect_left(self._lasts, first), bisect_right(self._firsts, last))
        parts = zip(self._firsts[here], self._lasts[here], strict=True)
        return tuple((max(one, first), min(other, last)) for one, other in parts)

    def lacking(self, first: int, last: int) -> list[tuple[int, int]]:
        """The offsets between two, both inclusive, that lie in no range."""
        left, at = [], first
        for start, end in self.within(first, last):
            if at < start:
                left.append((at, start - 1))
            at = end + 1
        return left if at > last else [*left, (at, last)]

    def _sort(self) -> None:
        """Sort in the ranges that were added since the last call."""
        if not self._fresh:
            return
        given = sorted([*zip(self._firsts, self._lasts, strict=True), *self._fresh])
        self._fresh = []
        self._firsts, self._lasts = [], []
        for first, last in given:
            if self._lasts and first <= self._lasts[-1]:
                self._lasts[-1] = max(self._lasts[-1], last)
            else:
                self._firsts.append(first)
                self._lasts.append(last)
        sizes = (last - first + 1 for first, last in zip(self._firsts, self._lasts, strict=True))
        self._before = [0, *accumulate(sizes)]
