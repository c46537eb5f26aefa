"""Where landing may have staged around records. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.stage_index import StageIndex

Doubtful = Mapping[PartitionGeneration, tuple[int, int]]
"""Offsets within which records may be missing: the first one, inclusive, and the end, exclusive."""


@dataclass(frozen=True)
class LeftQuery:
    """How far a query has read each partition, as its tasks report; it may have staged more behind
    that. `name` is its checkpoint's; `generations` are those other than 0."""

    name: str
    ends: Mapping[TopicAndPartition, int]
    generations: Mapping[TopicAndPartition, int]

    @property
    def places(self) -> list[PartitionGeneration]:
        """The partitions that it read."""
        return [PartitionGeneration(*key, self.generations.get(key, 0)) for key in self.ends]


@dataclass(frozen=True)
class Gap:
    """Source offsets, inclusive, within which `count` records that the source has are not staged;
    None if the source does not tell, for `reason`."""

    place: PartitionGeneration
    first: int
    last: int
    count: int | None
    reason: str = ""


def doubtful(index: StageIndex, alias: str, left: Iterable[LeftQuery]) -> Doubtful:
    """Where queries staged fewer records than offsets; the next query reads what lies behind."""
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
            # A compacted file may begin before `first`: how many of its records lie behind that is
            # not known, so they do not count.
            if end - first > sum(one.record_count for one in staged if one.first >= first):
                ranges[place] = min(first, ranges[place][0]) if place in ranges else first, end
    return ranges
