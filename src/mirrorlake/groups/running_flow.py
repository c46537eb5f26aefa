"""What consumer groups have to know of the flow that they belong to, which runs in a thread of its
own."""

from collections.abc import Iterable, Mapping, Set
from typing import Protocol

from mirrorlake.offsets.positions import Reached, TopicAndPartition


class RunningFlow(Protocol):
    """A flow, as its groups ask it. Topics are named as at the source; every call may come from any
    thread."""

    def mirrors(self, topic: str) -> bool:
        """Whether the flow selects a topic of its source; it may be paused, or refused, all the
        same."""

    def refuses(self, topic: str) -> bool:
        """Whether a topic must not be mirrored, or its mirror could not bear its name: no group is
        moved there."""

    def made_again(self) -> Set[str]:
        """Topics that were made again at the source, and wait for an operator or were stopped by
        one: positions there are of a log of which nothing is landed."""

    def generation(self, key: TopicAndPartition) -> int:
        """In which generation of its topic a partition is landed now."""

    def generations(self) -> object:
        """What `generation` goes by: it equals another answer as long as none has begun since."""

    def target_generation(self, topic: str) -> int | None:
        """Which generation of its target topic a topic is produced to; None where there is none
        (yet, or any more), and no group is moved there."""

    def check_targets(self) -> None:
        """Compare the target's topics with those that the flow wrote to: `target_generation` then
        goes by what is there now. Raises ClusterUnreachable."""

    def reached(
        self, keys: Iterable[TopicAndPartition]
    ) -> Mapping[TopicAndPartition, Reached] | None:
        """How far the flow is in partitions of its own knowledge; None if it does not know now."""

    def losses(self) -> int:
        """How often it has taken out of its map what the target has lost: what was translated
        before may lie behind that."""
