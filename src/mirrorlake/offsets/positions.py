"""A partition, and what is known of positions in it. Pure."""

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
    """The partitions of topics that have so many."""
    return [(name, number) for name, count in topics.items() for number in range(count)]


def offset_count(ranges: Ranges) -> int:
    """How many offsets ranges have; not all of them need to have a record."""
    return sum(end - first for first, end in ranges.values())


def ranges_between(
    starts: Mapping[TopicAndPartition, int], ends: Mapping[TopicAndPartition, int]
) -> dict[TopicAndPartition, tuple[int, int]]:
    """What lies between the starts of partitions and their ends; those with nothing are missing."""
    return {key: (starts[key], end) for key, end in ends.items() if starts[key] < end}


def by_topic(offsets: Mapping[TopicAndPartition, int]) -> dict[str, dict[str, int]]:
    """Offsets as Spark's Kafka source has them in JSON: topics, and in each its partitions."""
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
    """A partition in one generation of its topic at the source: what source offsets are of. The
    first generation is 0; where a table says null, an earlier version wrote it, and means 0."""

    topic: str
    partition: int
    generation: int

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "PartitionGeneration":
        """What the offsets of a row are of."""
        return cls(row["topic"], row["partition"], row["generation"])

    @property
    def topic_partition(self) -> TopicAndPartition:
        """The partition, in whatever generation."""
        return self.topic, self.partition


class InGeneration:
    """What is of one generation of a partition."""

    topic: str
    partition: int
    generation: int

    @property
    def place(self) -> PartitionGeneration:
        """Which generation of which source partition it is of."""
        return PartitionGeneration(self.topic, self.partition, self.generation)


class MirroredPartition(NamedTuple):
    """A partition in one generation of its topic, and the generation of the target topic that its
    records go to: what a decision, or a proof, holds for."""

    topic: str
    partition: int
    generation: int
    target_topic: str
    target_generation: int

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "MirroredPartition":
        """What a row of a table is about."""
        return cls(*(row[name] for name in cls._fields))


@dataclass(frozen=True)
class LogEnds:
    """What a cluster has of a partition: the first offset still there, the offset after the last
    one, and the epoch of its leader (None where the cluster does not report it)."""

    start: int
    end: int
    epoch: int | None = None


class LogEnd(NamedTuple):
    """The end alone of what a cluster has of a partition, as `LogEnds` has it."""

    end: int
    epoch: int | None = None


class GenerationOffset(NamedTuple):
    """A next offset of a partition, and the generation of its topic that it is of."""

    generation: int
    offset: int


class Committed(NamedTuple):
    """A position that a group committed: the next offset that it reads, and the text it left with
    it."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True)
class Translated:
    """Where a position leads on the other cluster.

    Not `exact`: not replicated yet, and `offset` is the highest safe position. `ahead`: a mapped
    record lies at or behind the position. `mapped`: a record of the topic was mapped at all. `end`:
    where the map of the partition ends, on the side that the position is from. `again`: how many
    records behind `offset` at most were read before; only a topic that two flows share has some.
    `generation`: of the source topic, for a position that leads to the source (None: nothing says
    it).

    What `groups.readable` adds: `gone`: how many records at most lie in front of `offset` that were
    not read and are not there any more, though the side that the position is from has them
    (`lake.translate.translate_living` says it of those that are gone with an earlier log of the
    source). `past`: the end of that side's log, where the position lies behind it: what was
    translated is then that end. `cut`: how far behind the end of the other side's log the map
    leads, where it does: `offset` is then that end.
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
    generation: int | None = None


@dataclass(frozen=True)
class Reached:
    """How far a flow is in a partition, of its own knowledge: produced up to `produced_end`
    (transaction markers too), of which the map must have what is before `mapped_end`, in these
    generations of the target topic and of the source topic."""

    produced_end: int
    mapped_end: int
    target_topic: str
    target_generation: int = 0
    generation: int = 0
