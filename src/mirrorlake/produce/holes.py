"""Holes between the end of a flow's map and the stage: records that retention deleted before the
flow got them, or that landing passed over as existing flows began behind them (`start`). Pure.

Offsets alone do not show a hole: a compacted topic, or a transactional producer, leaves gaps with
nothing missing. Deletions and passed-over records are noted; the stage shows if they are gone.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from mirrorlake.lake.retention import Removal
from mirrorlake.offsets.generations import FIRST, TargetGeneration
from mirrorlake.offsets.partition_ranges import FileRange
from mirrorlake.offsets.positions import InGeneration, PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.progress import NOTHING_MAPPED, Floor
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.offsets.stage_index import StageIndex

Accepted = Mapping[PartitionGeneration, OffsetRanges]
"""Offsets that a flow goes on without, because an operator decided so."""
_NONE = OffsetRanges()
_NOT_NOTED: Mapping[str, datetime | None] = {}


@dataclass(frozen=True)
class Hole(InGeneration):
    """Offsets of a partition's generation, inclusive, where the flow lacks all records."""

    topic: str
    partition: int
    generation: int
    first: int
    last: int


def lacking(
    removals: Iterable[Removal],
    floors: Mapping[TopicAndPartition, Floor],
    remote_topic: Callable[[str], str | None],
    targets: Mapping[str, TargetGeneration],
    stopped: Collection[PartitionGeneration] = frozenset(),
    *,
    begun: Mapping[str, datetime | None] = _NOT_NOTED,
) -> dict[TopicAndPartition, list[Removal]]:
    """What a flow lacks of all that the stage ever lost or passed over, unless it is there again.

    A target topic that gets the stage lacks only what was deleted since it has `begun`, as long as
    nothing is mapped. A generation that an operator has `stopped` lacks nothing.
    """
    by_partition: dict[TopicAndPartition, list[Removal]] = {}
    for removal in removals:
        key, name = removal.place.topic_partition, remote_topic(removal.topic)
        if name is None or removal.place in stopped:
            continue
        of_stage = key not in floors and targets.get(name, FIRST).gets_the_stage
        if of_stage and not removal.is_later(begun.get(name)):
            continue
        floor = floors.get(key, NOTHING_MAPPED)
        if removal.generation < floor.generation:
            continue
        if removal.below > floor.of_generation(removal.generation).next:
            by_partition.setdefault(key, []).append(removal)
    for lacked in by_partition.values():
        lacked.sort(key=lambda removal: removal.generation)
    return by_partition


def find_holes(
    candidates: Mapping[TopicAndPartition, list[Removal]],
    floors: Mapping[TopicAndPartition, Floor],
    index: StageIndex,
    source_cluster: str,
    accepted: Accepted,
    forgotten: Collection[PartitionGeneration],
) -> Iterator[Hole]:
    """The first unaccepted hole of each partition. Those in `forgotten` had staged records once."""
    for key, removals in sorted(candidates.items()):
        ranges = index.partition(source_cluster, key)
        for removal in removals:
            staged = next(ranges.above(removal.generation, 0), None)
            if staged is None and removal.place not in forgotten:
                # nothing landed yet: landing will begin where the existing flows want it
                continue
            hole = _hole(removal, floors.get(key, NOTHING_MAPPED), staged)
            if hole is not None and not accepted.get(removal.place, _NONE).covers(
                hole.first, hole.last
            ):
                yield hole
                break


def _hole(removal: Removal, floor: Floor, staged: FileRange | None) -> Hole | None:
    first = max(floor.of_generation(removal.generation).next, removal.first_offset)
    # Noted records may not be deleted yet, or only in part; or they were read again.
    last = removal.below - 1
    if staged is not None and staged.generation == removal.generation:
        last = min(last, staged.first - 1)
    return Hole(*removal.place, first, last) if first <= last else None
