"""What one Spark task does: bring one shard's rows to the target, and report runs and latency per partition.

A task may be tried again at any point, by Spark, after a crash, or while an older attempt still lives. So it starts by
making sure that it is the only writer (`init_transactions`) and by asking the target how far the flow is; what is there
already is not written again, and its map rows are rebuilt from the committed metadata and the stage.
"""

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake.core.batch import PartitionPlan, ShardPlan
from mirrorlake.core.runs import Segment, Written, decode_written, rebuild, runs_of, trim_written
from mirrorlake.errors import MapError
from mirrorlake.produce.stage_files import read_shard, split_by_partition
from mirrorlake.produce.writer import Chunk, MetadataFull, ShardWriter, Target, add_written, check_rising

#: A transaction ends when it holds this many records or bytes (Arrow's size of the rows).
TRANSACTION_RECORDS = 200_000
TRANSACTION_BYTES = 128 << 20

SEGMENT = pa.struct(
    [
        ("source_first", pa.int64()),
        ("stride", pa.int64()),
        ("target_first", pa.int64()),
        ("record_count", pa.int64()),
    ]
)
RUN = pa.struct(
    [
        ("source_first", pa.int64()),
        ("source_last", pa.int64()),
        ("target_first", pa.int64()),
        ("target_last", pa.int64()),
        ("record_count", pa.int64()),
        ("segments", pa.list_(SEGMENT)),
    ]
)
#: Latency columns of one kind, in milliseconds.
LATENCY = ("min", "avg", "p50", "p95", "p99", "max")
RESULT = pa.schema(
    [
        ("shard", pa.int32()),
        ("worker", pa.string()),
        ("complete", pa.bool_()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("target_topic", pa.string()),
        ("record_count", pa.int64()),
        ("byte_count", pa.int64()),
        ("runs", pa.list_(RUN)),
        *(
            (f"{kind}_{name}_ms", pa.float64() if name == "avg" else pa.int64())
            for kind in ("landing", "replication")
            for name in LATENCY
        ),
    ]
)
#: The same for Spark.
RESULT_DDL = (
    "shard int, worker string, complete boolean, topic string, partition int, target_topic string, record_count bigint,"
    " byte_count bigint, runs array<struct<source_first: bigint, source_last: bigint, target_first: bigint,"
    " target_last: bigint, record_count: bigint, segments: array<struct<source_first: bigint, stride: bigint,"
    " target_first: bigint, record_count: bigint>>>>, "
    + ", ".join(
        f"{kind}_{name}_ms {'double' if name == 'avg' else 'bigint'}"
        for kind in ("landing", "replication")
        for name in LATENCY
    )
)

#: This worker process, so that the driver knows in which one a shard's producer lives.
WORKER = uuid.uuid4().hex
_writers: dict[str, ShardWriter] = {}


@dataclass(frozen=True)
class ShardJob:
    """What a task is told. `owner` is the worker whose producer wrote this shard last, and so may simply go on."""

    plan: ShardPlan
    target: Target
    owner: str | None


class ReadFiles:
    """mapInArrow over a frame of job numbers: the worker reads the stage's files itself."""

    def __init__(self, jobs: Sequence[ShardJob]) -> None:
        self._jobs = jobs

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                job = self._jobs[number]
                yield produce_shard(job, read_shard(job.plan))


class ReadRows:
    """mapInArrow over the rows themselves, sorted by (shard, topic, partition, offset): Spark reads the stage."""

    def __init__(self, jobs: Sequence[ShardJob]) -> None:
        self._jobs = {job.plan.shard: job for job in jobs}

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pending = _Pushback(iter(batches))
        while (shard := pending.shard()) is not None:
            job = self._jobs[shard]
            plans = {(plan.topic, plan.partition): plan for plan in job.plan.partitions}
            rows = (item for batch in pending.of_shard(shard) for item in split_by_partition(batch, plans))
            yield produce_shard(job, rows)


class _Pushback:
    """An iterator of record batches that can be taken shard by shard; a batch may hold the rows of several."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._held: pa.RecordBatch | None = None

    def shard(self) -> int | None:
        """The shard of the next row; None at the end."""
        while self._held is None or self._held.num_rows == 0:
            self._held = next(self._batches, None)
            if self._held is None:
                return None
        return int(self._held.column("shard")[0].as_py())

    def of_shard(self, shard: int) -> Iterator[pa.RecordBatch]:
        """The rows up to the first one of another shard."""
        while self.shard() == shard:
            batch = self._held
            shards = batch.column("shard").to_numpy(zero_copy_only=False)  # type: ignore[union-attr]
            end = int(np.searchsorted(shards, shard, side="right"))
            self._held = batch.slice(end)  # type: ignore[union-attr]
            yield batch.slice(0, end)  # type: ignore[union-attr]


@dataclass
class _Progress:
    """What a task knows of one partition: what the target has, what was rebuilt, what was written."""

    plan: PartitionPlan
    position: int
    written: list[Written]
    lost: list[Written]
    rebuilt: list[np.ndarray] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    last: int | None = None
    byte_count: int = 0
    landing: list[np.ndarray] = field(default_factory=list)
    replication: list[np.ndarray] = field(default_factory=list)


def produce_shard(job: ShardJob, rows: Iterator[tuple[PartitionPlan, pa.RecordBatch]]) -> pa.RecordBatch:
    """Write the rows of one shard and return one row of RESULT per partition."""
    try:
        writer, fresh = _writer(job)
        progress = _progress(job, writer, fresh)
        complete = _write_all(writer, progress, rows)
    except BaseException:
        # Whatever it was, this producer's state is not known any more; the next attempt starts a fresh one.
        _writers.pop(job.target.transactional_id, None)
        raise
    return _result(job, progress, complete)


def _writer(job: ShardJob) -> tuple[ShardWriter, bool]:
    """The shard's producer, and whether it is a new one, which has fenced all others."""
    known = _writers.get(job.target.transactional_id)
    if known is not None and job.owner == WORKER and known.target == job.target:
        return known, False
    writer = ShardWriter(job.target)
    _writers[job.target.transactional_id] = writer
    return writer, True


def _progress(job: ShardJob, writer: ShardWriter, fresh: bool) -> dict[tuple[str, int], _Progress]:
    """Where each partition stands. Only a fresh producer has to ask: nobody else wrote while the old one lived."""
    committed: Mapping[tuple[str, int], tuple[int, str]] = {}
    if fresh and job.target.transactional:
        committed = writer.positions([(plan.target_topic, plan.partition) for plan in job.plan.partitions])
    found = {}
    for plan in job.plan.partitions:
        position, metadata = committed.get((plan.target_topic, plan.partition), (plan.floor.source, ""))
        lost: list[Written] = []
        if position > plan.floor.source:
            lost = _lost(plan, position, metadata)
        found[plan.topic, plan.partition] = _Progress(
            plan, max(position, plan.floor.source), [*plan.unmapped, *lost], lost
        )
    return found


def _lost(plan: PartitionPlan, position: int, metadata: str) -> list[Written]:
    """What the target has and the map has not, by the committed metadata."""
    try:
        return trim_written(decode_written(metadata)[1], plan.floor.target, plan.floor.source)
    except ValueError as error:
        raise MapError(
            f"the target's position {position} of {plan.target_topic}-{plan.partition} carries metadata that this "
            f"version cannot read ({error}); upgrade mirrorlake",
            topic=plan.topic,
            partition=plan.partition,
        ) from error


def _write_all(
    writer: ShardWriter,
    progress: Mapping[tuple[str, int], _Progress],
    rows: Iterator[tuple[PartitionPlan, pa.RecordBatch]],
) -> bool:
    """Write in transactions of bounded size. False when the metadata is full before all rows are written."""
    pending: list[Chunk] = []
    records = size = 0
    for plan, stretch in rows:
        state = progress[plan.topic, plan.partition]
        for chunk in _new_rows(state, stretch):
            pending.append(chunk)
            records += len(chunk.offsets)
            size += chunk.rows.nbytes
        if records >= TRANSACTION_RECORDS or size >= TRANSACTION_BYTES:
            if not _commit(writer, progress, pending):
                return False
            pending, records, size = [], 0, 0
    return not pending or _commit(writer, progress, pending)


def _new_rows(state: _Progress, stretch: pa.RecordBatch) -> Iterator[Chunk]:
    """Put aside what the target has already; yield the rest."""
    offsets = stretch.column("offset").to_numpy(zero_copy_only=False)
    chunk = Chunk(state.plan, stretch, offsets)
    check_rising(chunk, state.last)
    state.last = int(offsets[-1])
    known = int(np.searchsorted(offsets, state.position))
    if known:
        state.rebuilt.append(offsets[:known])
        _measure(state, stretch.slice(0, known), time.time_ns() // 1_000_000)
    if known < len(offsets):
        yield Chunk(state.plan, stretch.slice(known), offsets[known:])


def _commit(writer: ShardWriter, progress: Mapping[tuple[str, int], _Progress], chunks: list[Chunk]) -> bool:
    written = {key: state.written for key, state in progress.items()}
    try:
        done = writer.write(chunks, written)
    except MetadataFull:
        if len(chunks) == 1 and len(chunks[0].offsets) <= 64:
            return False
        half = _halves(chunks)
        return all(_commit(writer, progress, part) for part in half)
    now = time.time_ns() // 1_000_000
    for chunk, segments in done:
        state = progress[chunk.plan.topic, chunk.plan.partition]
        state.written = add_written(state.written, segments)
        state.segments.extend(segments)
        _measure(state, chunk.rows, now)
    return True


def _halves(chunks: list[Chunk]) -> tuple[list[Chunk], list[Chunk]]:
    """Cut what one transaction could not describe into two."""
    if len(chunks) > 1:
        middle = len(chunks) // 2
        return chunks[:middle], chunks[middle:]
    chunk = chunks[0]
    middle = len(chunk.offsets) // 2
    return (
        [Chunk(chunk.plan, chunk.rows.slice(0, middle), chunk.offsets[:middle])],
        [Chunk(chunk.plan, chunk.rows.slice(middle), chunk.offsets[middle:])],
    )


def _measure(state: _Progress, rows: pa.RecordBatch, acknowledged_ms: int) -> None:
    sent = rows.column("timestamp").cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    landed = rows.column("landed_at").cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    state.landing.append(pc.subtract(landed, sent).to_numpy(zero_copy_only=False))
    state.replication.append(pc.subtract(acknowledged_ms, sent).to_numpy(zero_copy_only=False))
    for name in ("key", "value"):
        state.byte_count += pc.sum(pc.binary_length(rows.column(name))).as_py() or 0


def _result(job: ShardJob, progress: Mapping[tuple[str, int], _Progress], complete: bool) -> pa.RecordBatch:
    rows = [_partition_row(job, state, complete) for state in progress.values()]
    return pa.RecordBatch.from_pylist(rows, schema=RESULT)


def _partition_row(job: ShardJob, state: _Progress, complete: bool) -> dict[str, object]:
    segments = _rebuilt_segments(state) + state.segments
    runs = runs_of(segments)
    return {
        "shard": job.plan.shard,
        "worker": WORKER,
        "complete": complete,
        "topic": state.plan.topic,
        "partition": state.plan.partition,
        "target_topic": state.plan.target_topic,
        "record_count": sum(segment.record_count for segment in segments),
        "byte_count": state.byte_count,
        "runs": [
            {
                "source_first": run.source_first,
                "source_last": run.source_last,
                "target_first": run.target_first,
                "target_last": run.target_last,
                "record_count": run.record_count,
                "segments": [vars(segment) for segment in run.segments],
            }
            for run in runs
        ],
        **_percentiles("landing", state.landing),
        **_percentiles("replication", state.replication),
    }


def _rebuilt_segments(state: _Progress) -> list[Segment]:
    offsets = np.concatenate(state.rebuilt) if state.rebuilt else np.empty(0, dtype=np.int64)
    try:
        return rebuild(offsets, state.lost)
    except ValueError as error:
        plan = state.plan
        raise MapError(
            f"the map of {plan.topic}-{plan.partition} cannot be rebuilt from offset {plan.floor.source} to "
            f"{state.position}: {error}; another mirrorlake may be writing this flow",
            topic=plan.topic,
            partition=plan.partition,
            first_offset=plan.floor.source,
            last_offset=state.position - 1,
        ) from error


def _percentiles(kind: str, parts: Sequence[np.ndarray]) -> dict[str, object]:
    if not parts:
        return {}
    values = np.concatenate(parts)
    p50, p95, p99 = np.percentile(values, [50, 95, 99])
    found = (values.min(), values.mean(), p50, p95, p99, values.max())
    return {
        f"{kind}_{name}_ms": float(value) if name == "avg" else round(float(value))
        for name, value in zip(LATENCY, found, strict=True)
    }
