"""One partition of a flow as it is compared, and earlier comparisons of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mirrorlake.offsets.partition_ranges import PartitionRanges
from mirrorlake.offsets.positions import InGeneration, TopicAndPartition
from mirrorlake.offsets.ranges import Extent
from mirrorlake.verify.verdict import Allowances

ExtentRow = Mapping[str, Any]


@dataclass(frozen=True)
class Audited:
    """A stretch of source offsets that was compared before, the verdict, and the last offset of the
    target's log that was read for it."""

    extent: Extent
    proven: bool
    target_last: int
    record_count: int
    verdict: str


@dataclass(frozen=True)
class PartitionScope(InGeneration):
    """One partition of a flow with something to compare.

    Offsets `first` to `end` (exclusive) are those that the flow has passed: they are mapped, or
    left out on purpose. `target_first` is where the flow began at the target; up to `target_end`
    (exclusive) the target's log is known to belong to the flow. `asks_source` is False if the
    source's topic is not the staged one.
    """

    topic: str
    partition: int
    generation: int
    target_topic: str
    target_generation: int
    first: int
    end: int
    target_first: int
    target_end: int
    allowed: Allowances
    asks_source: bool = True
    audited: tuple[Audited, ...] = field(default=(), repr=False)

    @property
    def key(self) -> TopicAndPartition:
        """The source partition."""
        return self.topic, self.partition


def newest_extents(extents: Iterable[ExtentRow]) -> list[ExtentRow]:
    """The map's extent of each partition, in its newest generation and the last target topic."""
    newest: dict[TopicAndPartition, ExtentRow] = {}
    for row in extents:
        known = newest.get((row["topic"], row["partition"]))
        rank = (row["generation"], row["source_end"])
        if known is None or rank > (known["generation"], known["source_end"]):
            newest[row["topic"], row["partition"]] = row
    return list(newest.values())


def first_staged(staged: PartitionRanges | None, generation: int) -> int | None:
    """The first offset of a generation in the stage; None if the stage has none of it."""
    return None if staged is None else staged.first_of(generation)
