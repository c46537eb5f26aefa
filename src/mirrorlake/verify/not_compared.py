"""What a flow selects and a comparison did not see: which records of a partition, and why. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mirrorlake.offsets.partition_ranges import PartitionRanges
from mirrorlake.offsets.positions import GenerationOffset, TopicAndPartition
from mirrorlake.offsets.ranges import NO_END, merged
from mirrorlake.verify.ranges import Extent, without

#: Why records were not compared (docs/trust.md says what each means).
NOT_STAGED, NOT_MAPPED, IN_FLIGHT = "not_staged", "not_mapped", "in_flight"
PAUSED, REFUSED, STOPPED = "paused", "refused", "stopped"
NO_ANSWER, INTERRUPTED, DIFFERED = "no_answer", "interrupted", "differed"
GONE = "{} when it was compared, and the stage has it no more"
NO_WORD = "the source does not say what it has of it"
#: Incidents that hold no record up.
_HARMLESS = frozenset(
    {
        *("content_differs", "landing_gap", "acls_left", "upkeep_failed", "other_writer"),
        *("topology_edit", "not_a_member"),
    }
)


@dataclass(frozen=True)
class NotCompared:
    """Source offsets `first` to `last`, inclusive (None: it is not known up to where), that were
    not compared."""

    topic: str
    partition: int
    generation: int
    first: int
    last: int | None
    reason: str
    detail: str = ""

    def row(self, flow: str) -> dict[str, Any]:
        """It as an answer has it."""
        return {
            "flow": flow,
            "topic": self.topic,
            "partition": self.partition,
            "generation": self.generation,
            "first_offset": self.first,
            "last_offset": self.last,
            "reason": self.reason,
            "detail": self.detail,
        }


@dataclass(frozen=True)
class PartitionFacts:
    """What is known of one partition.

    `compared` is up to where it is compared. `staged` is what the stage holds, `left_out` gives the
    source offsets of a generation that a flow leaves out on purpose. `landed` is up to where
    landing has come in the living generation. `source` are the start and the end of the source's
    log, None where that is not known; `same` is False where the topic there is another one than the
    staged one. `begins` is where the flow's part of the living generation begins, and `first` the
    first offset of that which is compared or staged; None: nothing of it is. `passed_over` is what
    the stage lacks of it for a reason that is noted.
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
        left_out = merged(known.left_out(generation))
        for extent in (part for stretch in staged for part in without(stretch, left_out)):
            stretches.append(NotCompared(*known.key, generation, *extent, NOT_MAPPED))
    return stretches


def maybe_not_staged(known: PartitionFacts) -> NotCompared | None:
    """The stretch of the source's log that was not landed. Whether a record is in it has to be
    looked up: it may hold transaction markers alone."""
    generation, landed = known.landed
    if known.source is None:
        return NotCompared(*known.key, generation, landed, None, NO_ANSWER, detail=NO_WORD)
    start, end = known.source
    first = max(start, landed) if known.same else start
    return NotCompared(*known.key, generation, first, end - 1, NOT_STAGED) if first < end else None


def maybe_skipped(known: PartitionFacts) -> NotCompared | None:
    """The first stretch of the source's log in front of all that is compared or staged which was
    not left out on purpose: landing begins where a log does, or notes what it passes over. Whether
    a record is in it has to be looked up: markers, and what compaction left, are none."""
    if known.source is None or known.first is None or not known.same:
        return None
    generation, (start, end) = known.landed.generation, known.source
    head = (max(start, known.begins), min(end, known.first) - 1)
    lacking = without(head, merged([*known.left_out(generation), *known.passed_over]))
    return NotCompared(*known.key, generation, *lacking[0], NOT_STAGED) if lacking else None


def reasons(
    stretches: Iterable[NotCompared],
    incidents: Iterable[Mapping[str, Any]],
    pauses: Callable[[str], bool],
) -> Iterator[tuple[NotCompared, tuple[str, str] | None]]:
    """Each stretch with its `reason`; `pauses` says of topics whether the flow leaves them alone.
    Thousands of partitions may wait, each with an incident of its own."""
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
    """Why records were not brought, and what is known of that; None where nothing is in their way.
    `incidents` are those of the flow that are open or were resolved with `stop`: `kind`, `topic`,
    `partition`, `generation`, `open`. `paused`: the flow leaves the topic alone."""
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


def on_its_way(stretch: NotCompared, runs: bool) -> NotCompared:
    """Records that nothing holds up, once it is known whether some process runs the flow."""
    if runs:
        return replace(stretch, reason=IN_FLIGHT, detail="the flow is running")
    return replace(stretch, detail="no process that runs the flow continuously is known")


def _is_about(row: Mapping[str, Any], stretch: NotCompared) -> bool:
    if row["kind"] in _HARMLESS or row["kind"].startswith("control_"):
        return False
    if row["partition"] is not None and (row["partition"], row["generation"]) != (
        stretch.partition,
        stretch.generation,
    ):
        return False  # what was decided of one generation says nothing about another
    return row["topic"] in (None, stretch.topic)
