"""Laws of replication, checked against the tables and the clusters. Pure.

An overtaken staged record must have a target offset, however long ago it was staged; and a target
must still have the records that the map says it got.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from mirrorlake.offsets.partition_ranges import PartitionRanges
from mirrorlake.offsets.positions import InGeneration, PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.ranges import NO_END, merged
from mirrorlake.offsets.starts import Starts


@dataclass(frozen=True)
class MapExtent:
    """Positions where a flow's map ends in one generation of a source and of a target topic."""

    flow: str
    topic: str
    partition: int
    generation: int
    target_topic: str
    target_partition: int
    target_generation: int
    source_end: int
    target_end: int


@dataclass(frozen=True)
class OvertakenRange:
    """Staged records (`record_count` of them, offsets inclusive) that a flow must have mapped."""

    flow: str
    topic: str
    partition: int
    generation: int
    first: int
    last: int
    record_count: int


def overtaken(
    flow: str,
    extents: Iterable[MapExtent],
    staged: Mapping[str, Mapping[int, PartitionRanges]],
    stopped: Mapping[PartitionGeneration, int] | None = None,
    starts: Starts | None = None,
) -> list[OvertakenRange]:
    """The staged records in front of the end of a flow's map, per partition and generation of the
    source topic. A generation that an operator has `stopped` ends at the offset given.

    Ranges that contain the map's end are left out: their counts do not apply to a part. A
    generation older than the newest mapped one lies wholly in front of the end. If a target topic
    was made again, the end is that of its newest part of the map, which may start over. Records
    below the flow's `starts` are not mirrored.
    """
    newest_parts: dict[tuple[TopicAndPartition, str], tuple[int, int, int]] = {}
    for extent in extents:
        if extent.flow == flow:
            part = ((extent.topic, extent.partition), extent.target_topic)
            end_of_part = (extent.target_generation, extent.generation, extent.source_end)
            newest_parts[part] = max(newest_parts.get(part, (0, 0, 0)), end_of_part)
    ends: dict[TopicAndPartition, tuple[int, int]] = {}
    for (key, _), (_, generation, end) in newest_parts.items():
        ends[key] = max(ends.get(key, (0, 0)), (generation, end))
    over = stopped or {}
    by_place: dict[PartitionGeneration, OvertakenRange] = {}
    for (topic, partition), (newest, end) in ends.items():
        ranges = staged.get(topic, {}).get(partition, PartitionRanges())
        for at in range(len(ranges)):
            one = ranges[at]
            if one.generation > newest or (one.generation == newest and one.last >= end):
                continue
            place = PartitionGeneration(topic, partition, one.generation)
            if one.last >= over.get(place, NO_END) or one.first < (starts or {}).get(place, 0):
                continue
            known = by_place.get(place, OvertakenRange(flow, *place, one.first, one.last, 0))
            first, last = min(known.first, one.first), max(known.last, one.last)
            by_place[place] = OvertakenRange(
                flow, *place, first, last, known.record_count + one.record_count
            )
    return list(by_place.values())


@dataclass(frozen=True)
class MapGap(InGeneration):
    """A range of the stage (offsets inclusive) of which `missing` records have no target offset,
    including those within the `given_up` ranges of offsets, which rise and do not touch."""

    flow: str
    topic: str
    partition: int
    generation: int
    first_offset: int
    last_offset: int
    missing: int
    given_up: Sequence[tuple[int, int]] = ()

    def staged_of_it(self, ranges: PartitionRanges) -> tuple[int, list[tuple[int, int]]]:
        """How many records of the given-up ranges are staged, by the index of the stage; and
        offsets (inclusive) for which it cannot say, where a file with gaps extends over an end."""
        count, unknown = 0, []
        for first, last in self.given_up:
            for one in ranges.within(self.generation, first, last):
                low, high = max(first, one.first), min(last, one.last)
                if (low, high) == (one.first, one.last):
                    count += one.record_count
                elif one.record_count == one.last - one.first + 1:
                    count += high - low + 1
                else:
                    unknown.append((low, high))
        return count, merged(unknown)

    def without(self, given_up: int) -> "MapGap":
        """The gap without that many given-up records."""
        return replace(self, missing=self.missing - given_up, given_up=())

    def detail(self) -> str:
        """The gap in one sentence."""
        return (
            f"{self.missing} staged records between offsets {self.first_offset} and "
            f"{self.last_offset} have no target offset; the view divergence says which"
        )


def gaps_of(rows: Iterable[Mapping[str, Any]]) -> list[MapGap]:
    """The gaps that the query `map_gaps` found, which has a row for each range given up."""
    given_up: dict[MapGap, list[tuple[int, int]]] = {}
    for row in rows:
        gap = MapGap(
            row["flow"],
            *PartitionGeneration.from_row(row),
            row["first_offset"],
            row["last_offset"],
            row["missing"],
        )
        ranges = given_up.setdefault(gap, [])
        if row["given_first"] is not None:
            ranges.append((row["given_first"], row["given_last"]))
    return [replace(gap, given_up=merged(ranges)) for gap, ranges in given_up.items()]


@dataclass(frozen=True)
class Shortfall:
    """A target partition whose log ends at `log_end` (None: none), in front of the map's end."""

    extent: MapExtent
    log_end: int | None

    def detail(self) -> str:
        """The shortfall in one sentence."""
        extent = self.extent
        name = f"{extent.target_topic}-{extent.target_partition}"
        if self.log_end is None:
            return (
                f"the map says that {name} has records up to offset {extent.target_end - 1}, "
                "and it is not there"
            )
        return (
            f"{name} ends at {self.log_end}, and the map says that it has records up to offset "
            f"{extent.target_end - 1}: the target lost them, or the topic was made again"
        )

    @property
    def missing(self) -> int:
        """How many offsets are missing."""
        return self.extent.target_end - (self.log_end or 0)


def shortfalls(
    extents: Iterable[MapExtent],
    mirrored: Collection[TopicAndPartition],
    log_ends: Mapping[TopicAndPartition, int],
) -> list[Shortfall]:
    """Target partitions, of mirrored source partitions, that lack records that the map has.

    Args:
        extents: those of one flow; only the newest generation of a target topic counts.
        mirrored: the source partitions that are mirrored now.
        log_ends: offsets behind the last record, by existing target topic and partition.
    """
    living: dict[TopicAndPartition, MapExtent] = {}
    for extent in extents:
        extent_key = (extent.target_topic, extent.target_partition)
        known = living.get(extent_key, extent)
        living[extent_key] = max(known, extent, key=attrgetter("target_generation", "target_end"))
    return [
        Shortfall(extent, log_ends.get(extent_key))
        for extent_key, extent in sorted(living.items())
        if (extent.topic, extent.partition) in mirrored
        and log_ends.get(extent_key, -1) < extent.target_end
    ]
