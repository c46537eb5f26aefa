"""Which staged records must stay for now, since a flow may have produced them, or be about to.
Pure.

What is mapped may go: no flow asks the stage for it again. Of what lies behind the end of a map,
the records that the target has already get their rows of the map by being counted in the stage, so
none of them may be missing there; where the flow runs, any of them may be on its way. The others
may go: the flow goes on behind them.
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
    """Offsets of a generation of a partition, from `first` to below `below`, that must stay for a
    flow."""

    flow: str
    topic: str
    partition: int
    generation: int
    first: int
    below: int


@dataclass(frozen=True)
class FlowPositions:
    """What is known of a flow. `floors` are the ends of its map: (generation, next source offset).
    `committed` are the positions at its target, asked for while no other process could write; None
    where that is not so. `mirrors` are topics that it produces now, or has begun to produce at some
    time."""

    flow: str
    floors: Mapping[TopicAndPartition, tuple[int, int]]
    committed: Mapping[TopicAndPartition, GenerationOffset] | None
    mirrors: Collection[str]


def known_position(
    known: GenerationIds, offset: int, metadata: CommittedMetadata
) -> GenerationOffset:
    """A position at a target in the lake's own generations. One of a generation that it does not
    know says nothing of what the target took of those that it does: it counts as newer."""
    number = number_of(known, metadata.generation, metadata.source_id)
    return GenerationOffset(_NEWER_THAN_ALL if number is None else number, offset)


def still_needed(
    known: FlowPositions, staged: Mapping[str, Mapping[int, PartitionRanges]]
) -> Iterator[StillNeeded]:
    """What of the staged records of some topics must stay for a flow."""
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
    """First offset, and the one behind the last, of a generation; None where nothing of it must
    stay."""
    if generation < floor[0]:
        return None  # a newer one is begun only when this one is mapped to its end
    first = floor[1] if generation == floor[0] else 0
    if committed is None:
        return first, end
    position = committed.get(key)
    if position is None or position.generation < generation:
        return None
    return first, position.offset if position.generation == generation else end
