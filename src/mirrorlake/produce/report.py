"""What a produce task knows of its partitions while it writes, and the table that it reports at the end."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake.core.batch import PartitionPlan
from mirrorlake.core.runs import Segment, Written, rebuild, runs_of
from mirrorlake.errors import MapError

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
        ("generation", pa.int32()),
        ("target_topic", pa.string()),
        ("record_count", pa.int64()),
        ("byte_count", pa.int64()),
        ("runs", pa.list_(RUN)),
        *(
            (f"{kind}_{name}_ms", pa.float64() if name == "avg" else pa.int64())
            for kind in ("landing", "replication")
            for name in LATENCY
        ),
        ("refused_first", pa.int64()),
        ("refused_last", pa.int64()),
        ("refused_reason", pa.string()),
    ]
)
#: The same for Spark.
RESULT_DDL = (
    "shard int, worker string, complete boolean, topic string, partition int, generation int, target_topic string,"
    " record_count bigint, byte_count bigint, runs array<struct<source_first: bigint, source_last: bigint,"
    " target_first: bigint, target_last: bigint, record_count: bigint, segments: array<struct<source_first: bigint,"
    " stride: bigint, target_first: bigint, record_count: bigint>>>>, "
    + ", ".join(
        f"{kind}_{name}_ms {'double' if name == 'avg' else 'bigint'}"
        for kind in ("landing", "replication")
        for name in LATENCY
    )
    + ", refused_first bigint, refused_last bigint, refused_reason string"
)


@dataclass(frozen=True)
class Refused:
    """Source offsets (inclusive) among which the target refused a record; nothing behind `first` was written."""

    first: int
    last: int
    reason: str

    def columns(self) -> dict[str, object]:
        """As columns of RESULT."""
        return {"refused_first": self.first, "refused_last": self.last, "refused_reason": self.reason}


@dataclass
class Progress:
    """What a task knows of one partition: what the target has, what was rebuilt, written, refused."""

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
    refused: Refused | None = None


def measure(state: Progress, rows: pa.RecordBatch, acknowledged_ms: int) -> None:
    """Count rows that the target acknowledged, and how late they were landed and acknowledged."""
    sent = rows.column("timestamp").cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    landed = rows.column("landed_at").cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    state.landing.append(pc.subtract(landed, sent).to_numpy(zero_copy_only=False))
    state.replication.append(pc.subtract(acknowledged_ms, sent).to_numpy(zero_copy_only=False))
    for name in ("key", "value"):
        state.byte_count += pc.sum(pc.binary_length(rows.column(name))).as_py() or 0


def result_of(shard: int, worker: str, states: Iterable[Progress], complete: bool) -> pa.RecordBatch:
    """One row of RESULT per partition. `complete` is false when rows of the shard were left for the next batch."""
    rows = [{"shard": shard, "worker": worker, "complete": complete, **_partition_row(state)} for state in states]
    return pa.RecordBatch.from_pylist(rows, schema=RESULT)


def _partition_row(state: Progress) -> dict[str, object]:
    segments = _rebuilt_segments(state) + state.segments
    runs = runs_of(segments)
    return {
        "topic": state.plan.topic,
        "partition": state.plan.partition,
        "generation": state.plan.generation,
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
        **({} if state.refused is None else state.refused.columns()),
    }


def _rebuilt_segments(state: Progress) -> list[Segment]:
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
