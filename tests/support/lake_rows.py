"""A lake without Kafka, and histories written into its tables."""

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyspark.sql import SparkSession

from mirrorlake.config.topology import Topology, load_topology
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.reader import Reader

FLOW = "east->west"
_SECONDS = pa.timestamp("us", tz="UTC")
_TYPES = {
    "landed_at": _SECONDS,
    "sampled_at": _SECONDS,
    "stalled_since": _SECONDS,
    "produced_at": _SECONDS,
    "at": _SECONDS,
    "timestamp": _SECONDS,
    "checkpointed_at": _SECONDS,
    "resolved_at": _SECONDS,
    "partition": pa.int32(),
    "target_partition": pa.int32(),
    "generation": pa.int32(),
    "target_generation": pa.int32(),
    "timestamp_type": pa.int32(),
    "lag_seconds": pa.float64(),
    "synced": pa.bool_(),
    "enabled": pa.bool_(),
    "noted_at": _SECONDS,
    "deleted_at": _SECONDS,
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    "segments": pa.list_(
        pa.struct(
            [
                (name, pa.int64())
                for name in ("source_first", "stride", "target_first", "record_count")
            ]
        )
    ),
    **dict.fromkeys(
        (
            "flow",
            "topic",
            "source_cluster",
            "target_topic",
            "selection",
            "kind",
            "detail",
            "resolution",
            "group_id",
            "mode",
            "resource",
            "before",
            "after",
            "outcome",
            "error",
            "forget_id",
        ),
        pa.string(),
    ),
}


def write_file(directory: Path, **blocks: object) -> Path:
    """A topology file of two clusters that are never asked, and a lake; `blocks` replace or add
    top-level keys."""
    directory.mkdir(parents=True, exist_ok=True)
    clusters = {alias: {"bootstrap_servers": "127.0.0.1:1"} for alias in ("east", "west", "north")}
    document = {"clusters": clusters, "lake": {"path": "./lake"}, "flows": {FLOW: {}}, **blocks}
    path = directory / "mirrorlake.yml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def opened(spark: SparkSession | Callable[[], SparkSession], file: Path) -> tuple[Lake, Topology]:
    """The lake of a topology file, and the topology."""
    topology = load_topology(file)
    return open_lake(spark, topology.lake, topology.directory), topology


def no_session() -> SparkSession:
    """For a lake in a folder, where what is tested needs no session."""
    raise AssertionError("a session was asked for")


def now_of(lake: Lake) -> Reader:
    """Who answers what is asked of a lake, as of now: DuckDB where it is a folder, for a tenth of
    what Spark takes."""
    return lake.now


def ago(seconds: float) -> datetime:
    """A moment in the past."""
    return datetime.now(timezone.utc) - timedelta(seconds=seconds)


def append(lake: Lake, table: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Append rows given as mappings; columns that they lack become null."""
    lake.append(table, table_of(rows))


def commit(lake: Lake, table: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Append rows as one Delta commit of one file, without Spark, which takes half a second for
    what takes this 5 ms.

    The commit is what the protocol asks of a blind append: `add` without statistics, under the next
    version.
    """
    assert lake.directory is not None
    folder = lake.directory / table
    log = folder / "_delta_log"
    version = max(int(path.stem) for path in log.glob("*.json") if path.stem.isdigit()) + 1
    file = folder / f"part-00000-{uuid.uuid4()}-c000.zstd.parquet"
    pq.write_table(table_of(rows), file, compression="zstd")
    now = int(time.time() * 1000)
    info = {
        "timestamp": now,
        "operation": "WRITE",
        "isBlindAppend": True,
        "operationParameters": {"mode": "Append"},
    }
    size = file.stat().st_size
    add = {
        "path": file.name,
        "partitionValues": {},
        "size": size,
        "modificationTime": now,
        "dataChange": True,
    }
    lines = [json.dumps({"commitInfo": info}), json.dumps({"add": add})]
    (log / f"{version:020}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


def table_of(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Rows given as mappings, as an Arrow table."""
    names = dict.fromkeys(name for row in rows for name in row)
    schema = pa.schema([(name, _TYPES.get(name, pa.int64())) for name in names])
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def sample(
    seconds_ago: float, produced: int, end: int, lag_seconds: float | None = None, **more: object
) -> dict:
    """A row of `positions` of orders-0."""
    lag = end - produced
    return {
        "flow": FLOW,
        "topic": "orders",
        "partition": 0,
        "sampled_at": ago(seconds_ago),
        "source_start": 0,
        "source_end": end,
        "staged_end": end,
        "produced_end": produced,
        "target_end": produced,
        "lag_records": lag,
        "lag_seconds": float(lag_seconds if lag_seconds is not None else 0),
        "target_topic": "east.orders",
        **more,
    }


def run_row(
    first: int, last: int, seconds_ago: float = 60, count: int | None = None, **more: object
) -> dict:
    """A row of `offset_map` of orders-0; target offsets equal source offsets."""
    return {
        "flow": FLOW,
        "topic": "orders",
        "partition": 0,
        "source_first": first,
        "source_last": last,
        "target_topic": "east.orders",
        "target_partition": 0,
        "target_first": first,
        "target_last": last,
        "record_count": count or last - first + 1,
        "produced_at": ago(seconds_ago),
        "batch_id": first,
        "stage_version": 0,
        "generation": 0,
        "segments": [
            {
                "source_first": first,
                "stride": 1,
                "target_first": first,
                "record_count": count or last - first + 1,
            }
        ],
        **more,
    }


def staged(offsets: Sequence[int], seconds_ago: float = 120, **more: object) -> list[dict]:
    """Rows of `records` of orders-0."""
    landed = ago(seconds_ago)
    return [
        {
            "source_cluster": "east",
            "topic": "orders",
            "partition": 0,
            "offset": offset,
            "timestamp": landed,
            "timestamp_type": 0,
            "key": b"k",
            "value": b"v" * 50,
            "headers": None,
            "landed_at": landed,
            "batch_id": int(landed.timestamp() * 1000),
            "generation": 0,
            **more,
        }
        for offset in offsets
    ]


def parked_row(offset: int, at: datetime, target_generation: int = 0) -> dict[str, object]:
    """A row of `parked`: a record of orders-0 that the target refused."""
    return {
        "flow": FLOW,
        "topic": "orders",
        "partition": 0,
        "offset": offset,
        "generation": 0,
        "reason": "TOO_LARGE",
        "parked_at": at,
        "target_topic": "east.orders",
        "target_generation": target_generation,
    }


def record_row(
    flow: str, place: tuple[str, int, int], offset: int, target_topic: str, at: int
) -> dict:
    """A row of the map, of one record of a topic's partition and generation, produced now at an
    offset of the same partition."""
    topic, partition, generation = place
    segment = {"source_first": offset, "stride": 1, "target_first": at, "record_count": 1}
    return {
        **{"flow": flow, "topic": topic, "partition": partition, "generation": generation},
        **{"source_first": offset, "source_last": offset, "target_topic": target_topic},
        **{"target_partition": partition, "target_first": at, "target_last": at},
        **{"record_count": 1, "produced_at": datetime.now(timezone.utc), "batch_id": at},
        **{"stage_version": 0, "segments": [segment], "target_generation": 0},
    }
