"""What of the stage may be deleted. Pure.

A record may be deleted when every flow that mirrors its topic has it in its map, and it is not the
newest of its partition: by that one, landing knows where to go on when its checkpoint is lost.
Another module checks its age. Disabled flows count until a record is so old that they no longer do;
`holes` reports what they then lack when they come back.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mirrorlake.offsets.positions import InGeneration, PartitionGeneration, TopicAndPartition

#: By how much the clocks of two hosts may differ, also in `sql/queries/not_in_stage.sql`.
CLOCKS_DIFFER = timedelta(minutes=5)


@dataclass(frozen=True)
class _OfPartition(InGeneration):
    """Something about one generation of a partition of a source cluster."""

    source_cluster: str
    topic: str
    partition: int
    generation: int


@dataclass(frozen=True)
class StagedGeneration(_OfPartition):
    """What the stage holds of one generation of a partition: offsets `first` to `last`, inclusive.
    Those up to `old_last` are old enough to be deleted; those up to `released_last` even if a
    disabled flow lacks them. None if no offset is."""

    first: int
    last: int
    old_last: int | None
    released_last: int | None = None


@dataclass(frozen=True)
class ConsumingFlow:
    """A flow that has to get what it mirrors. `floors` are the ends of its map: (generation, next
    source offset) of each (topic, partition); a partition without one has not been produced at all.
    `within` are the offsets (inclusive) that it reads of each generation of a partition, and none
    of other generations; None: it reads all."""

    flow: str
    source_cluster: str
    mirrors: Callable[[str], bool]
    floors: Mapping[TopicAndPartition, tuple[int, int]]
    enabled: bool = True
    within: Mapping[PartitionGeneration, tuple[int, int]] | None = None


@dataclass(frozen=True)
class Cut(_OfPartition):
    """Old records of this generation of a partition may be deleted below this offset."""

    below: int


@dataclass(frozen=True)
class Removal(_OfPartition):
    """What the stage lacks of one generation of a partition, because it was deleted or landing
    began behind it: offsets from `first_offset` (inclusive) to `below` (exclusive). `removed_at` is
    when that was noted last; None if it is not noted yet."""

    first_offset: int
    below: int
    removed_at: datetime | None = field(default=None, compare=False)

    def covers(self, other: "Removal") -> bool:
        """Whether another removal, of the same place, adds nothing to this one."""
        return self.first_offset <= other.first_offset and other.below <= self.below

    def is_later(self, time: datetime | None) -> bool:
        """Whether it may be later than another host's time; False if either is not known."""
        if self.removed_at is None or time is None:
            return False
        return self.removed_at >= time - CLOCKS_DIFFER


@dataclass(frozen=True)
class Retained:
    """Old records of a partition, from `offset` on, that wait for a flow."""

    flow: str
    topic: str
    partition: int
    generation: int
    offset: int


def cut_records(
    staged: Iterable[StagedGeneration], readers: Sequence[ConsumingFlow]
) -> tuple[list[Cut], list[Retained]]:
    """What of the stage, all in `staged`, may be deleted, and what is old but waits for a flow."""
    extents = list(staged)
    newest: dict[tuple[str, str, int], int] = {}
    for extent in extents:
        key = (extent.source_cluster, extent.topic, extent.partition)
        newest[key] = max(newest.get(key, 0), extent.generation)
    cuts, retained = [], []
    for extent in extents:
        if extent.old_last is None:
            continue
        key = (extent.source_cluster, extent.topic, extent.partition)
        below = extent.last if extent.generation == newest[key] else extent.last + 1
        for reader in readers:
            if reader.source_cluster == extent.source_cluster and reader.mirrors(extent.topic):
                produced = produced_end(reader, extent)
                if produced <= extent.old_last:
                    offset = max(produced, extent.first)
                    retained.append(Retained(reader.flow, *extent.place, offset))
                below = min(below, produced)
        if below > extent.first:
            cuts.append(Cut(extent.source_cluster, *extent.place, below))
    return cuts, retained


def produced_end(reader: ConsumingFlow, extent: StagedGeneration) -> int:
    """The offset (exclusive) up to which a flow needs no more of this generation."""
    produced = _mapped_end(reader, extent)
    if reader.within is None:
        return produced
    first, last = reader.within.get(extent.place, (0, -1))
    produced = max(produced, first)
    return produced if produced <= last else extent.last + 1


def _mapped_end(reader: ConsumingFlow, extent: StagedGeneration) -> int:
    """The same, by the flow's map alone."""
    generation, position = reader.floors.get((extent.topic, extent.partition), (0, 0))
    if generation > extent.generation:
        # a newer generation is begun only when the previous one is produced to its end
        return extent.last + 1
    produced = position if generation == extent.generation else 0
    if not reader.enabled and extent.released_last is not None:
        return max(produced, extent.released_last + 1)
    return produced


def removals_of(staged: Iterable[StagedGeneration], cuts: Iterable[Cut]) -> list[Removal]:
    """What cuts delete: the offsets below them that are old enough."""
    extents = {(extent.source_cluster, extent.place): extent for extent in staged}
    removals = []
    for cut in cuts:
        extent = extents[cut.source_cluster, cut.place]
        below = min(cut.below, -1 if extent.old_last is None else extent.old_last + 1)
        if below > extent.first:
            removals.append(Removal(cut.source_cluster, *cut.place, extent.first, below))
    return removals
