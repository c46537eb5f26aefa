"""Which staged records must stay for now, since a flow may have produced them, or be about to.
Pure.

Mapped records may go: no flow reads them from the stage again. Behind the end of a map, records
that the target already has get their map rows by being counted in the stage, so none of them may be
missing there; while the flow runs, any of them may be in flight. All others may go: the flow
continues behind them.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mirrorlake.offsets.generations import GenerationIds, number_of
from mirrorlake.offsets.partition_ranges import PartitionRanges
from mirrorlake.offsets.positions import GenerationOffset, TopicAndPartition
from mirrorlake.offsets.runs import CommittedMetadata

_NEWER_THAN_ALL = 2**31 - 1


class StillNeeded(NamedTuple):
    """Offsets of a generation of a partition, from `first` to `below` (exclusive), that must stay
    for a flow."""

    flow: str
    topic: str
    partition: int
    generation: int
    first: int
    below: int


@dataclass(frozen=True)
class FlowPositions:
    """The positions of a flow. `floors` are the ends of its map: (generation, next source offset).
    `committed` are the positions at its target, queried while no other process could write; None
    otherwise. `mirrors` are topics that it produces now, or once began to."""

    flow: str
    floors: Mapping[TopicAndPartition, tuple[int, int]]
    committed: Mapping[TopicAndPartition, GenerationOffset] | None
    mirrors: Collection[str]


def known_position(
    known: GenerationIds, offset: int, metadata: CommittedMetadata
) -> GenerationOffset:
    """A committed position in the lake's own generations. One in an unknown generation says nothing
    about what the target has of known ones: it counts as newer."""
    number = number_of(known, metadata.generation, metadata.source_id)
    return GenerationOffset(_NEWER_THAN_ALL if number is None else number, offset)


def still_needed(
    known: FlowPositions, staged: Mapping[str, Mapping[int, PartitionRanges]]
) -> Iterator[StillNeeded]:
    """The staged records of some topics that must stay for a flow."""
    for topic, partitions in staged.items():
        for partition, ranges in partitions.items():
            key = (topic, partition)
            floor = known.floors.get(key)
            if floor is None and topic not in known.mirrors:
                continue
            for generation, end in ranges.ends().items():
                bounds = _bounds(generation, end, floor or (0, 0), known.committed, key)
                if bounds is not None and bounds[0] < bounds[1]:
                    yield StillNeeded(known.flow, topic, partition, generation, *bounds)


def _bounds(
    generation: int,
    end: int,
    floor: tuple[int, int],
    committed: Mapping[TopicAndPartition, GenerationOffset] | None,
    key: TopicAndPartition,
) -> tuple[int, int] | None:
    """The first offset of a generation that must stay, and the one behind the last; None if none
    must."""
    if generation < floor[0]:
        return None  # a newer one begins only when this one is mapped to its end
    first = floor[1] if generation == floor[0] else 0
    if committed is None:
        return first, end
    position = committed.get(key)
    if position is None or position.generation < generation:
        return None
    return first, position.offset if position.generation == generation else end
