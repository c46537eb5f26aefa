"""The ids of generations of source topics, as far as a flow has met these."""

from collections.abc import Callable, Iterable

from mirrorlake.offsets.generations import GenerationIds, SourceGenerations
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.produce.batch import PartitionPlan


class KnownGenerations:
    """What the lake notes of generations before it stages their first record; `read` reads all of
    it, which is done once for each generation that a batch is the first to have."""

    def __init__(self, read: Callable[[], SourceGenerations]) -> None:
        self._read = read
        self._known = SourceGenerations()
        self._met: set[PartitionGeneration] = set()

    def refresh(self, partitions: Iterable[PartitionPlan]) -> None:
        """Read them again if one is new."""
        new = {plan.place for plan in partitions} - self._met
        if new:
            self._known = self._read()
            self._met |= new

    def ids(self, key: TopicAndPartition) -> GenerationIds:
        """Those of a partition."""
        return self._known.ids(key)
