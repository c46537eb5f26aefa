"""The state of a flow after one poll of its stage, and how other threads get it."""

import threading
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.errors import MapBehind
from mirrorlake.landing.source_comparison import CurrentGenerations
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.produce.flow import FlowProducer


@dataclass(frozen=True)
class Snapshot:
    """The state of a flow after one poll. `covered` is what was landed before the poll, and
    `caught_up` whether all of that was produced; `floors` are the positions where it goes on, and
    `mapped` the ends of the map of what it has produced (rows of it may still be on their way).
    `blocked` partitions wait for an operator or were stopped by one; `left_out` topics were left
    out at that poll. `target_generations` are those of the target topics that it produced to.
    `written` is up to where it has written to target partitions, by source partition; `behind` are
    those whose map is behind the target. Source offsets are of `generations`: a partition that the
    flow has yet to bring to its newest generation has none."""

    covered: dict[TopicAndPartition, int]
    caught_up: bool
    floors: dict[TopicAndPartition, int]
    mapped: dict[TopicAndPartition, int]
    blocked: frozenset[TopicAndPartition]
    left_out: frozenset[str]
    target_generations: Mapping[str, int] = field(default_factory=dict)
    written: Mapping[TopicAndPartition, int] = field(default_factory=dict)
    generations: CurrentGenerations = field(default_factory=CurrentGenerations)
    behind: Mapping[PartitionGeneration, MapBehind] = field(default_factory=dict)

    def covered_end(self, key: TopicAndPartition) -> int:
        """How far a partition is landed."""
        floor = self.floors.get(key, 0)
        return max(floor, self.covered.get(key, floor))

    def produced_end(self, key: TopicAndPartition, targets: TargetTopics) -> int:
        """How far a partition is produced.

        If a poll finds nothing more, all is produced: the flow has passed transaction markers too.
        """
        return self.covered_end(key) if self.all_produced(key, targets) else self.floors.get(key, 0)

    def all_produced(self, key: TopicAndPartition, targets: TargetTopics) -> bool:
        """Whether all of a partition has been produced."""
        waits = (
            key in self.blocked or key[0] in self.left_out or targets.produced_topic(key[0]) is None
        )
        return self.caught_up and not waits

    def moved_since(self, before: "Snapshot | None") -> Set[TopicAndPartition]:
        """Partitions landed or produced further since another poll; all if there was none."""
        now = (self.covered, self.floors, self.written)
        then = ({}, {}, {}) if before is None else (before.covered, before.floors, before.written)
        return {
            key
            for ends, known in zip(now, then, strict=True)
            for key, end in ends.items()
            if known.get(key) != end
        }

    def is_behind(self, place: PartitionGeneration, offset: int) -> bool:
        """Whether the flow has passed an offset, or come to a newer generation of it."""
        key = place.topic_partition
        return key in self.floors and (self.generations.generation(key), self.floors[key]) > (
            place.generation,
            offset,
        )


def snapshot_of(
    producer: FlowProducer,
    covered: dict[TopicAndPartition, int],
    caught_up: bool,
    generations: CurrentGenerations,
    target_generations: Mapping[str, int],
) -> Snapshot:
    """A producer's state; `covered` was landed before its last poll, in `generations` or later."""
    living = {
        key: floor
        for key, floor in producer.floors().items()
        if floor.generation == generations.generation(key)
    }
    floors = {key: floor.next for key, floor in living.items()}
    # The map has nothing yet of a target topic that was made again, however far the last went.
    mapped = {key: floor.source for key, floor in living.items() if floor.target is not None}
    spec, left_out = producer.spec, frozenset(producer.spec.left_out)
    stopped = {
        place.topic_partition
        for place in (*spec.stopped, *spec.whole)
        if place == generations.place(place.topic_partition)
    }
    written = {
        key: floor.target
        for key, floor in producer.floors().items()
        if floor.target is not None and spec.remote_topic(key[0]) is not None
    }
    return Snapshot(
        covered=covered,
        caught_up=caught_up,
        floors=floors,
        mapped=mapped,
        blocked=spec.blocked | stopped,
        left_out=left_out,
        target_generations=target_generations,
        written=written,
        generations=generations,
        behind=spec.whole,
    )


class Snapshots:
    """Snapshots that the flow's thread hands over after a poll, when another thread wants one."""

    def __init__(self) -> None:
        self.last: Snapshot | None = None
        self._wanted = threading.Event()
        self._taken = threading.Event()

    @property
    def wanted(self) -> bool:
        """Whether a caller waits for one."""
        return self._wanted.is_set()

    def take(self, snapshot: Snapshot) -> None:
        """Hand over a snapshot of the flow as it is now."""
        self.last = snapshot
        self._wanted.clear()
        self._taken.set()

    def next(self, seconds: float) -> Snapshot | None:
        """A snapshot of the flow after its next poll; None if no poll completes in time."""
        self._taken.clear()
        self._wanted.set()
        return self.last if self._taken.wait(seconds) else None
