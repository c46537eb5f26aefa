"""Writes the rows of produced batches into `offset_map` and `latency`, beside the next batch.

A Delta commit takes longer than a small batch, so a thread of its own appends the rows of finished
batches, as many at once as have come together. Until then the metadata that the target commits with
every position names them as `unmapped`: the next start rebuilds what a crash loses from the target
and the stage. Where commits to the store are expensive, rows wait for those of later batches
(`LakeMap.rows_wait_seconds`), except after a pause.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake import failpoints
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.runs import Segment, Written, add_written
from mirrorlake.produce.ports import BatchWay
from mirrorlake.produce.report import LATENCY, RUN

if TYPE_CHECKING:
    from mirrorlake.lake.map_store import LakeMap


@dataclass(frozen=True)
class _Entry:
    """The rows of one batch."""

    batch_id: int
    map_rows: pa.Table
    latency_rows: pa.Table


class MapWriter:
    """The queue between producing and the map, of one flow. `add` never blocks on Delta."""

    def __init__(self, store: "LakeMap", flow: str) -> None:
        self._store = store
        self._flow = flow
        self._lock = threading.Lock()
        self._queue: list[_Entry] = []
        self._unmapped: dict[TopicAndPartition, list[tuple[int, Written]]] = defaultdict(list)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"map {flow}")
        self._running: Future[None] | None = None
        #: When the waiting rows are due, by `time.monotonic`.
        self._due = 0.0
        #: Whether rows of a batch have been appended to the map.
        self.has_mapped = False
        #: Guarded by the lock: whether the running append will check the queue again.
        self._active = False

    def add(self, result: pa.Table, batch_id: int, stage_version: int, way: BatchWay) -> None:
        """Queue what a batch's tasks reported, and where they ran. Raises an append's error."""
        now = datetime.now(timezone.utc)
        common = {"flow": self._flow, "batch_id": batch_id, "produced_at": now}
        rows = _with(map_rows(result), {**common, "stage_version": stage_version})
        entry = _Entry(batch_id, rows, _with(latency_rows(result), {**common, "way": way}))
        with self._lock:
            if self._running is not None and self._running.done():
                self._running.result()
            self._queue.append(entry)
            columns = ["topic", "partition", "source_first", "target_first", "record_count"]
            for row in rows.select(columns).to_pylist():
                written = Written(row["source_first"], row["target_first"], row["record_count"])
                self._unmapped[row["topic"], row["partition"]].append((batch_id, written))
            self._begin_if_due()

    def _begin_if_due(self) -> None:
        """Start an append if the queue has waited long enough. The caller has the lock."""
        if self._queue and self._is_due():
            self._begin()

    def _begin(self) -> None:
        """Start an append, unless one is running. The caller has the lock."""
        if not self._active:
            self._active = True
            self._running = self._thread.submit(self._append_all)

    def _is_due(self) -> bool:
        return time.monotonic() >= self._due

    def unmapped(self, key: TopicAndPartition) -> tuple[Written, ...]:
        """What was produced of a partition and is not in the map yet."""
        with self._lock:
            unmapped = self._unmapped.get(key, [])
            parts = [
                Segment(each.source_first, 1, each.target_first, each.record_count)
                for _, each in unmapped
            ]
            return tuple(add_written([], parts))

    def check(self) -> None:
        """Raise the last append's error, and start one that is due: no further batch may come."""
        with self._lock:
            if self._running is not None and self._running.done():
                self._running.result()
            self._begin_if_due()

    def drain(self) -> None:
        """Append all waiting rows; wait until the queue is empty. Raises the appends' errors."""
        self._wait()
        with self._lock:
            if self._queue:
                self._begin()
        self._wait()

    def _wait(self) -> None:
        if self._running is not None:
            self._running.result()

    def close(self) -> None:
        """Drain and end the threads."""
        try:
            self.drain()
        finally:
            self._thread.shutdown()

    def _append_all(self) -> None:
        while True:
            with self._lock:
                entries = list(self._queue)
            self._append(entries)
            self.has_mapped = True
            newest = entries[-1].batch_id
            with self._lock:
                self._due = time.monotonic() + self._store.rows_wait_seconds
                del self._queue[: len(entries)]
                for key in list(self._unmapped):
                    left = [entry for entry in self._unmapped[key] if entry[0] > newest]
                    self._unmapped[key] = left
                    if not left:  # the partition's next batch may come in a year
                        del self._unmapped[key]
                if not (self._queue and self._is_due()):
                    self._active = False
                    return

    def _append(self, entries: list[_Entry]) -> None:
        """Append the rows of some batches, each table in one idempotent commit. The map comes
        first, and not both at once: a commit by Spark takes the cores that landing needs."""
        newest = entries[-1].batch_id
        of_map = pa.concat_tables(entry.map_rows for entry in entries)
        of_latency = pa.concat_tables(entry.latency_rows for entry in entries)
        self._store.append_map(of_map, newest)
        failpoints.reached("mapped")
        self._store.append_latency(of_latency, newest)


def map_rows(result: pa.Table) -> pa.Table:
    """The rows of `offset_map` that tasks reported, without columns that are the same in all."""
    runs = pc.list_flatten(result["runs"])
    parents = pc.list_parent_indices(result["runs"])
    of_parent = {
        name: pc.take(result[name], parents)
        for name in ("topic", "partition", "generation", "target_topic", "target_generation")
    }
    fields = {field.name: pc.struct_field(runs, field.name) for field in RUN}
    return pa.table({**of_parent, "target_partition": of_parent["partition"], **fields})


def latency_rows(result: pa.Table) -> pa.Table:
    """The rows of `latency` that tasks reported: partitions with records."""
    with_records = result.filter(pc.greater(result["record_count"], 0))
    columns = [f"{kind}_{name}_ms" for kind in ("landing", "replication") for name in LATENCY]
    return with_records.select(["topic", "partition", "record_count", "byte_count", *columns])


def _with(table: pa.Table, constants: Mapping[str, object]) -> pa.Table:
    for name, value in constants.items():
        kind = pa.timestamp("us", tz="UTC") if isinstance(value, datetime) else None
        table = table.append_column(name, pa.repeat(pa.scalar(value, kind), table.num_rows))
    return table
