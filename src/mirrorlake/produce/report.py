"""The state of a produce task's partitions while it writes, and the table that it reports."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np
import pyarrow as pa

from mirrorlake.errors import MapBehind, MapUnknown, TargetRefused
from mirrorlake.lake.row_sizes import content_bytes
from mirrorlake.offsets.runs import FEW, Segment, Written, runs_of
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.older_lake import ContentMatch
from mirrorlake.produce.parking import RefusedRecord, Search
from mirrorlake.spark.tasks import Done


def _fields(kind: pa.DataType, names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, kind) for name in names.split()]


SEGMENT = pa.struct(_fields(pa.int64(), "source_first stride target_first record_count"))
RUN = pa.struct(
    [
        *_fields(pa.int64(), "source_first source_last target_first target_last record_count"),
        ("segments", pa.list_(SEGMENT)),
    ]
)
_RUN_NAMES = tuple(field.name for field in RUN)
REFUSED_RECORD = pa.struct(
    [("offset", pa.int64()), ("reason", pa.string()), ("byte_count", pa.int64())]
)
#: Latency columns of one kind, in milliseconds.
LATENCY = ("min", "avg", "p50", "p95", "p99", "max")
RESULT = pa.schema(
    [
        *_fields(pa.string(), "worker topic target_topic refused_reason refused_kind"),
        *_fields(pa.int32(), "shard partition generation target_generation"),
        *_fields(pa.bool_(), "complete recovering"),
        *_fields(pa.int64(), "reached record_count byte_count transactions aborts"),
        *_fields(pa.int64(), "refused_first refused_last refused_target"),
        ("runs", pa.list_(RUN)),
        *(
            (f"{kind}_{name}_ms", pa.float64() if name == "avg" else pa.int64())
            for kind in ("landing", "replication")
            for name in LATENCY
        ),
        ("refused_records", pa.list_(REFUSED_RECORD)),
    ]
)
#: What the tasks of a batch report: rows of RESULT.
Reports = Done[pa.RecordBatch]


@dataclass(frozen=True)
class Refused:
    """The source offsets (inclusive) at which a partition stopped, the reason, and the kind of its
    incident; nothing behind `first` was written. `target` is the target offset from which on the
    target has lost records, or below which lies what an older lake does not know."""

    first: int
    last: int
    reason: str
    kind: str = TargetRefused.incident_kind
    target: int | None = None

    def columns(self) -> dict[str, object]:
        """The values as columns of RESULT."""
        return {f"refused_{name}": value for name, value in vars(self).items()}


@dataclass
class Ended:
    """How many transactions of a shard were committed, and how many its own producer aborted."""

    transactions: int = 0
    aborts: int = 0


@dataclass
class Progress:
    """The state of one partition in a task: the target's position, what was `written` since the map
    was last appended to, what of that was `lost` with a process, and the `segments` written now.
    `recovered` is what was found of the lost records, once they were looked for; `by_content` looks
    for them if the metadata of the position does not name them. `refused_records` were refused for
    themselves: the first one and, if the flow parks, those that `search` finds behind it. `landing`
    and `replication` are each record's latencies until it was landed and acknowledged,
    microseconds."""

    plan: PartitionPlan
    position: int
    written: list[Written]
    lost: list[Written]
    parks: bool = False
    rebuilt: list[np.ndarray] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    byte_count: int = 0
    landing: list[np.ndarray] = field(default_factory=list)
    replication: list[np.ndarray] = field(default_factory=list)
    refused: Refused | None = None
    refused_records: list[RefusedRecord] = field(default_factory=list)
    search: Search | None = None
    recovered: list[Segment] | None = None
    by_content: ContentMatch | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether the partition stopped because it is unknown where the target has some of it."""
        kinds = (MapBehind.incident_kind, MapUnknown.incident_kind)
        return self.refused is not None and self.refused.kind in kinds

    def written_end(self, default: int) -> int:
        """The source offset behind what is written now; `default` where nothing is."""
        return self.segments[-1].source_last + 1 if self.segments else default


def measure(state: Progress, rows: pa.RecordBatch, acknowledged_ms: int) -> None:
    """Count rows that the target acknowledged, and their latencies, without calls of a constant
    cost: a batch may have few rows of each of hundreds of partitions."""
    sent, landed = (_microseconds(rows.column(name)) for name in ("timestamp", "landed_at"))
    if sent.null_count:  # a timestamp outside of the column's range is no time of a clock
        landed, sent = landed.filter(sent.is_valid()), sent.drop_null()
    if len(sent):
        sent_at = sent.to_numpy(zero_copy_only=False)
        state.landing.append(landed.to_numpy(zero_copy_only=False) - sent_at)
        state.replication.append(acknowledged_ms * 1_000 - sent_at)
    state.byte_count += content_bytes(rows)


def _microseconds(times: pa.Array) -> pa.Array:
    """Times as numbers, without a conversion of the stage's own."""
    if times.type.unit != "us":
        times = times.cast(pa.timestamp("us"))
    return times.view(pa.int64())


def result_of(
    shard: int, worker: str, states: Iterable[Progress], complete: bool, ended: Ended | None = None
) -> pa.RecordBatch:
    """One row of RESULT per partition. `complete` is false if rows of the shard were left for the
    next batch; the shard's first row has the counts of `ended`.

    `reached` is the next source offset to read: all below is at the target, or left out on purpose.
    `recovering`: the target has more than was rebuilt; the next batch asks for positions again.
    """
    rows = [
        {"shard": shard, "worker": worker, "complete": complete, **_partition_row(state, complete)}
        for state in states
    ]
    if rows and ended is not None:
        rows[0].update(vars(ended))
    return pa.RecordBatch.from_pylist(rows, schema=RESULT)


def table_of(done: Reports) -> pa.Table:
    """What tasks report, as one table of RESULT."""
    return pa.Table.from_batches(done.results, RESULT)


def _partition_row(state: Progress, complete: bool) -> dict[str, object]:
    segments = [*(state.recovered or ()), *state.segments]
    recovering = state.recovered is None
    return {
        **state.plan.place._asdict(),
        "target_generation": state.plan.floor.target_generation,
        "reached": _reached(state, segments, recovering, complete),
        "recovering": recovering,
        "target_topic": state.plan.target_topic,
        "record_count": sum(segment.record_count for segment in segments),
        "byte_count": state.byte_count,
        "runs": [
            {
                **{name: getattr(run, name) for name in _RUN_NAMES},
                "segments": [vars(segment) for segment in run.segments],
            }
            for run in runs_of(segments)
        ],
        **_percentiles("landing", state.landing),
        **_percentiles("replication", state.replication),
        **({} if state.refused is None else state.refused.columns()),
        "refused_records": [vars(record) for record in state.refused_records],
    }


def _reached(state: Progress, segments: Sequence[Segment], recovering: bool, complete: bool) -> int:
    """The next source offset to read of a partition."""
    if complete and state.refused is None:
        # Below the target's position with nothing to rebuild: left out on purpose.
        return state.plan.last + 1 if recovering else max(state.plan.last + 1, state.position)
    return segments[-1].source_last + 1 if segments else state.plan.first


def _percentiles(kind: str, parts: Sequence[np.ndarray]) -> dict[str, object]:
    """LATENCY of values in microseconds. Percentiles are interpolated as in numpy, whose function
    takes longer than all the rest for a partition with few rows."""
    if not parts:
        return {}
    joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
    few = len(joined) <= FEW
    values = sorted(joined.tolist()) if few else np.sort(joined)
    mean = sum(values) / len(values) if few else float(joined.mean())
    low, p50, p95, p99, high = (
        round((int(values[below]) * (1 - share) + int(values[above]) * share) / 1_000)
        for below, above, share in _places(len(values))
    )
    statistics = (low, mean / 1_000, p50, p95, p99, high)
    return dict(zip(_names(kind), statistics, strict=True))


@cache
def _names(kind: str) -> tuple[str, ...]:
    return tuple(f"{kind}_{name}_ms" for name in LATENCY)


@lru_cache(2 * FEW)
def _places(count: int) -> tuple[tuple[int, int, float], ...]:
    """For each percentile of LATENCY among `count` sorted values: the two values that it lies
    between, and its distance from the first."""
    places = [share * (count - 1) for share in (0.0, 0.5, 0.95, 0.99, 1.0)]
    return tuple((int(at), min(int(at) + 1, count - 1), at - int(at)) for at in places)
