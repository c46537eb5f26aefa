"""Which records compaction has to leave at a target, by what was sent there: the last one of each
key."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Frame
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.verify.job import Compared, Range
from mirrorlake.verify.verdict import MISSING

_EXTENTS = "topic STRING, partition INT, generation INT, first BIGINT, last BIGINT"
_COMPACTED = "topic STRING, partition INT, generation INT, first BIGINT, last BIGINT, below BIGINT"


def to_look_up(range_: Range, compared: Compared) -> bool:
    """Whether records of a range are missing where compaction may have removed them, and that was
    not looked up."""
    missing = any(one.kind == MISSING for one in compared.verdict.differences)
    return missing and range_.allowed.target_compacts and range_.allowed.last_of_key is None


def with_last_of_key(
    lake: Lake,
    source: str,
    ranges: Sequence[Range],
    ends: Mapping[TopicAndPartition, int],
    now_ms: int,
) -> list[Range]:
    """The same ranges with the records that compaction has to leave of each; `ends` are the source
    offsets behind what was sent. One query for all of them."""
    bounds: dict[PartitionGeneration, tuple[int, int]] = {}
    for range_ in ranges:
        place = range_.place
        first, last = bounds.get(place, (range_.first, range_.last))
        bounds[place] = (min(first, range_.first), max(last, range_.last))
    wanted = [
        (*place, first, last, ends[place.topic_partition])
        for place, (first, last) in bounds.items()
    ]
    kept: dict[PartitionGeneration, list[int]] = {place: [] for place in bounds}
    horizons: dict[int, list[tuple[str, int, int, int, int, int]]] = {}
    keeps = {range_.place: range_.allowed.target_keeps_deletions_ms for range_ in ranges}
    for row in wanted:
        horizons.setdefault(now_ms - keeps[PartitionGeneration(*row[:3])], []).append(row)
    left_out = list(_left_out(ranges))
    for horizon, rows in horizons.items():
        frames = {"compacted": Frame(_COMPACTED, rows), "left_out": Frame(_EXTENTS, left_out)}
        for last_row in lake.ask(
            "verify_last_of_key", frames, source_cluster=source, deletions_ms=horizon
        ):
            kept[PartitionGeneration.from_row(last_row)].append(last_row["offset"])
    return [_with(range_, kept[range_.place]) for range_ in ranges]


def _with(range_: Range, kept: Iterable[int]) -> Range:
    mine = frozenset(at for at in kept if range_.first <= at <= range_.last)
    return replace(range_, allowed=replace(range_.allowed, last_of_key=mine))


def _left_out(ranges: Iterable[Range]) -> Iterable[tuple[str, int, int, int, int]]:
    for range_ in ranges:
        for extents in range_.allowed.left_out.values():
            for first, last in extents:
                yield range_.topic, range_.partition, range_.generation, first, last
