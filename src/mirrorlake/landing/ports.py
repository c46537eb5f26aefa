"""What planning a landing query needs of a source cluster and of the lake, as ports: the same
decisions run against clusters and against a model."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mirrorlake.kafka.values import Row
from mirrorlake.landing.source_comparison import CurrentGenerations, Decision, TopicGeneration
from mirrorlake.offsets.positions import LogEnd, LogEnds, PartitionGeneration, TopicAndPartition


@dataclass(frozen=True)
class SourceTopic:
    """A topic as the source shows it now: Kafka's id, its partition count, the partitions without a
    leader, and whether it may be read. A topic that is listed but not described has neither id nor
    partitions, and a reason, which does not count in comparisons."""

    topic_id: str
    partitions: int
    leaderless: frozenset[int] = frozenset()
    readable: bool = True
    undescribed: str | None = field(default=None, compare=False)


class Source(Protocol):
    """A source cluster, as landing sees it."""

    def topics(self) -> Mapping[str, SourceTopic]:
        """The selected topics that are there. Raises ClusterUnreachable."""

    def denied(self, topics: Collection[str]) -> Mapping[str, str | None]:
        """Those of some topics, which the cluster does not list, that may exist, with the reason
        why it does not describe them; None if we may not see them. Raises ClusterUnreachable."""

    def ends(self, keys: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, LogEnds]:
        """The log ends of some partitions (the end is the high watermark); those that do not answer
        are missing."""

    def high_watermarks(
        self, keys: Collection[TopicAndPartition]
    ) -> Mapping[TopicAndPartition, LogEnd]:
        """Only the ends, at half the cost of `ends`."""

    def rows(self, offsets: Mapping[TopicAndPartition, int]) -> Mapping[TopicAndPartition, Row]:
        """The first committed record of each partition at or behind an offset; missing where there
        is none."""


class LandingStore(Protocol):
    """What the lake knows of a source cluster."""

    def current_generations(self) -> CurrentGenerations:
        """The newest generation of every topic, and the partitions that have begun one since."""

    def begin(self, begun: Mapping[str, TopicGeneration]) -> None:
        """Note topics that are new."""

    def decisions(self) -> Collection[Decision]:
        """The known losses, and the decisions of operators."""

    def staged_ends(self) -> Mapping[TopicAndPartition, tuple[int, int]]:
        """The newest generation staged of every partition, and the offset after its last record."""

    def newest_batch(self) -> int:
        """The highest number of a batch that is staged, of whichever cluster; -1 without one."""

    def seen(self, places: Collection[PartitionGeneration]) -> Mapping[PartitionGeneration, int]:
        """How far earlier processes were seen to have landed, transaction markers included; for a
        partition of which nothing was landed, where it began when it was seen. A partition that was
        never seen is missing."""

    def staged_firsts(
        self, since: Mapping[TopicAndPartition, int]
    ) -> Mapping[TopicAndPartition, int]:
        """The first staged offset of each partition, in generations from a given one on."""

    def staged_rows(
        self, offsets: Mapping[TopicAndPartition, int], since: Mapping[TopicAndPartition, int]
    ) -> Mapping[TopicAndPartition, Row]:
        """The staged records at these offsets, one per partition, from the newest generation that
        has it, not before `since`; missing if none has."""

    def epochs(self) -> Mapping[TopicAndPartition, int]:
        """The leader epochs up to which logs are known to match the stage. They may be lost."""

    def note_epochs(self, epochs: Mapping[TopicAndPartition, int]) -> None:
        """Replace the noted epochs."""
