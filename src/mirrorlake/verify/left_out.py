"""What a flow leaves out for a noted reason, or lacks by right, and what the stage has lost."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.lake.forgotten import forgotten_from
from mirrorlake.lake.incidents import Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.retention import Removal
from mirrorlake.lake.table_upkeep import removals_from
from mirrorlake.lake.targets import LivingMirror
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.offsets.parked import Parked, ParkedOffsets
from mirrorlake.offsets.positions import MirroredPartition, PartitionGeneration
from mirrorlake.offsets.progress import MappedEnd
from mirrorlake.offsets.ranges import NO_END, Extent, OffsetRanges
from mirrorlake.offsets.starts import Starts
from mirrorlake.verify import verdict as kinds
from mirrorlake.verify.partition_scope import ExtentRow

_NOWHERE = LivingMirror(None, None)
_NONE = OffsetRanges()


class LeftOut:
    """Source offsets that one flow goes on without, queried once."""

    def __init__(
        self, flow: ResolvedFlow, lake: Lake, mirrors: Mapping[str, LivingMirror], starts: Starts
    ) -> None:
        """`mirrors` are the topics that source topics are mirrored to now, and `starts` those of
        the flow."""
        self._mirrors, self._starts = mirrors, starts
        #: Whether the flow may have left out echoes, which no map has, and no offset shows.
        self._has_echoes = flow.settings.provenance != "none"
        self._removals = removals_from(lake, flow.source)
        self._removed: dict[PartitionGeneration, OffsetRanges] = defaultdict(OffsetRanges)
        for removal in self._removals:
            self._removed[removal.place].add(_extents(removal.first_offset, removal.below))
        self._forgotten = forgotten_from(lake, flow.source)
        self._parked = ParkedOffsets(Parked(**row) for row in lake.ask("parked_of", flow=flow.name))
        decided = Incidents(lake).decided(flow.name, lambda topic: mirrors.get(topic, _NOWHERE))
        self._given_up, self._accepted = decided.skipped, decided.accepted_holes()

    def lacks_by_right(
        self,
        noted: Mapping[str, list[NotedTarget]],
        ends: Iterable[MappedEnd],
        rows: Iterable[ExtentRow],
    ) -> None:
        """Count what target topics that were made again lack of what the stage has lost. `noted`
        are their generations, `ends` those of the map, and `rows` what is mapped of the living
        generations."""
        if not self._removals:
            return
        mapped = {PartitionGeneration.from_row(row): row["source_first"] for row in rows}
        before = self._mapped_before(ends)
        for removal in self._removals:
            place, mirror = removal.place, self._mirrors.get(removal.topic, _NOWHERE)
            number = mirror.generation or 0
            known = [one for one in noted.get(mirror.name or "", ()) if one.number <= number]
            if known and number:
                below = _lacks_below(removal, known[-1], mapped.get(place), before.get(place, 0))
                self._accepted[place].add(_extents(removal.first_offset, below))

    def _mapped_before(self, ends: Iterable[MappedEnd]) -> Mapping[PartitionGeneration, int]:
        """Where the map ends of what earlier generations of target topics have got."""
        before: dict[PartitionGeneration, int] = {}
        for end in ends:
            name, number = self._mirrors.get(end.topic, _NOWHERE)
            if end.target_topic == name and end.target_generation < (number or 0):
                place = PartitionGeneration(end.topic, end.partition, end.generation)
                before[place] = max(before.get(place, 0), end.source_position)
        return before

    def start(self, place: PartitionGeneration) -> int:
        """From which offset on the flow mirrors what was there at its first start."""
        return self._starts.get(place, 0)

    def forgotten(self, place: PartitionGeneration) -> OffsetRanges:
        """What was deleted from the stage by predicate."""
        return self._forgotten.get(place, _NONE)

    def lost_of_stage(self, place: PartitionGeneration) -> OffsetRanges:
        """What `maintain` deleted from the stage, or landing passed over."""
        return self._removed.get(place, _NONE)

    def removed(self, place: PartitionGeneration) -> list[Extent]:
        """The same, where the flow may lack none of it, unless another reason is noted."""
        return [] if self._has_echoes else list(self.lost_of_stage(place))

    def gone(self, place: PartitionGeneration) -> list[Extent]:
        """What is noted as gone from the stage, other than by predicate."""
        return [*self._accepted.get(place, ()), *self.lost_of_stage(place)]

    def passed_over(self, mirrored: MirroredPartition) -> list[Extent]:
        """What the flow may lack for a noted reason: given up by an operator, gone from the stage
        and accepted, or parked."""
        place = PartitionGeneration(*mirrored[:3])
        known = [*self._given_up.get(place, ()), *self._accepted.get(place, ())]
        if self._has_echoes:
            known += self.lost_of_stage(place)
        return [*known, *self._parked.within(mirrored, 0, NO_END)]

    def by_reason(self, mirrored: MirroredPartition) -> dict[str, OffsetRanges]:
        """All of it, by reason, as `Allowances` have it."""
        place = PartitionGeneration(*mirrored[:3])
        known = {
            kinds.GIVEN_UP: self._given_up.get(place),
            kinds.STAGE_TRIMMED: self._accepted.get(place),
            kinds.FORGOTTEN: self._forgotten.get(place),
            kinds.REMOVED: self._removed.get(place),
            kinds.PARKED: OffsetRanges(self._parked.within(mirrored, 0, NO_END)),
        }
        return {why: ranges for why, ranges in known.items() if ranges}


def _lacks_below(removal: Removal, noted: NotedTarget, first: int | None, before: int) -> int:
    """Below which offset a target topic that was made again lacks by right what was removed:
    `first` is the first offset that is mapped there, `before` is where the topic before it ended.

    The time of a removal is that of the last one of its place: once something is mapped, it does
    not tell when the rest was removed, and a flow stops in front of what it lacks."""
    if noted.begins == "end":
        return min(removal.below, before)
    if first is None:
        return 0 if removal.is_later(noted.noted_at) else removal.below
    return min(removal.below, first)


def _extents(first: int, below: int) -> list[Extent]:
    """The offsets from one up to another (exclusive), as an extent if there is one."""
    return [(first, below - 1)] if first < below else []
