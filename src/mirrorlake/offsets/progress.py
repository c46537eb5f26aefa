"""How far a flow is: per (topic, generation, partition) the end of its map. Pure.

The position that the target committed is the other half of progress; tasks ask for it, since it
holds still only once a task has fenced all others. Nothing else decides what is produced next.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mirrorlake.offsets.generations import FIRST, TargetGeneration
from mirrorlake.offsets.positions import TopicAndPartition


@dataclass(frozen=True)
class MappedEnd:
    """The end of the map in one target generation and one source generation of a partition, from
    the table; both positions are those after the last mapped record."""

    topic: str
    partition: int
    target_topic: str
    target_generation: int
    generation: int
    source_position: int
    target_position: int


@dataclass(frozen=True)
class Floor:
    """Where a flow goes on in a partition.

    `source` is the next source offset to map, of this `generation` of the topic; `target` the
    target offset after the last one mapped in this `target_generation` (None if nothing has been
    mapped in it). `reached` is the next source offset to read: above `source` if records were left
    out on purpose, which have no row in the map.
    """

    source: int
    target: int | None
    generation: int = 0
    target_generation: int = 0
    reached: int = 0

    @property
    def next(self) -> int:
        """The next source offset to read."""
        return max(self.source, self.reached)

    def of_generation(self, generation: int) -> "Floor":
        """Where to go on in a generation of the topic: here, or at the start of a newer one."""
        if generation == self.generation:
            return self
        return Floor(0, self.target, generation, self.target_generation)


NOTHING_MAPPED = Floor(0, None)


def floors_of(
    ends: Iterable[MappedEnd],
    remote_topic: Callable[[str], str | None],
    targets: Mapping[str, TargetGeneration],
) -> dict[TopicAndPartition, Floor]:
    """Where a flow goes on in each partition of which it has mapped records.

    `targets` are the living generations of target topics. Records mapped into a target topic of
    another name, or into an older generation that counts, are not produced again, and give no
    offsets in the living one.
    """
    floors: dict[TopicAndPartition, Floor] = {}
    for mapped in ends:
        key = (mapped.topic, mapped.partition)
        name = remote_topic(mapped.topic) or mapped.target_topic
        living = targets.get(name, FIRST)
        if mapped.target_topic == name and mapped.target_generation < living.counts_from:
            continue
        here = mapped.target_topic == name and mapped.target_generation == living.number
        target = mapped.target_position if here else None
        known = floors.get(key)
        if known is None:
            floors[key] = Floor(mapped.source_position, target, mapped.generation, living.number)
            continue
        newest = max((known.generation, known.source), (mapped.generation, mapped.source_position))
        targets_known = [position for position in (known.target, target) if position is not None]
        floors[key] = Floor(newest[1], max(targets_known, default=None), newest[0], living.number)
    return floors
