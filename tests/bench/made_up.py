"""Makes a lake's tables as after months, within a minute, since it writes Delta's log directly.

The files are as Spark's, except for their number: `maintain` compacts each table once a day.
"""

import json
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from mirrorlake.lake.lake import Lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.place import FolderPlace
from mirrorlake.offsets.runs import MAX_SEGMENTS
from mirrorlake.produce.report import SEGMENT

FLOW = "east->west"
_DAY_US = 86_400_000_000
_TIME = pa.timestamp("us", tz="UTC")
#: Days for which Delta keeps the log (sql/tables).
_LOG_DAYS = 7
_RUN_RECORDS = 200
_FILES = 8


@dataclass(frozen=True)
class History:
    """A history's size: batches left `runs` rows of the map in `days`; tables got `commits`
    commits. `positions` are sampled every minute and, as by `maintain`, kept for 90 days. `merged`:
    whether it also merged the runs of each day, except the last (sql/queries/merge_map.sql)."""

    runs: int
    commits: int
    days: int
    partitions: int = 50
    merged: bool = False


DAY = History(27_000, 1_700, 1)
YEAR = History(10_000_000, 600_000, 365)
MAINTAINED = replace(YEAR, merged=True)


def make_history(lake: Lake, history: History) -> None:
    """Fill the tables of a new lake in a directory. This process must not have read it before."""
    assert isinstance(lake, PathLake) and isinstance(lake.root, FolderPlace)
    parts = {
        "offset_map": _map_rows(history),
        "positions": _position_rows(history, min(history.days, 90)),
        "changes": _change_rows(history),
        "records": iter(()),
    }
    for table, rows in parts.items():
        _fill(lake.root / table, rows, history)


def _fill(folder: Path, tables: Iterable[pa.Table], history: History) -> None:
    """Put files into a table, at the version that the history's commits would have."""
    for rows in tables:
        write_deltalake(folder, rows, mode="append", schema_mode="merge")
    table = DeltaTable(folder)
    table.create_checkpoint()
    _move_log(folder / "_delta_log", table.version(), history)


def _move_log(log: Path, version: int, history: History) -> None:
    """Make the log as long as the commits would: one checkpoint near its end, no old entries."""
    checkpoint = history.commits - history.commits % 100
    for path in (*log.glob("*.json"), *log.glob("*.crc")):
        path.unlink()
    moved = log / f"{checkpoint:020}.checkpoint.parquet"
    shutil.move(log / f"{version:020}.checkpoint.parquet", moved)
    last = {"version": checkpoint, "size": pq.read_metadata(moved).num_rows}
    (log / "_last_checkpoint").write_text(json.dumps(last), encoding="utf-8")
    kept = history.commits * min(_LOG_DAYS, history.days) // history.days
    for number in range(max(0, history.commits - kept), history.commits + 1):
        info = {"operation": "WRITE", "isBlindAppend": True, "operationParameters": {}}
        write_commit(log, number, [{"commitInfo": {**info, "timestamp": _now() // 1000}}])


def write_commit(log: Path, version: int, actions: Iterable[Mapping[str, object]]) -> None:
    """Write a commit to a table's Delta log."""
    text = "\n".join(map(json.dumps, actions)) + "\n"
    (log / f"{version:020}.json").write_text(text, encoding="utf-8")


def add_of(file: Path, at_ms: int, statistics: Mapping[str, object]) -> Mapping[str, object]:
    """The Delta log action that adds a file to its table."""
    add = {"path": file.name, "partitionValues": {}, "size": file.stat().st_size}
    add |= {"modificationTime": at_ms, "dataChange": True, "stats": json.dumps(statistics)}
    return {"add": add}


def topic_partition(number: int) -> tuple[str, int]:
    """Topic and partition by number: ten partitions per topic."""
    return f"topic-{number // 10:03}", number % 10


def _map_rows(history: History) -> Iterator[pa.Table]:
    """Every batch wrote a run per partition, and its transaction a marker after it."""
    each = history.runs // history.partitions
    merged = each - each // history.days if history.merged else 0
    bounds = np.append(np.arange(0, merged, MAX_SEGMENTS), np.arange(merged, each + 1))
    dice = np.random.default_rng(0)
    for numbers in np.array_split(np.arange(history.partitions), min(_FILES, history.partitions)):
        yield pa.concat_tables(
            _map_of(number, dice.integers(1, _RUN_RECORDS, each), bounds, history.days)
            for number in numbers.tolist()
        )


def _map_of(number: int, counts: np.ndarray, bounds: np.ndarray, days: int) -> pa.Table:
    """A partition's map of runs of `counts` records; row i has bounds[i] to bounds[i + 1]."""
    first = np.cumsum(counts) - counts
    there = first + np.arange(len(counts))
    segment = [_longs(first), _longs(np.ones(len(counts))), _longs(there), _longs(counts)]
    begin, last, rows = bounds[:-1], bounds[1:] - 1, len(bounds) - 1
    return pa.table(
        {
            **_named(number, rows),
            "source_first": _longs(first[begin]),
            "source_last": _longs((first + counts - 1)[last]),
            "target_topic": pa.repeat(f"east.{topic_partition(number)[0]}", rows),
            "target_partition": pa.array(np.full(rows, topic_partition(number)[1]), pa.int32()),
            "target_first": _longs(there[begin]),
            "target_last": _longs((there + counts - 1)[last]),
            "record_count": _longs(np.add.reduceat(counts, begin)),
            "produced_at": _times(days, len(counts)).take(_longs(last)),
            "batch_id": _longs(last),
            "stage_version": _longs(last),
            "first_batch_id": _longs(begin),
            "generation": pa.array(np.zeros(rows), pa.int32()),
            "segments": pa.ListArray.from_arrays(
                pa.array(bounds, pa.int32()),
                pa.StructArray.from_arrays(segment, fields=list(SEGMENT)),
            ),
        }
    )


def _position_rows(history: History, days: int) -> Iterator[pa.Table]:
    """A sample of every partition each minute, one file per day."""
    for day in range(days):
        minutes = np.repeat(np.arange(1440), history.partitions)
        numbers = np.tile(np.arange(history.partitions), 1440)
        ends = (day * 1440 + minutes) * 100
        rows = len(minutes)
        at = _now() - (days - day) * _DAY_US + minutes * 60_000_000
        names = [topic_partition(number) for number in range(history.partitions)]
        topics = pa.DictionaryArray.from_arrays(
            pa.array(numbers, pa.int32()), pa.array([name for name, _ in names])
        )
        yield pa.table(
            {
                "flow": pa.repeat(FLOW, rows),
                "topic": topics.cast(pa.string()),
                "partition": pa.array(numbers % 10, pa.int32()),
                "sampled_at": pa.array(at, _TIME),
                **{
                    name: _longs(ends)
                    for name in ("source_end", "staged_end", "produced_end", "target_end")
                },
                "source_start": _longs(np.zeros(rows)),
                "lag_records": _longs(np.zeros(rows)),
                "lag_seconds": pa.array(np.zeros(rows), pa.float64()),
            }
        )


def _change_rows(history: History) -> Iterator[pa.Table]:
    """A group's position set every five minutes, and an ACL and a config changed each day."""
    moves = history.days * 288
    kinds = ["group"] * 286 + ["acl", "config"]
    pattern = pa.array(kinds * history.days)
    acl = '["LITERAL", "east.topic-000", "User:u", "*", "READ", "ALLOW"]'
    texts = pa.array([acl if kind == "acl" else "1" for kind in kinds] * history.days)
    yield pa.table(
        {
            "flow": pa.repeat(FLOW, moves),
            "at": _times(history.days, moves),
            "kind": pattern,
            "resource": pa.repeat("group-1 east.topic-000-0", moves),
            "after": texts,
            "outcome": pa.repeat("done", moves),
        }
    )


def _named(number: int, rows: int) -> dict[str, pa.Array]:
    topic, partition = topic_partition(number)
    return {
        "flow": pa.repeat(FLOW, rows),
        "topic": pa.repeat(topic, rows),
        "partition": pa.array(np.full(rows, partition), pa.int32()),
    }


def _times(days: int, count: int) -> pa.Array:
    """`count` moments at equal intervals, the last one now."""
    passed = np.arange(1, count + 1) * (days * _DAY_US / count)
    return pa.array((_now() - days * _DAY_US + passed).astype(np.int64), _TIME)


def _longs(values: np.ndarray) -> pa.Array:
    return pa.array(values.astype(np.int64), pa.int64())


def _now() -> int:
    return int(time.time() * 1_000_000)
