"""The index of the stage: which offset ranges of a partition lie in which files. Pure, and small
enough for a driver.

It says what the stage holds above a flow's progress, whatever became of the table meanwhile:
OPTIMIZE, VACUUM and a lost commit log change files, never offsets. It is kept in arrays, 40 bytes a
range, so that a stage of a hundred thousand files costs some tens of megabytes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from mirrorlake.offsets.partition_ranges import PartitionRanges, StagedRange
from mirrorlake.offsets.positions import TopicAndPartition


class StageIndex:
    """The stage's content, of all source clusters, as of `version` of the table. `changes` counts
    added ranges, to find those that came since; `deletions` changes once records may have been
    deleted. `newest_batch` is the highest landed batch in indexed files, -1 for none."""

    def __init__(self) -> None:
        self.version = -1
        self.changes = self.deletions = 0
        self.newest_batch = -1
        #: By source cluster: the change in which each partition got its last range, newest last.
        self._changed: dict[str, dict[TopicAndPartition, int]] = {}
        self._partitions: dict[str, dict[str, dict[int, PartitionRanges]]] = {}
        self._numbers: dict[str, int] = {}
        self._paths: dict[int, str] = {}
        self._next = 0

    def paths(self) -> Collection[str]:
        """The paths of the files in the index."""
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
        """Follow the table: files that came, in order, and went. Repeated calls do no harm."""
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
                place = staged_range.place.topic_partition
                self._note_change(staged_range.source_cluster, place)
            self._next += 1
        self.version = version

    def note_batch(self, number: int | None) -> None:
        """Note the highest number of a batch that some files have, as far as it is known."""
        self.newest_batch = max(self.newest_batch, -1 if number is None else number)

    def _drop(self, files: Collection[int]) -> None:
        """Take the ranges of some files out of the partitions that can have any. Compaction joins
        young files, which hold few of thousands of partitions."""
        for file in files:
            del self._paths[file]
        oldest = min(files)
        for topics in self._partitions.values():
            for topic, partitions in list(topics.items()):
                for partition, ranges in list(partitions.items()):
                    if ranges.newest_file < oldest:
                        continue
                    partitions[partition] = ranges.without(files)
                    if not len(partitions[partition]):
                        del partitions[partition]
                if not partitions:
                    del topics[topic]

    def changed_since(self, cluster: str, changes: int) -> set[TopicAndPartition]:
        """The partitions of a source cluster that got a range after the change number `changes`.
        Removed or moved ranges do not count."""
        came = reversed(self._changed.get(cluster, {}).items())
        return {key for key, _ in takewhile(lambda change: change[1] > changes, came)}

    def _note_change(self, cluster: str, key: TopicAndPartition) -> None:
        self.changes += 1
        changed = self._changed.setdefault(cluster, {})
        changed.pop(key, None)
        changed[key] = self.changes

    def topics(
        self, cluster: str, among: Collection[TopicAndPartition] | None = None
    ) -> Mapping[str, Mapping[int, PartitionRanges]]:
        """The partitions of every staged topic of a source cluster; or only those in `among`."""
        staged = self._partitions.get(cluster, {})
        if among is None:
            return staged
        picked: dict[str, dict[int, PartitionRanges]] = {}
        for topic, partition in sorted(among):
            if ranges := staged.get(topic, {}).get(partition):
                picked.setdefault(topic, {})[partition] = ranges
        return picked

    def partition(self, cluster: str, key: TopicAndPartition) -> PartitionRanges:
        """The ranges of a partition; none where nothing of it is staged."""
        return self.topics(cluster).get(key[0], {}).get(key[1]) or PartitionRanges()

    def bounded(self, bounds: Iterable[StagedRange]) -> "StageIndex":
        """An index of what lies within ranges of generations, valid until this one changes."""
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
        self._note_change(cluster, (topic, partition))

    def ends(self, cluster: str) -> dict[TopicAndPartition, tuple[int, int]]:
        """(newest generation, next offset) of each partition of a cluster, for landing."""
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
        """Load a copy, as `numbers` and `parts` gave it, into an empty index."""
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
