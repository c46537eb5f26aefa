"""Partitions, and what is known of positions in them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

TopicAndPartition = tuple[str, int]
"""A partition by its topic and its number (`TopicPartition` of Kafka's clients, without more)."""

Ends = Mapping[TopicAndPartition, int]
"""The next offset of partitions: behind what a log holds, or what was read of it."""
Ranges = Mapping[TopicAndPartition, tuple[int, int]]
"""Offsets to be read: by partition, the first one, inclusive, and the end, exclusive."""

TopicPartitionOffset = tuple[str, int, int]
"""A position to translate: topic, as on the side that it is from, partition, offset."""


def partitions_of(topics: Mapping[str, int]) -> list[TopicAndPartition]:
    """The partitions of topics, given their counts."""
    return [(name, number) for name, count in topics.items() for number in range(count)]


def offset_count(ranges: Ranges) -> int:
    """How many offsets ranges have; not every offset has a record."""
    return sum(end - first for first, end in ranges.values())


def ranges_between(
    starts: Mapping[TopicAndPartition, int], ends: Mapping[TopicAndPartition, int]
) -> dict[TopicAndPartition, tuple[int, int]]:
    """The offsets between the starts and ends of partitions; those without any are missing."""
    return {key: (starts[key], end) for key, end in ends.items() if starts[key] < end}


def by_topic(offsets: Mapping[TopicAndPartition, int]) -> dict[str, dict[str, int]]:
    """Offsets in the JSON form of Spark's Kafka source: topics, and in each its partitions."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return topics


def from_topics(topics: Mapping[str, Mapping[str, int]]) -> dict[TopicAndPartition, int]:
    """The offsets that `by_topic` gave."""
    return {
        (topic, int(partition)): offset
        for topic, partitions in topics.items()
        for partition, offset in partitions.items()
    }


class PartitionGeneration(NamedTuple):
    """A partition in one generation of its source topic, to which source offsets belong. The first
    generation is 0; a null in a table is of an earlier version, and means 0."""

    topic: str
    partition: int
    generation: int

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "PartitionGeneration":
        """The partition generation that the offsets of a row belong to."""
        return cls(row["topic"], row["partition"], row["generation"])

    @property
    def topic_partition(self) -> TopicAndPartition:
        """The partition, in whatever generation."""
        return self.topic, self.partition


class InGeneration:
    """A value that belongs to one generation of a partition."""

    topic: str
    partition: int
    generation: int

    @property
    def place(self) -> PartitionGeneration:
        """The generation of the source partition that it belongs to."""
        return PartitionGeneration(self.topic, self.partition, self.generation)


class MirroredPartition(NamedTuple):
    """A partition in one generation of its topic, and the generation of the target topic that its
    records go to: the scope of a decision, or of a proof."""

    topic: str
    partition: int
    generation: int
    target_topic: str
    target_generation: int

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "MirroredPartition":
        """The mirrored partition of a table's row."""
        return cls(*(row[name] for name in cls._fields))


@dataclass(frozen=True)
class LogEnds:
    """The ends of a partition's log: the first offset still there, the offset after the last one,
    and the epoch of its leader (None if the cluster does not report it)."""

    start: int
    end: int
    epoch: int | None = None


class LogEnd(NamedTuple):
    """Only the end of a partition's log, as in `LogEnds`."""

    end: int
    epoch: int | None = None


class GenerationOffset(NamedTuple):
    """A partition's next offset, and the generation of its topic that it belongs to."""

    generation: int
    offset: int


class Committed(NamedTuple):
    """A position that a group committed: the next offset that it reads, and its metadata."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True)
class Translated:
    """Where a position leads on the other cluster.

    Not `exact`: not replicated yet, and `offset` is the highest safe position. `ahead`: a mapped
    record lies at or behind the position. `mapped`: any record of the topic was mapped. `end`: the
    end of the partition's map, on the side that the position is from. `again`: the most records
    behind `offset` that were read before; only a topic that two flows share has some. `generation`:
    of the source topic, for a position that leads to the source (None: unknown).

    What `groups.readable` adds: `gone`: the most records that were not read and are not there,
    though the side that the position is from has them (`lake.translate.translate_living` counts
    those that are gone with an earlier log of the source, `groups.passed_over` those that the flow
    goes on without). `past`: the end of that side's log, if the position lies behind it: that end
    was translated instead. `cut`: how far behind the end of the other side's log the map leads, if
    it does: `offset` is then that end. `trimmed`: how far in front of its start, likewise.
    """

    topic: str
    partition: int
    offset: int
    exact: bool
    ahead: bool = True
    mapped: bool = True
    end: int = 0
    again: int = 0
    gone: int = 0
    past: int | None = None
    cut: int = 0
    trimmed: int = 0
    generation: int | None = None


@dataclass(frozen=True)
class Reached:
    """How far a flow has come in a partition, as it knows itself: produced up to `produced_end`
    (transaction markers too), while the map must have all before `mapped_end`, in these generations
    of the target topic and of the source topic."""

    produced_end: int
    mapped_end: int
    target_topic: str
    target_generation: int = 0
    generation: int = 0
