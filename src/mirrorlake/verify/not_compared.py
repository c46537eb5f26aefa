"""What a flow selects and a comparison did not see: which records of a partition, and why. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import Any

from mirrorlake.offsets.partition_ranges import PartitionRanges
from mirrorlake.offsets.positions import GenerationOffset, InGeneration, TopicAndPartition
from mirrorlake.offsets.ranges import NO_END, Extent, OffsetRanges, merged

#: Why records were not compared (docs/trust.md says what each means).
NOT_STAGED, NOT_MAPPED, IN_FLIGHT = "not_staged", "not_mapped", "in_flight"
PAUSED, REFUSED, STOPPED = "paused", "refused", "stopped"
NO_ANSWER, INTERRUPTED, DIFFERED = "no_answer", "interrupted", "differed"
GONE = "{} when it was compared, and the stage has it no more"
NO_WORD = "the source does not say what it has of it"
IN_FRONT = "it lies in front of all that is staged or compared"
BEYOND_MAP = (
    "the target does not know how far the flow is; what {}-{} has from its offset {} on is not "
    "compared"
)
SILENT = "no leader of {}-{} says what the target has"
#: How many stretches of a partition are looked up, each in a round of its own.
_LOOKED_UP = 16
#: Incidents that do not hold records up.
_HARMLESS = frozenset(
    {
        *("content_differs", "landing_gap", "acls_left", "upkeep_failed", "other_writer"),
        *("topology_edit", "not_a_member"),
    }
)


@dataclass(frozen=True)
class NotCompared(InGeneration):
    """Source offsets `first` to `last`, inclusive (None: the end is unknown), that were not
    compared."""

    topic: str
    partition: int
    generation: int
    first: int
    last: int | None
    reason: str
    detail: str = ""

    def row(self, flow: str) -> dict[str, Any]:
        """The stretch as an answer shows it."""
        return {
            "flow": flow,
            **self.place._asdict(),
            "first_offset": self.first,
            "last_offset": self.last,
            "reason": self.reason,
            "detail": self.detail,
        }


@dataclass(frozen=True)
class PartitionFacts:
    """What is known of one partition.

    `compared` is where comparison has come to. `staged` is what the stage holds; `left_out` gives
    the source offsets of a generation that a flow leaves out on purpose. `landed` is where landing
    has come to in the living generation. `source` has the start and the end of the source's log,
    None if unknown; `same` is False if the topic there is not the staged one. `begins` is where the
    flow's part of the living generation begins, and `first` the first offset of that generation
    that is compared or staged; None: none is. `passed_over` are offsets that the flow may lack for
    a noted reason; `removed` are those that were deleted from the stage, which the map has to have.
    """

    key: TopicAndPartition
    compared: GenerationOffset
    staged: PartitionRanges | None
    left_out: Callable[[int], Iterable[Extent]]
    landed: GenerationOffset
    source: tuple[int, int] | None
    same: bool = True
    begins: int = 0
    first: int | None = None
    passed_over: Sequence[Extent] = ()
    removed: Sequence[Extent] = ()


def not_mapped(known: PartitionFacts) -> list[NotCompared]:
    """What is staged, and neither mapped nor passed by the flow's position at its target."""
    stretches: list[NotCompared] = []
    if known.staged is None:
        return stretches
    for generation in known.staged.ends():
        if generation < known.compared.generation:
            continue
        first = known.compared.offset if generation == known.compared.generation else 0
        staged = merged(
            (max(first, file_range.first), file_range.last)
            for file_range in known.staged.within(generation, first, NO_END)
        )
        left_out = OffsetRanges(known.left_out(generation))
        for extent in (part for stretch in staged for part in left_out.lacking(*stretch)):
            stretches.append(NotCompared(*known.key, generation, *extent, NOT_MAPPED))
    return stretches


def maybe_not_staged(known: PartitionFacts) -> NotCompared | None:
    """The stretch of the source's log that was not landed; it may hold markers alone."""
    generation, landed = known.landed
    if known.source is None:
        return NotCompared(*known.key, generation, landed, None, NO_ANSWER, detail=NO_WORD)
    start, end = known.source
    first = max(start, landed) if known.same else start
    return NotCompared(*known.key, generation, first, end - 1, NOT_STAGED) if first < end else None


def removed_head(known: PartitionFacts) -> Extent | None:
    """The offsets from the first to the last that the source still has of those that were removed
    from the stage, if nothing but the map can show that the flow has them."""
    ranges = OffsetRanges(known.removed)
    removed = [extent for head in _heads(known) for extent in ranges.within(*head)]
    return (removed[0][0], removed[-1][1]) if removed else None


def maybe_skipped(known: PartitionFacts, mapped: Iterable[Extent] = ()) -> list[NotCompared]:
    """The stretches of the source's log in front of all compared or staged offsets not left out on
    purpose, at most 16, the longest first: landing begins where a log does, or notes what it passes
    over. Of what was removed from the stage, these are not in `mapped`, the map of `removed_head`.
    Whether one holds a record must be looked up: it may be markers, or gaps of compaction."""
    removed = OffsetRanges(known.removed)
    sent = OffsetRanges(part for one in merged(mapped) for part in removed.within(*one))
    lacking = [part for head in _heads(known) for part in sent.lacking(*head)]
    longest = nlargest(_LOOKED_UP, lacking, key=lambda extent: extent[1] - extent[0])
    place = (*known.key, known.landed.generation)
    return [NotCompared(*place, *extent, NOT_STAGED, detail=IN_FRONT) for extent in longest]


def _heads(known: PartitionFacts) -> list[Extent]:
    """What the source has in front of all compared or staged offsets, and nothing excuses."""
    if known.source is None or known.first is None or not known.same:
        return []
    generation, (start, end) = known.landed.generation, known.source
    excused = OffsetRanges([*known.left_out(generation), *known.passed_over])
    return excused.lacking(max(start, known.begins), min(end, known.first) - 1)


def reasons(
    stretches: Iterable[NotCompared],
    incidents: Iterable[Mapping[str, Any]],
    pauses: Callable[[str], bool],
) -> Iterator[tuple[NotCompared, tuple[str, str] | None]]:
    """Each stretch with its `reason`; `pauses` tells whether the flow pauses a topic. Thousands of
    partitions may wait, each with an incident of its own."""
    by_place: defaultdict[tuple[str | None, int | None], list[Mapping[str, Any]]]
    by_place = defaultdict(list)
    for row in incidents:
        by_place[row["topic"], row["partition"]].append(row)
    for stretch in stretches:
        topic = stretch.topic
        places = ((topic, stretch.partition), (topic, None), (None, None))
        about = [row for place in places for row in by_place.get(place, ())]
        yield stretch, reason(stretch, about, pauses(topic))


def reason(
    stretch: NotCompared, incidents: Sequence[Mapping[str, Any]], paused: bool
) -> tuple[str, str] | None:
    """Why records were not replicated, with a detail; None if nothing holds them up. `incidents`
    are the flow's open ones and those resolved with `stop`: `kind`, `topic`, `partition`,
    `generation`, `open`. `paused`: the flow pauses the topic."""
    about = [row for row in incidents if _is_about(row, stretch)]
    if stops := [row["kind"] for row in about if not row["open"]]:
        return STOPPED, f"decided of {stops[0]}"
    if paused:
        return PAUSED, "the flow pauses the topic"
    held = sorted((row for row in about if row["open"]), key=lambda row: row["topic"] is None)
    if not held:
        return None
    detail = f"incident {held[0]['kind']} is open"
    return (stretch.reason if held[0]["topic"] is None else REFUSED), detail


def on_its_way(stretch: NotCompared, runs: bool, held: str | None = None) -> NotCompared:
    """The stretch, which no incident holds up, once it is known whether a process runs the flow;
    `held` is why it is not on its way all the same."""
    if runs and held is not None:
        return replace(stretch, detail=held)
    if runs:
        return replace(stretch, reason=IN_FLIGHT, detail="the flow is running")
    if stretch.reason == NO_ANSWER:
        return stretch
    return replace(stretch, detail="no process that runs the flow continuously is known")


def _is_about(row: Mapping[str, Any], stretch: NotCompared) -> bool:
    if row["kind"] in _HARMLESS or row["kind"].startswith("control_"):
        return False
    if row["partition"] is not None and (row["partition"], row["generation"]) != (
        stretch.partition,
        stretch.generation,
    ):
        return False  # a decision about one generation says nothing about another
    return row["topic"] in (None, stretch.topic)
