"""Which records compaction has to leave at a target: the last one sent there of each key."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mirrorlake.config.precedence import opposite_name
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import OFFSET_RANGES, Frame
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.verify.job import Compared, Range
from mirrorlake.verify.partition_scope import PartitionScope
from mirrorlake.verify.verdict import GIVEN_UP, MISSING

_COMPACTED = f"{OFFSET_RANGES}, below BIGINT"
_Extent = tuple[str, int, int, int, int]


def to_look_up(range_: Range, compared: Compared) -> bool:
    """Whether a range lacks records that compaction may have removed, not looked up yet."""
    missing = any(one.kind == MISSING for one in compared.verdict.differences)
    return missing and range_.allowed.target_compacts and range_.allowed.last_of_key is None


def with_last_of_key(
    lake: Lake,
    flow: ResolvedFlow,
    ranges: Sequence[Range],
    scopes: Mapping[TopicAndPartition, PartitionScope],
    now_ms: int,
) -> list[Range]:
    """Ranges with the records that compaction has to leave; few queries for all `scopes`."""
    bounds: dict[PartitionGeneration, tuple[int, int]] = {}
    for range_ in ranges:
        place = range_.place
        first, last = bounds.get(place, (range_.first, range_.last))
        bounds[place] = (min(first, range_.first), max(last, range_.last))
    kept: dict[PartitionGeneration, list[int]] = {place: [] for place in bounds}
    horizons: dict[int, list[tuple[str, int, int, int, int, int]]] = {}
    keeps = {range_.place: range_.allowed.target_keeps_deletions_ms for range_ in ranges}
    for place, (first, last) in bounds.items():
        row = (*place, first, last, scopes[place.topic_partition].end)
        horizons.setdefault(now_ms - keeps[place], []).append(row)
    behind = {place: (scopes[place.topic_partition], first) for place, (first, _) in bounds.items()}
    not_sent = list(_not_sent(lake, flow.name, behind))
    echoes = "" if flow.settings.provenance == "none" else flow.target
    ways = {"flow": flow.name, "back": opposite_name(flow), "target": echoes}
    for horizon, rows in horizons.items():
        frames = {"compacted": Frame(_COMPACTED, rows), "left_out": Frame(OFFSET_RANGES, not_sent)}
        for last_row in lake.ask(
            "verify_last_of_key", frames, source_cluster=flow.source, deletions_ms=horizon, **ways
        ):
            kept[PartitionGeneration.from_row(last_row)].append(last_row["offset"])
    return [_with(range_, kept[range_.place]) for range_ in ranges]


def _with(range_: Range, kept: Iterable[int]) -> Range:
    mine = frozenset(at for at in kept if range_.first <= at <= range_.last)
    return replace(range_, allowed=replace(range_.allowed, last_of_key=mine))


def _not_sent(
    lake: Lake, flow: str, behind: Mapping[PartitionGeneration, tuple[PartitionScope, int]]
) -> Iterator[_Extent]:
    """Staged records that the flow left out, from an offset on, within the ranges and behind them:
    they supersede nothing. A parked record that was sent since does."""
    for place, (scope, first) in behind.items():
        given_up = scope.allowed.left_out.get(GIVEN_UP)
        if given_up is not None:
            yield from ((*place, *extent) for extent in given_up.within(first, scope.end - 1))
    for row in lake.ask("parked_waiting", flow=flow):
        place, at = PartitionGeneration.from_row(row), row["offset"]
        if place in behind and behind[place][1] <= at < behind[place][0].end:
            yield (*place, at, at)
