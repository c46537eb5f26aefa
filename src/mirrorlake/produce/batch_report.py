"""The outcome of a flow's batch, as its driver reports it for counting, display and records."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake.produce.ports import BatchWay


@dataclass(frozen=True)
class BatchReport:
    """The outcome of a batch. `reader` is `files`, or `rows` if Spark fed the workers; `way` is
    where it was produced. `replication_ms` are p50, p95 and p99 of replication latency, each the
    highest of all partitions; None if no record was acknowledged. `result` are the underlying rows
    of `produce.report.RESULT`.
    """

    batch_id: int
    stage_version: int
    record_count: int
    reader: str
    complete: bool
    replication_ms: tuple[int, int, int] | None = None
    way: BatchWay = "long"
    result: pa.Table | None = field(default=None, compare=False, repr=False)

    def followed_by(self, rest: "BatchReport") -> "BatchReport":
        """The report of a batch in two parts: this one, and `rest`."""
        results = [each.result for each in (self, rest) if each.result is not None]
        return replace(
            rest,
            record_count=self.record_count + rest.record_count,
            result=pa.concat_tables(results) if results else None,
        )


def latest_ms(
    result: pa.Table, is_heartbeats: Callable[[str], bool]
) -> tuple[int, int, int] | None:
    """The highest percentiles of a batch's partitions but those of heartbeats, which may wait."""
    result = result.filter(
        pa.array([not is_heartbeats(topic) for topic in result["topic"].to_pylist()], pa.bool_())
    )
    percentiles = [
        pc.max(result[f"replication_{name}_ms"]).as_py() for name in ("p50", "p95", "p99")
    ]
    return None if None in percentiles else (percentiles[0], percentiles[1], percentiles[2])
