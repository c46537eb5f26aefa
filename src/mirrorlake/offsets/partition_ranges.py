"""The offset ranges of one partition that lie in files of the stage. Pure."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mirrorlake.offsets.positions import PartitionGeneration


class StagedRange(NamedTuple):
    """The records of one generation of a partition in one file; offsets inclusive."""

    source_cluster: str
    topic: str
    partition: int
    generation: int
    first: int
    last: int
    record_count: int

    @property
    def place(self) -> PartitionGeneration:
        """The generation of a partition that the offsets belong to."""
        return PartitionGeneration(self.topic, self.partition, self.generation)


@dataclass(frozen=True)
class FileRange:
    """A range as a batch is planned from it; `file` numbers files in order of arrival."""

    file: int
    generation: int
    first: int
    last: int
    record_count: int


class PartitionRanges:
    """The ranges of one partition, by generation and first offset."""

    __slots__ = (
        *("_counts", "_files", "_firsts", "_generations", "_lasts", "_rising", "_uncut"),
        "newest_file",
    )

    def __init__(self) -> None:
        self._generations = array("q")
        self._firsts = array("q")
        self._lasts = array("q")
        self._counts = array("q")
        self._files = array("q")
        self._rising = True  # whether no two ranges of a generation overlap
        self._uncut: PartitionRanges | None = None
        #: At least the highest number of a file that holds one of the ranges; -1 without any.
        self.newest_file = -1

    def __len__(self) -> int:
        return len(self._firsts)

    def __getitem__(self, at: int) -> FileRange:
        generation, first, last, count, file = (column[at] for column in self.columns())
        return FileRange(file, generation, first, last, count)

    def __iter__(self) -> Iterator[FileRange]:
        return map(self.__getitem__, range(len(self)))

    def add(self, file: int, staged_range: StagedRange) -> None:
        """Insert a range in order, mostly as the last one."""
        values = (*staged_range[3:], file)
        self.newest_file = max(self.newest_file, file)
        if not self._lasts or (
            staged_range.generation == self._generations[-1]
            and staged_range.first > self._lasts[-1]
        ):
            for column, value in zip(self.columns(), values, strict=True):
                column.append(value)
            return
        low, high = self._of_generation(staged_range.generation)
        at = bisect_right(self._firsts, staged_range.first, low, high)
        before = self._lasts[at - 1] if at > low else -1
        behind = self._firsts[at] if at < high else staged_range.last + 1
        self._rising = self._rising and before < staged_range.first and staged_range.last < behind
        for column, value in zip(self.columns(), values, strict=True):
            column.insert(at, value)

    def without(self, files: Collection[int]) -> "PartitionRanges":
        """The ranges that are not in some files."""
        wanted = ~np.isin(np.frombuffer(self._files, np.int64), list(files))
        return PartitionRanges.from_columns(
            [np.frombuffer(column, np.int64)[wanted] for column in self.columns()]
        )

    @classmethod
    def from_columns(cls, columns: Sequence[np.ndarray]) -> "PartitionRanges":
        """Ranges from arrays as `columns` gives them."""
        made = cls()
        for column, values in zip(made.columns(), columns, strict=True):
            column.frombytes(values.astype(np.int64, copy=False).tobytes())
        made._rising = made._rises()
        made.newest_file = max(made._files, default=-1)
        return made

    def bounded(self, extents: Mapping[int, tuple[int, int]]) -> "PartitionRanges":
        """The ranges cut to an extent (inclusive) for each generation, without generations that
        have none. Counts of cut ranges are in proportion: an estimate if they have gaps."""
        if not len(self) or not extents:
            return PartitionRanges()
        columns = [np.frombuffer(column, np.int64) for column in self.columns()]
        parts = []
        for generation, (first, last) in sorted(extents.items()):
            inside = (columns[0] == generation) & (columns[1] <= last) & (columns[2] >= first)
            of, firsts, lasts, counts, files = (column[inside] for column in columns)
            starts, ends = np.maximum(firsts, first), np.minimum(lasts, last)
            shares = np.maximum(1, counts * (ends - starts + 1) // (lasts - firsts + 1))
            parts.append((of, starts, ends, shares, files))
        made = PartitionRanges.from_columns(
            [np.concatenate(column) for column in zip(*parts, strict=True)]
        )
        made._uncut = self.uncut
        return made

    @property
    def uncut(self) -> "PartitionRanges":
        """The ranges of which these are `bounded`, with exact counts."""
        return self if self._uncut is None else self._uncut

    def above(self, generation: int, offset: int) -> Iterator[FileRange]:
        """Ranges with an offset from `offset` on, of this generation, else of the next one."""
        low, high = self._of_generation(generation)
        at = low
        if self._rising:
            at = max(low, bisect_right(self._firsts, offset, low, high) - 1)
        while at < high and self._lasts[at] < offset:
            at += 1
        if at == high and high < len(self):
            low, high = self._of_generation(self._generations[high])
            at, offset = low, self._firsts[low]
        for index in range(at, high):
            if self._lasts[index] >= offset:
                yield self[index]

    def first_of(self, generation: int) -> int | None:
        """The first offset of a generation; None if it has no range."""
        low, high = self._of_generation(generation)
        return self._firsts[low] if low < high else None

    def within(self, generation: int, first: int, last: int) -> list[FileRange]:
        """Ranges of a generation that overlap a range of offsets (inclusive)."""
        ranges = []
        for file_range in self.above(generation, first):
            if file_range.generation != generation or file_range.first > last:
                break
            ranges.append(file_range)
        return ranges

    def end(self) -> tuple[int, int]:
        """(newest generation, next offset of it)."""
        low, high = self._of_generation(self._generations[-1])
        last = self._lasts[high - 1] if self._rising else max(self._lasts[low:high])
        return self._generations[-1], last + 1

    def ends(self) -> dict[int, int]:
        """Next offset by generation."""
        ends: dict[int, int] = {}
        for generation, last in zip(self._generations, self._lasts, strict=True):
            ends[generation] = max(ends.get(generation, 0), last + 1)
        return ends

    def _of_generation(self, generation: int) -> tuple[int, int]:
        """Where the ranges of a generation begin and end (exclusive)."""
        if not self._generations or self._generations[-1] < generation:
            return len(self), len(self)
        if self._generations[0] == self._generations[-1] == generation:
            return 0, len(self)
        return bisect_left(self._generations, generation), bisect_right(
            self._generations, generation
        )

    def columns(self) -> "tuple[array[int], ...]":
        """Generations, first and last offsets, counts and files, of the ranges in their order."""
        return self._generations, self._firsts, self._lasts, self._counts, self._files

    def _rises(self) -> bool:
        generations, firsts, lasts = (
            np.frombuffer(column, np.int64) for column in self.columns()[:3]
        )
        return bool(np.all((generations[:-1] < generations[1:]) | (lasts[:-1] < firsts[1:])))
