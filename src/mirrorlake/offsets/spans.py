"""How many records a range of staged offsets has, by the index of the stage, and the count of those
that a reader gives. Pure.

Offsets alone do not show that a record is missing: transaction markers, aborted records and
compaction leave gaps. The index has the record count of each range of each file, and so the number
of gaps among a range's offsets.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from mirrorlake.offsets.partition_ranges import FileRange
from mirrorlake.offsets.ranges import OffsetRanges, are_in

#: Ranges of offsets, first and last inclusive.
Extents = Sequence[tuple[int, int]]


class Span(NamedTuple):
    """Offsets `first` to `last`, inclusive, that have `record_count` records."""

    first: int
    last: int
    record_count: int

    @property
    def dense(self) -> bool:
        """Whether each of its offsets has a record."""
        return self.record_count == self.last - self.first + 1


class CountError(ValueError):
    """Raised when a reader gave too many or few records of offsets `first` to `last`, inclusive."""

    def __init__(self, span: Span, count: int) -> None:
        super().__init__(
            f"offsets {span.first} to {span.last} have {span.record_count} records by the index "
            f"of the stage, and {count} were read"
        )
        self.first, self.last = span.first, span.last


def spans_of(
    within: Callable[[int, int], Sequence[FileRange]], first: int, last: int
) -> tuple[tuple[Span, ...], Sequence[FileRange]]:
    """The spans of offsets `first` to `last`, in order, and the ranges of files that they come
    from; `within` returns the ranges that overlap two offsets, ordered by their first ones.

    Consecutive ranges without gaps form one span, and so do ranges that overlap. Spans are cut to
    `first` to `last`, except those with gaps, which stay whole: it is not known on which side of a
    cut the gaps lie. A whole span brings in the ranges that it overlaps.
    """
    reach = first, last
    while True:
        held = within(*reach)
        joined = _joined(held)
        spans = tuple(
            _cut(one, first, last) if one.dense else one
            for one in joined
            if one.last >= first and one.first <= last
        )
        ends = [end for one in outside(spans, first, last) for end in one]
        # The reach only grows: with more ranges a span may turn out to have no gaps, and be cut.
        before, reach = reach, (min(*reach, *ends), max(*reach, *ends))
        if reach == before:
            return spans, held


def _joined(ranges: Iterable[FileRange]) -> list[Span]:
    spans: list[Span] = []
    for file_range in ranges:
        one = Span(file_range.first, file_range.last, file_range.record_count)
        before = spans[-1] if spans else None
        if before is not None and (
            one.first <= before.last
            or (before.dense and one.dense and one.first == before.last + 1)
        ):
            count = before.record_count + one.record_count
            spans[-1] = Span(before.first, max(before.last, one.last), count)
        else:
            spans.append(one)
    return spans


def _cut(span: Span, first: int, last: int) -> Span:
    """The part of a span without gaps that lies within two offsets."""
    first, last = max(span.first, first), min(span.last, last)
    return Span(first, last, last - first + 1)


def outside(spans: Sequence[Span], first: int, last: int) -> list[tuple[int, int]]:
    """The offsets of spans below `first` or above `last`: up to two ranges."""
    if not spans:
        return []
    ends = (spans[0].first, first - 1), (last + 1, spans[-1].last)
    return [(start, end) for start, end in ends if start <= end]


def narrowed(
    spans: Sequence[Span], first: int, last: int, counts: Sequence[int]
) -> tuple[Span, ...]:
    """The parts of spans within `first` to `last`; `counts`: their records `outside`."""
    inside = [Span(max(first, one.first), min(last, one.last), one.record_count) for one in spans]
    for (start, _), count in zip(outside(spans, first, last), counts, strict=True):
        at = 0 if start < first else -1
        inside[at] = inside[at]._replace(record_count=inside[at].record_count - count)
    return tuple(inside)


class Tally:
    """Counts the records of one partition as a reader gives them, against its spans.

    Offsets in `left_out` (deleted by predicate, parked, given up) may have records or not. A
    missing record is noticed before any record behind it is passed on, if its span has no gaps;
    else at the span's end at the latest.
    """

    def __init__(self, spans: Sequence[Span], left_out: Extents = ()) -> None:
        self._spans = spans
        self._left_out = OffsetRanges(left_out)
        self._at = 0
        self._count = 0

    def take(self, offsets: np.ndarray) -> None:
        """Count records by their offsets, which rise. Raises CountError."""
        if self._left_out and len(offsets):
            left_out = self._left_out.within(int(offsets.min()), int(offsets.max()))
            offsets = offsets[~are_in(left_out, offsets)]
        while len(offsets):
            if self._at == len(self._spans) or offsets[0] < self._spans[self._at].first:
                raise CountError(Span(int(offsets[0]), int(offsets[0]), 0), 1)
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
        """End the count: no more records come. Raises CountError."""
        while self._at < len(self._spans):
            self._finish(self._spans[self._at])

    def _check_gaps(self, span: Span, last: int) -> None:
        """Raise CountError if there are too many gaps: a record is missing before this offset."""
        gaps = last - span.first + 1 - self._count - self._left_out.count(span.first, last)
        if gaps > span.last - span.first + 1 - span.record_count:
            raise CountError(span, self._count)

    def _finish(self, span: Span) -> None:
        least = span.record_count - self._left_out.count(span.first, span.last)
        if not least <= self._count <= span.record_count:
            raise CountError(span, self._count)
        self._at, self._count = self._at + 1, 0
