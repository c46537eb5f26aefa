"""A task's work: read the three sides of a range and compare them, here or in an executor."""

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake.lake.parquet import RARE
from mirrorlake.offsets.positions import InGeneration
from mirrorlake.offsets.progress import Floor
from mirrorlake.offsets.runs import Segment
from mirrorlake.produce.batch import PartitionPlan, ShardPlan
from mirrorlake.produce.encoding import RECORDS, Hops, as_records
from mirrorlake.produce.stage_files import COORDINATES, batches_of
from mirrorlake.verify import verdict as kinds
from mirrorlake.verify.digest import Twins, range_digest
from mirrorlake.verify.log_reader import LogReader, Throttle
from mirrorlake.verify.narrowing import compare
from mirrorlake.verify.sides import Mapped, Side
from mirrorlake.verify.verdict import Allowances, Difference, Verdict

#: How many differences of a range are listed.
MAX_LISTED = 100


@dataclass(frozen=True)
class Range(InGeneration):
    """A range of source offsets, inclusive, with all that is known of it before a record is read.

    `target_first` to `target_end` (exclusive) is the stretch of the target's log that belongs to
    it: it begins behind the last record mapped before it. `segments` is its map. `asks_source` is
    False if the source's topic is not the staged one.
    """

    topic: str
    partition: int
    generation: int
    first: int
    last: int
    target_topic: str
    target_generation: int
    target_first: int
    target_end: int
    files: tuple[str, ...]
    segments: tuple[Segment, ...]
    allowed: Allowances
    asks_source: bool = True


@dataclass(frozen=True)
class Clusters:
    """The two ends of a flow: aliases, rendered librdkafka settings (they hold secrets), and the
    bytes per second that one task may read of each; None: no limit. `storage` has the options for
    opening files of the stage (`lake.place.Place.options`)."""

    source: str
    target: str
    source_settings: Mapping[str, Any] = field(repr=False)
    target_settings: Mapping[str, Any] = field(repr=False)
    bytes_per_s: float | None = None
    hops: Hops | None = None
    storage: Mapping[str, str] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Compared:
    """The result for a range. `unlisted` counts the differences that its verdict does not list,
    beyond MAX_LISTED; `stale` means that its files are gone, so it has to be planned again."""

    counts: tuple[int | None, int, int]
    digests: tuple[str | None, str, str]
    verdict: Verdict
    bytes_read: int = 0
    stale: bool = False
    unlisted: int = 0


class RangeReader:
    """Reads ranges of one flow, one after another, with one consumer a cluster."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        wait = threading.Event().wait
        self._source, self._target = (
            LogReader(alias, settings, Throttle(clusters.bytes_per_s, time.monotonic, wait))
            for alias, settings in (
                (clusters.source, clusters.source_settings),
                (clusters.target, clusters.target_settings),
            )
        )

    def compare(self, range_: Range, staged: Iterator[pa.RecordBatch] | None = None) -> Compared:
        """Compare a range. Raises ClusterUnusable, FilesUnreadable.

        `staged` are the stage's records of it, as RECORDS; None: the range's files are read.
        """
        counted, twins = _Counted(), Twins(self._clusters.hops)
        try:
            rows = self._staged(range_, range_.first, range_.last) if staged is None else staged
            stage = twins.side(counted.counting(rows)).in_order()
        except FileNotFoundError:
            return Compared((None, 0, 0), (None, "", ""), Verdict((), {}), stale=True)
        source, start = self._source_side(range_, counted, twins)
        rows = self._target.read(
            (range_.target_topic, range_.partition), range_.target_first, range_.target_end
        )
        target = twins.side(counted.counting(rows))
        allowed = replace(range_.allowed, source_start=start, target_start=self._target.start)
        verdict = compare(
            source, stage, target, mapped(range_), first=range_.first, allowed=allowed
        )
        listed, unlisted = verdict.differences[:MAX_LISTED], verdict.differences[MAX_LISTED:]
        detailed = tuple(self._with_detail(range_, one) for one in listed)
        verdict = replace(verdict, differences=detailed)
        sides = (source, stage, target)
        counts = tuple(None if side is None else len(side.digests) for side in sides)
        digests = tuple(None if side is None else range_digest(side.digests) for side in sides)
        return Compared(counts, digests, verdict, counted.size, unlisted=len(unlisted))  # type: ignore[arg-type]

    def close(self) -> None:
        """Leave the clusters."""
        self._source.close()
        self._target.close()

    def _source_side(
        self, range_: Range, counted: "_Counted", twins: Twins
    ) -> tuple[Side | None, int]:
        """The source's records, None if it no longer has any, and where its log begins."""
        if not range_.asks_source:
            return None, range_.last + 1
        rows = self._source.read((range_.topic, range_.partition), range_.first, range_.last + 1)
        side = twins.side(counted.counting(rows))
        return (None if self._source.start > range_.last else side), self._source.start

    def _staged(self, range_: Range, first: int, last: int) -> Iterator[pa.RecordBatch]:
        floor = Floor(first, None, range_.generation, range_.target_generation)
        plan = PartitionPlan(
            range_.topic, range_.partition, range_.target_topic, floor=floor, first=first, last=last
        )
        known = self._clusters
        shard = ShardPlan(
            0,
            (plan,),
            range_.files,
            record_count=0,
            source_cluster=known.source,
            storage=known.storage,
        )
        return read_stage(shard, plan)

    def _with_detail(self, range_: Range, difference: Difference) -> Difference:
        """Describe what of a difference's first record differs."""
        if difference.detail or difference.kind != kinds.CONTENT:
            return difference
        at, place = difference.first, difference.target_offset or 0
        source = self._source.read((range_.topic, range_.partition), at, at + 1)
        wanted = _first(source) if range_.asks_source else None
        wanted = wanted or _first(self._staged(range_, at, at))
        there = _first(self._target.read((range_.target_topic, range_.partition), place, place + 1))
        if wanted is None or there is None:
            return difference
        return replace(difference, detail=describe(wanted, there))


def mapped(range_: Range) -> Mapped:
    """The map of a range, record by record."""
    sources, targets = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for one in range_.segments:
        steps = np.arange(one.record_count, dtype=np.int64)
        at = one.source_first + steps * one.stride
        inside = (at >= range_.first) & (at <= range_.last)
        sources.append(at[inside])
        targets.append((one.target_first + steps)[inside])
    joined = np.concatenate(sources), np.concatenate(targets)
    order = np.argsort(joined[0], kind="stable")
    return joined[0][order], joined[1][order]


class _Counted:
    """Counts the bytes of the batches that pass."""

    def __init__(self) -> None:
        self.size = 0

    def counting(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.size += batch.nbytes
            yield batch


def _first(batches: Iterator[pa.RecordBatch]) -> dict[str, Any] | None:
    for batch in batches:
        row: dict[str, Any] = batch.slice(0, 1).to_pylist()[0]
        return row
    return None


def read_stage(shard: ShardPlan, plan: PartitionPlan) -> Iterator[pa.RecordBatch]:
    """The staged records of a range, as RECORDS. Raises FilesUnreadable, FileNotFoundError."""
    columns = [*COORDINATES, *RECORDS.names[1:], *RARE]
    for batch in batches_of(shard, {plan.key: plan}, columns):
        rows = as_records(_inside(batch, shard.source_cluster, plan))
        if rows.num_rows:
            yield rows


def _inside(batch: pa.RecordBatch, source_cluster: str, plan: PartitionPlan) -> pa.RecordBatch:
    offsets = batch.column("offset")
    wanted = pc.and_(pc.greater_equal(offsets, plan.first), pc.less_equal(offsets, plan.last))
    place = {"source_cluster": source_cluster, "topic": plan.topic, "partition": plan.partition}
    for name, value in place.items():
        wanted = pc.and_(wanted, pc.equal(batch.column(name), value))
    wanted = pc.and_(wanted, pc.equal(pc.fill_null(batch.column("generation"), 0), plan.generation))
    return batch.filter(wanted)


RecordValues = Mapping[str, Any]


def describe(wanted: RecordValues, got: RecordValues) -> str:
    """Which fields of two records differ, and how: shows lengths and null, never bytes."""
    parts = []
    if wanted["timestamp"] != got["timestamp"]:
        parts.append(f"timestamp {wanted['timestamp']} became {got['timestamp']}")
    for name in ("key", "value"):
        if wanted[name] != got[name]:
            parts.append(f"{name}: {_size(wanted[name])} became {_size(got[name])}")
    parts += _headers(wanted["headers"] or [], got["headers"] or [])
    return "; ".join(parts)


def _headers(wanted: list[RecordValues], got: list[RecordValues]) -> list[str]:
    if len(wanted) != len(got):
        return [f"{len(wanted)} headers became {len(got)}"]
    parts = []
    for number, (one, other) in enumerate(zip(wanted, got, strict=True)):
        if one["key"] != other["key"]:
            parts.append(f"header {number}: another name")
        elif one["value"] != other["value"]:
            parts.append(f"header {number}: {_size(one['value'])} became {_size(other['value'])}")
    return parts


def _size(value: bytes | None) -> str:
    if value is None:
        return "null"
    return f"{len(value)} bytes" if value else "empty"
