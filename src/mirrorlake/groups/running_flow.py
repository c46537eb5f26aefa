"""What consumer groups need to know of their flow, which runs in a thread of its own."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from mirrorlake.lake.other_logs import OtherLogs
from mirrorlake.offsets.positions import Reached, TopicAndPartition


class RunningFlow(Protocol):
    """A flow, as its groups ask it. Topics have the source's names; any thread may call."""

    def mirrors(self, topic: str) -> bool:
        """Whether the flow selects a topic of its source, which may be paused or refused."""

    def refuses(self, topic: str) -> bool:
        """Whether a topic must not be mirrored, or cannot by its name: no group is moved there."""

    def other_logs(self) -> OtherLogs:
        """The logs at the source that are not the mirrored ones, and wait for an operator or were
        stopped by one: positions in them are of a log of which nothing is landed."""

    def generation(self, key: TopicAndPartition) -> int:
        """In which generation of its topic a partition is landed now."""

    def generations(self) -> object:
        """What `generation` depends on: equal answers mean that none began in between."""

    def target_generation(self, topic: str) -> int | None:
        """The generation of its target topic that a topic is produced to; None if there is none
        (yet, or any more): no group is moved there."""

    def check_targets(self) -> None:
        """Compare the target's topics with those that the flow wrote to; `target_generation` then
        reflects what is there now. Raises ClusterUnreachable."""

    def reached(
        self, keys: Iterable[TopicAndPartition]
    ) -> Mapping[TopicAndPartition, Reached] | None:
        """How far the flow is in partitions, from its own memory; None if it does not know now."""

    def losses(self) -> int:
        """How often its map was cut by what the target lost: earlier translations may exceed it."""

    def passes_over(self) -> int:
        """A number that grows whenever the flow may go on without other records than before: it
        began anew, by the decisions of then, or parked records."""
