"""Plans ranges that tasks can compare: which ranges, in which files, mapped where."""

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from mirrorlake.lake.reader import Frame
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.ranges import NO_END, Extent, OffsetRanges
from mirrorlake.offsets.runs import Segment
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.verify.job import Range
from mirrorlake.verify.partition_scope import PartitionScope
from mirrorlake.verify.scope import FlowScope
from mirrorlake.verify.verdict import Allowances

_ASKED = (
    "topic STRING, partition INT, generation INT, target_topic STRING, first BIGINT, last BIGINT"
)
_STRETCHES = "target_topic STRING, target_partition INT, first BIGINT, last BIGINT"

#: Offsets per range. Ranges begin and end at multiples of it, or at the ends of an extent, so that
#: they are cut at the same offsets each time.
RANGE_OFFSETS = 100_000


@dataclass(frozen=True)
class Choice:
    """What to compare of all there is: source offsets `first` to `last` (inclusive; None: no
    bound), what was replicated since a time, `sample` as a share of the ranges. With `again` also
    what was proven before, with `differing` what differed before."""

    first: int | None = None
    last: int | None = None
    since: datetime | None = None
    sample: float | None = None
    again: bool = False
    differing: bool = True

    @property
    def bounds(self) -> Extent:
        """The source offsets, inclusive."""
        return self.first or 0, NO_END if self.last is None else self.last


@dataclass(frozen=True)
class Chosen:
    """A partition with the ranges of it to compare."""

    scope: PartitionScope
    extents: list[Extent]


def choose(scope: FlowScope, partitions: Iterable[PartitionScope], choice: Choice) -> list[Chosen]:
    """The ranges of each partition to compare; proven ones are left out, unless `again`, and so are
    partitions that the source may have but does not report."""
    since = _since(scope, choice.since)
    chosen = []
    for partition in partitions:
        if scope.is_hidden(partition):
            continue
        reached = since.get(partition.place, 0 if not choice.since else NO_END)
        first = max(partition.first, choice.bounds[0], reached)
        last = min(partition.end - 1, choice.bounds[1])
        settled = [one for one in partition.audited if one.proven or not choice.differing]
        done = [] if choice.again else [one.extent for one in settled]
        extents = cut(OffsetRanges(done).lacking(first, last))
        if not extents and not choice.again and first <= last:
            extents = _grown_tail(partition, first, last)
        if choice.sample is not None:
            extents = _sampled(partition, extents, choice.sample)
        if extents:
            chosen.append(Chosen(partition, extents))
    return chosen


def _sampled(partition: PartitionScope, extents: list[Extent], share: float) -> list[Extent]:
    """A sample of ranges, and all that differed before: else the answer would hide differences."""
    differed = {one.extent[0] // RANGE_OFFSETS for one in partition.audited if not one.proven}
    kept = {extent for extent in extents if extent[0] // RANGE_OFFSETS in differed}
    return sorted(kept.union(sampled(extents, f"{partition.topic}-{partition.partition}", share)))


def _since(scope: FlowScope, since: datetime | None) -> dict[PartitionGeneration, int]:
    if since is None:
        return {}
    text = since.astimezone(timezone.utc).isoformat(sep=" ", timespec="microseconds")
    rows = scope.deployment.lake.ask("verify_since", flow=scope.flow.name, since=text)
    return {PartitionGeneration.from_row(row): row["source_first"] for row in rows}


def _grown_tail(partition: PartitionScope, first: int, last: int) -> list[Extent]:
    """The last stretch again, if all is proven but the target's log has grown behind it."""
    newest = max(partition.audited, key=lambda one: one.extent[1], default=None)
    if newest is None or newest.extent[1] != last or newest.extent[0] < first:
        return []
    return [newest.extent] if newest.target_last < partition.target_end - 1 else []


def ranges_of(scope: FlowScope, index: StageIndex, wave: Sequence[Chosen]) -> list[Range]:
    """Prepare partitions' ranges for comparison: add their part of the map, and files to read."""
    maps = _maps(scope, wave)
    ranges = []
    for chosen in wave:
        one = chosen.scope
        segments, mapped_before = maps[one.key]
        before = one.target_first if mapped_before is None else mapped_before
        staged = index.partition(scope.flow.source, one.key)
        for first, last in chosen.extents:
            held = staged.within(one.generation, first, last)
            files = dict.fromkeys(file_range.file for file_range in held)
            ranges.append(
                Range(
                    *one.place,
                    first,
                    last,
                    target_topic=one.target_topic,
                    target_generation=one.target_generation,
                    target_first=_reached(segments, first, before),
                    target_end=one.target_end
                    if last == one.end - 1
                    else _reached(segments, last + 1, before),
                    files=tuple(index.path(file) for file in files),
                    segments=tuple(
                        segment
                        for segment in segments
                        if segment.source_last >= first and segment.source_first <= last
                    ),
                    allowed=_of_range(one.allowed, first, last),
                    asks_source=one.asks_source,
                )
            )
    return list(_with_others(scope, ranges))


def _of_range(allowed: Allowances, first: int, last: int) -> Allowances:
    """What may differ in a range of source offsets."""
    inside = {
        why: OffsetRanges(ranges.within(first, last)) for why, ranges in allowed.left_out.items()
    }
    return replace(allowed, left_out={why: ranges for why, ranges in inside.items() if ranges})


def _maps(
    scope: FlowScope, wave: Sequence[Chosen]
) -> Mapping[TopicAndPartition, tuple[list[Segment], int | None]]:
    """For each partition, the segments between its first and last offset in a wave, in order, and
    the target offset behind the records mapped before them."""
    asked = [
        (*one.scope.place, one.scope.target_topic, one.extents[0][0], one.extents[-1][1])
        for one in wave
    ]
    return mapped_segments(scope, asked)


def mapped_segments(
    scope: FlowScope, asked: Sequence[tuple[str, int, int, str, int, int]]
) -> Mapping[TopicAndPartition, tuple[list[Segment], int | None]]:
    """For (topic, partition, generation, target topic, first and last source offset) each, the
    segments between these, in order, and the target offset behind what is mapped before them."""
    maps: dict[TopicAndPartition, tuple[list[Segment], int | None]] = {
        row[:2]: ([], None) for row in asked
    }
    for row in scope.deployment.lake.ask(
        "verify_segments", {"wanted": Frame(_ASKED, asked)}, flow=scope.flow.name
    ):
        key = (row["topic"], row["partition"])
        segments, before = maps[key]
        if row["target_before"] is not None:
            maps[key] = segments, row["target_before"]
        else:
            names = ("source_first", "stride", "target_first", "record_count")
            segments.append(Segment(*(row[name] for name in names)))
    for segments, _ in maps.values():
        segments.sort(key=lambda segment: segment.source_first)
    return maps


def _reached(segments: Sequence[Segment], offset: int, before: int) -> int:
    """The target offset behind the last record that is mapped in front of a source offset."""
    reached = before
    for segment in segments:
        if segment.source_first >= offset:
            break
        count = min(segment.record_count, (offset - 1 - segment.source_first) // segment.stride + 1)
        reached = max(reached, segment.target_first + count)
    return reached


def _with_others(scope: FlowScope, ranges: Sequence[Range]) -> Iterator[Range]:
    """Add to ranges of shared target topics what other flows wrote there."""
    shared = [range_ for range_ in ranges if range_.target_topic in scope.target.shared]
    others: dict[tuple[str, int], list[Extent]] = defaultdict(list)
    if shared:
        stretches = [
            (range_.target_topic, range_.partition, range_.target_first, range_.target_end - 1)
            for range_ in shared
        ]
        rows: Iterable[Mapping[str, Any]] = scope.deployment.lake.ask(
            "verify_others", {"stretches": Frame(_STRETCHES, stretches)}, flow=scope.flow.name
        )
        for row in rows:
            others[row["target_topic"], row["target_partition"]].append((row["first"], row["last"]))
    for range_ in ranges:
        wrote = others.get((range_.target_topic, range_.partition), ())
        mine = [
            one for one in wrote if one[1] >= range_.target_first and one[0] < range_.target_end
        ]
        others_of_range = (*range_.allowed.others, *mine)
        yield replace(range_, allowed=replace(range_.allowed, others=others_of_range))


def waves(chosen: Iterable[Chosen], max_ranges: int) -> Iterator[list[Chosen]]:
    """Cut the work into parts of about `max_ranges` ranges; those of a partition stay in order."""
    wave: list[Chosen] = []
    room = max_ranges
    for one_chosen in chosen:
        extents = one_chosen.extents
        while extents:
            wave.append(Chosen(one_chosen.scope, extents[:room]))
            extents, room = extents[room:], room - len(extents[:room])
            if room == 0:
                yield wave
                wave, room = [], max_ranges
    if wave:
        yield wave


def cut(extents: Iterable[Extent], size: int = RANGE_OFFSETS) -> list[Extent]:
    """Ranges of at most `size` offsets."""
    pieces = []
    for first, last in extents:
        while first <= last:
            end = min(last, (first // size + 1) * size - 1)
            pieces.append((first, end))
            first = end + 1
    return pieces


def sampled(ranges: Iterable[Extent], name: str, share: float) -> list[Extent]:
    """About `share` (from 0 to 1) of the ranges of a partition, by its name: at least one of them,
    and the same ones each time."""
    weighed = sorted(
        (zlib.crc32(f"{name}:{first // RANGE_OFFSETS}".encode()), (first, last))
        for first, last in ranges
    )
    limit = share * 2**32
    return sorted(
        extent for number, (weight, extent) in enumerate(weighed) if weight < limit or number == 0
    )
