"""Where landing may have staged around something. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.stage_index import StageIndex

Doubtful = Mapping[PartitionGeneration, tuple[int, int]]
"""Offsets within which records may be missing: the first one, inclusive, and the end, exclusive."""


@dataclass(frozen=True)
class LeftQuery:
    """Up to where a query has read each partition, as its tasks say; nothing says it of what it
    staged behind that. `name` is its checkpoint's; `generations` are those other than 0."""

    name: str
    ends: Mapping[TopicAndPartition, int]
    generations: Mapping[TopicAndPartition, int]

    @property
    def places(self) -> list[PartitionGeneration]:
        """What it read."""
        return [PartitionGeneration(*key, self.generations.get(key, 0)) for key in self.ends]


@dataclass(frozen=True)
class Gap:
    """Source offsets, inclusive, within which so many records are not staged that the source has;
    None where the source does not say, for a reason."""

    place: PartitionGeneration
    first: int
    last: int
    count: int | None
    reason: str = ""


def doubtful(index: StageIndex, alias: str, left: Iterable[LeftQuery]) -> Doubtful:
    """Where queries have staged fewer records than there are offsets up to the last one. What lies
    behind that the next query reads."""
    ranges: dict[PartitionGeneration, tuple[int, int]] = {}
    for query in left:
        for place, first in zip(query.places, query.ends.values(), strict=True):
            staged = [
                one
                for one in index.partition(alias, place.topic_partition).above(
                    place.generation, first
                )
                if one.generation == place.generation
            ]
            end = max((one.last + 1 for one in staged), default=first)
            # Of files that were put together since it is not known what lies behind the first one.
            if end - first > sum(one.record_count for one in staged if one.first >= first):
                ranges[place] = min(first, ranges[place][0]) if place in ranges else first, end
    return ranges
