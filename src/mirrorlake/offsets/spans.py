"""How many records a range of offsets of the stage has, by its index, and the count of those that a
reader gives. Pure.

Offsets alone do not show that a record is missing: transaction markers, aborted records and
compaction leave gaps. The index knows how many records each range of each file has, so it knows how
many of a range's offsets are gaps.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mirrorlake.offsets.ranges import are_in, merged
from mirrorlake.offsets.stage_index import FileRange

#: Ranges of offsets, first and last inclusive.
Ranges = Sequence[tuple[int, int]]


class Span(NamedTuple):
    """Offsets `first` to `last`, inclusive, that have `min_count` to `max_count` records. The two
    differ where a range with gaps is cut: it is not known on which side of the cut its gaps are."""

    first: int
    last: int
    min_count: int
    max_count: int

    @property
    def counts(self) -> str:
        """How many records it has, for a sentence."""
        least, most = str(self.min_count), str(self.max_count)
        return least if least == most else f"{least} to {most}"


class CountError(ValueError):
    """Raised when a reader gave another number of records than there are; `first` and `last` are
    offsets, inclusive."""

    def __init__(self, span: Span, count: int) -> None:
        super().__init__(
            f"offsets {span.first} to {span.last} have {span.counts} records by the index of "
            f"the stage, and {count} were read"
        )
        self.first, self.last = span.first, span.last


def spans_of(ranges: Iterable[FileRange], first: int, last: int) -> tuple[Span, ...]:
    """The spans of ranges, in the order of their first offsets, as far as they lie within `first`
    to `last`.

    Ranges without gaps that follow one another are one span, and so are ranges that overlap.
    """
    joined: list[FileRange] = []
    for file_range in ranges:
        before = joined[-1] if joined else None
        if before is not None and _are_one(before, file_range):
            joined[-1] = replace(
                file_range,
                first=before.first,
                last=max(before.last, file_range.last),
                record_count=before.record_count + file_range.record_count,
                exact=before.exact and file_range.exact,
            )
        else:
            joined.append(file_range)
    return tuple(
        _span(file_range, max(first, file_range.first), min(last, file_range.last))
        for file_range in joined
    )


def _are_one(before: FileRange, behind: FileRange) -> bool:
    return behind.first <= before.last or (
        before.dense and behind.dense and behind.first == before.last + 1
    )


def _span(file_range: FileRange, first: int, last: int) -> Span:
    width = last - first + 1
    if not file_range.exact:
        return Span(first, last, 0, width)
    gaps = file_range.last - file_range.first + 1 - file_range.record_count
    return Span(first, last, min(width, max(0, width - gaps)), min(width, file_range.record_count))


class Tally:
    """Counts the records of one partition as a reader gives them, against its spans.

    What lies in `left_out` (deleted by predicate, parked, given up) may be there or not. A record
    that is missing is noticed before any behind it is handed on, where its span has no gaps; else
    at the span's end at the latest.
    """

    def __init__(self, spans: Sequence[Span], left_out: Ranges = ()) -> None:
        self._spans = spans
        self._left_out = merged(left_out)
        self._at = 0
        self._count = 0

    def take(self, offsets: np.ndarray) -> None:
        """Count records by their offsets, which rise. Raises CountError."""
        if self._left_out:
            offsets = offsets[~are_in(self._left_out, offsets)]
        while len(offsets):
            if self._at == len(self._spans) or offsets[0] < self._spans[self._at].first:
                raise CountError(Span(int(offsets[0]), int(offsets[0]), 0, 0), 1)
            span = self._spans[self._at]
            inside = len(offsets)
            if offsets[-1] > span.last:
                inside = int(np.searchsorted(offsets, span.last, side="right"))
            if inside:
                self._count += inside
                self._check_gaps(span, int(offsets[inside - 1]))
            if inside < len(offsets):
                self._finish(span)
            offsets = offsets[inside:]

    def end(self) -> None:
        """Say that there are no more. Raises CountError."""
        while self._at < len(self._spans):
            self._finish(self._spans[self._at])

    def _check_gaps(self, span: Span, last: int) -> None:
        """More gaps than there are: a record is missing in front of this offset."""
        gaps = last - span.first + 1 - self._count - _size(self._left_out, span.first, last)
        if gaps > span.last - span.first + 1 - span.min_count:
            raise CountError(span, self._count)

    def _finish(self, span: Span) -> None:
        least = span.min_count - _size(self._left_out, span.first, span.last)
        if not least <= self._count <= span.max_count:
            raise CountError(span, self._count)
        self._at, self._count = self._at + 1, 0


def _size(ranges: Ranges, first: int, last: int) -> int:
    """How many offsets of `first` to `last` lie in the ranges."""
    return sum(max(0, min(end, last) - max(start, first) + 1) for start, end in ranges)
