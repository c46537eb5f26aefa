"""The index of the stage: which offset ranges of a partition lie in which files. Pure, and small
enough for a driver.

It says what the stage holds above a flow's progress, whatever became of the table meanwhile:
OPTIMIZE, VACUUM and a lost commit log change files, never offsets. It is kept in arrays, 40 bytes a
range, so that a stage of a hundred thousand files costs some tens of megabytes.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition


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
        """What the offsets are of."""
        return PartitionGeneration(self.topic, self.partition, self.generation)


@dataclass(frozen=True)
class FileRange:
    """A range as a batch is planned from it; `file` numbers the file, in the order in which files
    came to the stage."""

    file: int
    generation: int
    first: int
    last: int
    record_count: int

    @property
    def dense(self) -> bool:
        """Whether each of its offsets has a record."""
        return self.record_count == self.last - self.first + 1


class PartitionRanges:
    """The ranges of one partition, by generation and first offset."""

    __slots__ = ("_counts", "_files", "_firsts", "_generations", "_lasts", "_rising", "_uncut")

    def __init__(self) -> None:
        self._generations = array("q")
        self._firsts = array("q")
        self._lasts = array("q")
        self._counts = array("q")
        self._files = array("q")
        self._rising = True  # whether no two ranges of a generation overlap
        self._uncut: PartitionRanges | None = None

    def __len__(self) -> int:
        return len(self._firsts)

    def __getitem__(self, at: int) -> FileRange:
        generation, first, last, count, file = (column[at] for column in self.columns())
        return FileRange(file, generation, first, last, count)

    def __iter__(self) -> Iterator[FileRange]:
        return map(self.__getitem__, range(len(self)))

    def add(self, file: int, staged_range: StagedRange) -> None:
        """Put a range in its place: mostly the last one."""
        values = (*staged_range[3:], file)
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
        """The same without the ranges of some files."""
        wanted = ~np.isin(np.frombuffer(self._files, np.int64), list(files))
        return PartitionRanges.from_columns(
            [np.frombuffer(column, np.int64)[wanted] for column in self.columns()]
        )

    @classmethod
    def from_columns(cls, columns: Sequence[np.ndarray]) -> "PartitionRanges":
        """Ranges from what `columns` gives."""
        made = cls()
        for column, values in zip(made.columns(), columns, strict=True):
            column.frombytes(values.astype(np.int64, copy=False).tobytes())
        made._rising = made._rises()
        return made

    def bounded(self, extents: Mapping[int, tuple[int, int]]) -> "PartitionRanges":
        """The same within a range of offsets (inclusive) for each generation, and without
        generations that have none. Counts of ranges that are cut are in proportion, which is an
        estimate where these have gaps."""
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
        """The ranges of which these are `bounded`, with counts that are no estimates."""
        return self if self._uncut is None else self._uncut

    def above(self, generation: int, offset: int) -> Iterator[FileRange]:
        """Ranges with something at or above an offset, of this generation or else of the next one
        that there is."""
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
        """The first offset of a generation; None where there is none of it."""
        low, high = self._of_generation(generation)
        return self._firsts[low] if low < high else None

    def within(self, generation: int, first: int, last: int) -> list[FileRange]:
        """Ranges of a generation that hold something of a range of offsets (inclusive)."""
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


class StageIndex:
    """What the stage holds, of all source clusters, as of `version` of the table."""

    def __init__(self) -> None:
        self.version = -1
        self._partitions: dict[str, dict[str, dict[int, PartitionRanges]]] = {}
        self._numbers: dict[str, int] = {}
        self._paths: dict[int, str] = {}
        self._next = 0

    def paths(self) -> Collection[str]:
        """The files that are in the index."""
        return self._numbers.keys()

    def path(self, file: int) -> str:
        """The path of a file by its number."""
        return self._paths[file]

    def apply(
        self,
        added: Iterable[tuple[str, Sequence[StagedRange]]],
        removed: Collection[str],
        version: int,
    ) -> None:
        """Follow the table: files that came, in their order, and files that went. To say it twice
        is no error."""
        gone = {self._numbers.pop(path) for path in removed if path in self._numbers}
        if gone:
            self._drop(gone)
        for path, ranges in added:
            if path in self._numbers:
                continue
            self._numbers[path] = self._next
            self._paths[self._next] = path
            for staged_range in ranges:
                topics = self._partitions.setdefault(staged_range.source_cluster, {})
                partitions = topics.setdefault(staged_range.topic, {})
                partitions.setdefault(staged_range.partition, PartitionRanges()).add(
                    self._next, staged_range
                )
            self._next += 1
        self.version = version

    def _drop(self, files: Collection[int]) -> None:
        for file in files:
            del self._paths[file]
        for topics in self._partitions.values():
            for topic, partitions in list(topics.items()):
                left = {
                    partition: ranges.without(files) for partition, ranges in partitions.items()
                }
                topics[topic] = {
                    partition: ranges for partition, ranges in left.items() if len(ranges)
                }
                if not topics[topic]:
                    del topics[topic]

    def topics(self, cluster: str) -> Mapping[str, Mapping[int, PartitionRanges]]:
        """The partitions of every staged topic of a source cluster."""
        return self._partitions.get(cluster, {})

    def partition(self, cluster: str, key: TopicAndPartition) -> PartitionRanges:
        """The ranges of a partition; none where nothing of it is staged."""
        return self.topics(cluster).get(key[0], {}).get(key[1]) or PartitionRanges()

    def bounded(self, bounds: Iterable[StagedRange]) -> "StageIndex":
        """What lies within some ranges, one for each generation of a partition, and nothing else.
        It is for as long as this index is not changed."""
        extents: dict[tuple[str, str, int], dict[int, tuple[int, int]]] = {}
        for bound in bounds:
            key = (bound.source_cluster, bound.topic, bound.partition)
            extents.setdefault(key, {})[bound.generation] = (bound.first, bound.last)
        bounded_index = StageIndex()
        bounded_index.version = self.version
        bounded_index._numbers, bounded_index._paths = self._numbers, self._paths
        for (cluster, topic, partition), wanted in extents.items():
            inside = self.partition(cluster, (topic, partition)).bounded(wanted)
            if len(inside):
                bounded_index._put(cluster, topic, partition, inside)
        return bounded_index

    def _put(self, cluster: str, topic: str, partition: int, ranges: PartitionRanges) -> None:
        self._partitions.setdefault(cluster, {}).setdefault(topic, {})[partition] = ranges

    def ends(self, cluster: str) -> dict[TopicAndPartition, tuple[int, int]]:
        """(newest generation, next offset) of each partition of a source cluster: where landing
        goes on."""
        return {
            (topic, partition): ranges.end()
            for topic, partitions in self.topics(cluster).items()
            for partition, ranges in partitions.items()
        }

    def parts(self) -> Iterator[tuple[str, str, int, PartitionRanges]]:
        """Every partition as (source cluster, topic, partition, ranges), for keeping a copy."""
        for cluster, topics in self._partitions.items():
            for topic, partitions in topics.items():
                for partition, ranges in partitions.items():
                    yield cluster, topic, partition, ranges

    def numbers(self) -> Mapping[str, int]:
        """The number of each file, by its path."""
        return self._numbers

    def restore(
        self, numbers: Mapping[str, int], parts: Iterable[tuple[str, str, int, PartitionRanges]]
    ) -> None:
        """Put a copy, as `numbers` and `parts` gave it, into an index that holds nothing."""
        self._numbers = dict(numbers)
        self._paths = {number: path for path, number in numbers.items()}
        self._next = max(self._paths, default=-1) + 1
        for part in parts:
            self._put(*part)

    def rows(self) -> Iterator[tuple[str, StagedRange]]:
        """Every range with the path of its file."""
        for cluster, topic, partition, ranges in self.parts():
            for *values, file in zip(*ranges.columns(), strict=True):
                yield self._paths[file], StagedRange(cluster, topic, partition, *values)
