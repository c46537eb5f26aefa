"""Records that a target refused and a flow went on behind, as in the table `parked`. Pure."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from mirrorlake.offsets.positions import MirroredPartition
from mirrorlake.offsets.ranges import OffsetRanges


@dataclass(frozen=True)
class Parked:
    """A row of `parked`, without its flow and its times. `generation` is of the source topic,
    `reason` Kafka's name of the refusal, `byte_count` the size of key and value."""

    topic: str
    partition: int
    generation: int
    offset: int
    target_topic: str
    target_generation: int
    reason: str
    byte_count: int

    @property
    def place(self) -> MirroredPartition:
        """The generations of the source partition, and of the target topic that refused it."""
        return MirroredPartition.from_row(vars(self))


class ParkedOffsets:
    """The source offsets that a flow leaves out, by `Parked.place`."""

    def __init__(self, rows: Iterable[Parked]) -> None:
        self._offsets: dict[MirroredPartition, OffsetRanges] = {}
        self.add(rows)

    def add(self, rows: Iterable[Parked]) -> None:
        """Leave out these records too."""
        fresh: dict[MirroredPartition, list[tuple[int, int]]] = defaultdict(list)
        for row in rows:
            fresh[row.place].append((row.offset, row.offset))
        for place, ranges in fresh.items():
            self._offsets.setdefault(place, OffsetRanges()).add(ranges)

    def within(
        self, place: MirroredPartition, first: int, last: int
    ) -> tuple[tuple[int, int], ...]:
        """The parked offsets from `first` to `last` as ranges; all bounds are inclusive."""
        return self._offsets.get(place, OffsetRanges()).within(first, last)
