"""What planning a landing query needs of a source cluster and of the lake: ports, over which the
same decisions run against clusters and against a model."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mirrorlake.kafka.values import Row
from mirrorlake.landing.source_comparison import CurrentGenerations, Decision, TopicGeneration
from mirrorlake.offsets.positions import LogEnd, LogEnds, PartitionGeneration, TopicAndPartition


@dataclass(frozen=True)
class SourceTopic:
    """A topic as the source shows it now: Kafka's id of it, how many partitions it has, those of
    them that have no leader, and whether it may be read. One that is shown, and not described, has
    neither id nor partitions, and says why it is not, which is one thing whatever it is."""

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
        """Those of some topics, which it does not show, that may be there; and why it does not
        describe them, None where we may not see them. Raises ClusterUnreachable."""

    def ends(self, keys: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, LogEnds]:
        """What is there of some partitions (the end: the high watermark); those that do not answer
        are missing."""

    def high_watermarks(
        self, keys: Collection[TopicAndPartition]
    ) -> Mapping[TopicAndPartition, LogEnd]:
        """The ends alone, at half of what both cost."""

    def rows(self, offsets: Mapping[TopicAndPartition, int]) -> Mapping[TopicAndPartition, Row]:
        """The first committed record of each partition at or behind an offset; missing where there
        is none."""


class LandingStore(Protocol):
    """What the lake knows of a source cluster."""

    def current_generations(self) -> CurrentGenerations:
        """The newest generation of every topic, and the partitions that went another way since."""

    def begin(self, begun: Mapping[str, TopicGeneration]) -> None:
        """Note topics that are seen first."""

    def decisions(self) -> Collection[Decision]:
        """What is known of losses, and what operators decided."""

    def staged_ends(self) -> Mapping[TopicAndPartition, tuple[int, int]]:
        """The newest generation staged of every partition, and the offset after its last record."""

    def seen(self, places: Collection[PartitionGeneration]) -> Mapping[PartitionGeneration, int]:
        """How far landing was seen to have come by earlier processes, over transaction markers too;
        or, of a partition of which nothing was landed, where it began when it was seen. Those never
        seen are missing."""

    def staged_firsts(
        self, since: Mapping[TopicAndPartition, int]
    ) -> Mapping[TopicAndPartition, int]:
        """The first offset staged of each partition in the generations since one."""

    def staged_rows(
        self, offsets: Mapping[TopicAndPartition, int], since: Mapping[TopicAndPartition, int]
    ) -> Mapping[TopicAndPartition, Row]:
        """The staged records of these offsets, one a partition, of the newest generation since one
        that has it; missing where none has."""

    def epochs(self) -> Mapping[TopicAndPartition, int]:
        """The leader epochs up to which logs are known to match the stage. They may be lost."""

    def note_epochs(self, epochs: Mapping[TopicAndPartition, int]) -> None:
        """Replace them."""
