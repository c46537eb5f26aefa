"""What an operator decided about a flow's stopped partitions, as far as it holds now."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mirrorlake.lake.targets import LivingMirror
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.ranges import OffsetRanges

#: The resolution by which records that the stage had lost are staged again; followed by ` from
#: <offset>`, only from that offset on.
READ_AGAIN = "read-again"
#: The resolution noted for those of them that the source had not any more: a flow that looks for
#: them in the stage goes on without them.
FOUND_NONE = f"{READ_AGAIN} found none"
#: The resolution by which a flow goes on behind refused records, which stay to be sent later.
PARK = "park"
#: The resolutions for lost records: produce them from the stage again, or give them up.
PRODUCE_AGAIN, ACCEPT = "produce-again", "accept"
_LOST = "target_lost"


class Lost(NamedTuple):
    """What a target lost of a partition, undecided: all from an offset on, in one generation."""

    target_generation: int
    target_offset: int


RangesByPlace = defaultdict[PartitionGeneration, OffsetRanges]
"""Offsets by partition and generation."""


def _no_ranges() -> RangesByPlace:
    return defaultdict(OffsetRanges)


@dataclass
class Decided:
    """What an operator decided about stopped partitions, each in a generation of its topic.

    Attributes:
        stopped: partitions that stay stopped.
        skipped: source offsets that were given up.
        foreign: the source offset at which the flow goes on behind another producer's records.
        trimmed: source offsets that the flow goes on without, since the stage has lost them.
        found_none: source offsets that had no record any more when they were read again.
        parked: source offsets to park if they are refused.
        lost: partitions whose target has lost records, without a decision yet.
        again: partitions to produce again from the end of the map on; a committed position below
            this target offset no longer counts.
    """

    stopped: set[PartitionGeneration] = field(default_factory=set)
    skipped: RangesByPlace = field(default_factory=_no_ranges)
    foreign: dict[PartitionGeneration, int] = field(default_factory=dict)
    trimmed: RangesByPlace = field(default_factory=_no_ranges)
    found_none: RangesByPlace = field(default_factory=_no_ranges)
    parked: RangesByPlace = field(default_factory=_no_ranges)
    lost: dict[TopicAndPartition, Lost] = field(default_factory=dict)
    again: dict[PartitionGeneration, int] = field(default_factory=dict)

    def accepted_holes(self) -> RangesByPlace:
        """The source offsets that the flow does not look for in the stage."""
        accepted = _no_ranges()
        for place, ranges in [*self.trimmed.items(), *self.found_none.items()]:
            accepted[place].add(ranges)
        return accepted


def decided_of(rows: Iterable[Mapping[str, Any]], mirror: Callable[[str], LivingMirror]) -> Decided:
    """The decisions that hold now, of a flow's rows of `mirror_incidents`.

    `mirror` returns a source topic's target: a decision about another topic or generation does not
    hold. One without a generation holds for any; one without a topic, for the first.
    """
    decided = Decided()
    for row in sorted(rows, key=lambda row: row["at"]):
        place = PartitionGeneration.from_row(row)
        offsets = [(row["first_offset"], row["last_offset"])]
        if not mirror(row["topic"]).is_of(row):
            continue
        if row["kind"] == _LOST:
            decided.again.pop(place, None)  # offsets at the target begin anew below it
        if row["kind"] == _LOST and row["open"]:
            number = row["target_generation"] or 0
            decided.lost[place.topic_partition] = Lost(number, row["target_offset"])
        elif row["kind"].startswith("map_") and row["resolution"] == PRODUCE_AGAIN:
            decided.again[place] = row["target_offset"]
        elif row["resolution"] == "stop":
            decided.stopped.add(place)
        elif row["resolution"] in ("skip", ACCEPT):
            decided.skipped[place].add(offsets if row["first_offset"] is not None else ())
        elif row["resolution"] == PARK:
            decided.parked[place].add(offsets)
        elif row["kind"] == "stage_trimmed" and row["resolution"] == "continue":
            decided.trimmed[place].add(offsets)
        elif row["kind"] == "stage_trimmed" and row["resolution"] == FOUND_NONE:
            decided.found_none[place].add(offsets)
        elif row["kind"] == "position_lost" and row["resolution"] == "continue":
            decided.foreign[place] = max(decided.foreign.get(place, -1), row["first_offset"])
    return decided
