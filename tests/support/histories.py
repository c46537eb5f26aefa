"""Known histories, written straight into the tables of a lake: what views, notebooks and metrics
are tested on.

Times are given in seconds before now, so that a history is as old as it says whenever the test
runs.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from mirrorlake.config.lake import Lake as Location
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake

FLOW = "east->west"
_TIME = pa.timestamp("us", tz="UTC")
_PARTITION = [("flow", pa.string()), ("topic", pa.string()), ("partition", pa.int32())]
_LATENCIES = [
    (f"{kind}_{name}_ms", pa.float64() if name == "avg" else pa.int64())
    for kind in ("landing", "replication")
    for name in ("min", "avg", "p50", "p95", "p99", "max")
]
_POSITIONS = pa.schema(
    [
        *_PARTITION,
        ("sampled_at", _TIME),
        ("lag_seconds", pa.float64()),
        ("target_topic", pa.string()),
    ]
    + [(f"{name}_end", pa.int64()) for name in ("source", "staged", "produced", "target")]
    + [("source_start", pa.int64()), ("lag_records", pa.int64()), ("interval_seconds", pa.int32())]
    + [("mapped_end", pa.int64()), ("target_passed_end", pa.int64())]
)
_LATENCY = pa.schema(
    [
        *_PARTITION,
        ("batch_id", pa.int64()),
        ("record_count", pa.int64()),
        ("byte_count", pa.int64()),
    ]
    + [*_LATENCIES, ("produced_at", _TIME), ("way", pa.string())]
)
_SEGMENT = pa.struct(
    [(name, pa.int64()) for name in ("source_first", "stride", "target_first", "record_count")]
)
_MAP = pa.schema(
    [
        *_PARTITION,
        ("target_topic", pa.string()),
        ("target_partition", pa.int32()),
        ("produced_at", _TIME),
    ]
    + [
        (name, pa.int64())
        for name in ("source_first", "source_last", "target_first", "target_last")
    ]
    + [("record_count", pa.int64()), ("batch_id", pa.int64()), ("stage_version", pa.int64())]
    + [("generation", pa.int32()), ("segments", pa.list_(_SEGMENT))]
)
_RECORDS = pa.schema(
    [
        ("source_cluster", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
    + [
        ("timestamp", _TIME),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
    + [("landed_at", _TIME), ("batch_id", pa.int64()), ("generation", pa.int32())]
)
_CHECKPOINTS = pa.schema(
    [
        ("flow", pa.string()),
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
    ]
    + [
        ("source_position", pa.int64()),
        ("target_topic", pa.string()),
        ("target_position", pa.int64()),
    ]
    + [
        ("checkpointed_at", _TIME),
        ("synced", pa.bool_()),
        ("reason", pa.string()),
        ("read_at", _TIME),
    ]
)
_INCIDENTS = pa.schema(
    [
        ("flow", pa.string()),
        ("at", _TIME),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
    ]
    + [("first_offset", pa.int64()), ("last_offset", pa.int64()), ("detail", pa.string())]
    + [("resolved_at", _TIME), ("resolution", pa.string())]
)
_CLUSTERS = pa.schema(
    [
        ("alias", pa.string()),
        ("cluster_id", pa.string()),
        ("first_seen", _TIME),
        ("last_seen", _TIME),
    ]
)
_AUDITS = pa.schema(
    [*_PARTITION, ("verdict", pa.string()), ("audited_at", _TIME), ("generation", pa.int32())]
    + [(name, pa.int64()) for name in ("first_offset", "last_offset", "byte_count")]
    + [(f"{side}_count", pa.int64()) for side in ("source", "stage", "target")]
    + [("target_generation", pa.int32()), ("excused", pa.map_(pa.string(), pa.int64()))]
)
SCHEMAS = {
    "positions": _POSITIONS,
    "latency": _LATENCY,
    "offset_map": _MAP,
    "records": _RECORDS,
    "checkpoints": _CHECKPOINTS,
    "incidents": _INCIDENTS,
    "clusters": _CLUSTERS,
    "audits": _AUDITS,
}


class History:
    """Collects rows of one lake; `write` appends all of them. `ago` is seconds before the history
    was begun."""

    def __init__(self, spark: SparkSession, directory: Path, now: datetime | None = None) -> None:
        self.lake: Lake = open_lake(spark, Location(path=str(directory / "lake")), directory)
        self.now = now or datetime.now(timezone.utc)
        self._rows: dict[str, list[dict[str, object]]] = {}

    def at(self, ago: float) -> datetime:
        return self.now - timedelta(seconds=ago)

    def add(self, table: str, **values: object) -> "History":
        self._rows.setdefault(table, []).append(values)
        return self

    def sample(
        self,
        ago: float,
        topic: str,
        partition: int,
        end: int,
        produced: int,
        seconds: float | None = 0.0,
        start: int = 0,
        target_end: int | None = None,
        flow: str = FLOW,
        interval: int | None = None,
    ) -> "History":
        """A row of `positions`: the source's end, and how far it is produced."""
        return self.add(
            "positions",
            flow=flow,
            topic=topic,
            partition=partition,
            sampled_at=self.at(ago),
            source_start=start,
            source_end=end,
            staged_end=end,
            produced_end=produced,
            target_end=target_end,
            lag_records=end - max(produced, start),
            lag_seconds=seconds,
            target_topic=f"east.{topic}",
            interval_seconds=interval,
        )

    def batch(
        self,
        ago: float,
        topic: str,
        partition: int,
        batch_id: int,
        records: int,
        latencies: Sequence[float] | None = (1, 2, 2, 3, 4, 5),
        size: int = 100,
        flow: str = FLOW,
        way: str | None = "short",
    ) -> "History":
        """A row of `latency`: (min, avg, p50, p95, p99, max) of replication, landing is half; None:
        it was rebuilt."""
        values: dict[str, object] = {}
        if latencies is not None:
            for name, value in zip(
                ("min", "avg", "p50", "p95", "p99", "max"), latencies, strict=True
            ):
                whole = name != "avg"
                values[f"replication_{name}_ms"] = int(value) if whole else float(value)
                values[f"landing_{name}_ms"] = int(value / 2) if whole else value / 2
        return self.add(
            "latency",
            flow=flow,
            topic=topic,
            partition=partition,
            batch_id=batch_id,
            record_count=records,
            byte_count=records * size if latencies is not None else 0,
            produced_at=self.at(ago),
            way=way,
            **values,
        )

    def run(
        self,
        ago: float,
        topic: str,
        partition: int,
        batch_id: int,
        source_first: int,
        target_first: int,
        count: int,
        stride: int = 1,
        flow: str = FLOW,
    ) -> "History":
        """A row of `offset_map` with one segment."""
        last = source_first + (count - 1) * stride
        segment = {
            "source_first": source_first,
            "stride": stride,
            "target_first": target_first,
            "record_count": count,
        }
        return self.add(
            "offset_map",
            flow=flow,
            topic=topic,
            partition=partition,
            source_first=source_first,
            source_last=last,
            target_topic=f"east.{topic}",
            target_partition=partition,
            target_first=target_first,
            target_last=target_first + count - 1,
            record_count=count,
            produced_at=self.at(ago),
            batch_id=batch_id,
            stage_version=batch_id,
            generation=0,
            segments=[segment],
        )

    def staged(
        self, ago: float, topic: str, partition: int, offsets: Sequence[int], size: int = 100
    ) -> "History":
        """Rows of `records`, landed a second after their timestamps."""
        for offset in offsets:
            self.add(
                "records",
                source_cluster="east",
                topic=topic,
                partition=partition,
                offset=offset,
                timestamp=self.at(ago + 1),
                timestamp_type=0,
                key=f"key-{offset}".encode(),
                value=b"x" * size,
                landed_at=self.at(ago),
                batch_id=int(self.at(ago).timestamp() * 1000),
                generation=0,
            )
        return self

    def write(self) -> Lake:
        """Append everything, each table in one commit."""
        for table, rows in self._rows.items():
            self.lake.append(table, pa.Table.from_pylist(rows, schema=SCHEMAS[table]))
        self._rows = {}
        return self.lake
