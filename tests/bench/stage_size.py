"""The cost of a large stage's index for the driver: memory, time to build it, to plan a batch.

The stage is generated: files of several partitions each, without payload, which the index never
reads. Each measurement runs in its own process (`python -m tests.bench.stage_size DIRECTORY`), so
that memory is the index's.
"""

import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from mirrorlake.lake.lake import Lake
from mirrorlake.lake.place import place_of
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.offsets.progress import Floor
from mirrorlake.produce.batch import plan_batch
from tests.bench.made_up import add_of, topic_partition, write_commit

FILES, PARTITIONS = 100_000, 1_000
#: Partitions in a file, and records of each.
_HELD, _RECORDS = 10, 20
_BATCHES = 30
_PART = 1_000
_SCHEMA = pa.schema(
    [("source_cluster", pa.string()), ("topic", pa.string()), ("partition", pa.int32())]
    + [("offset", pa.int64()), ("generation", pa.int32())]
)
_TYPES = {pa.string(): "string", pa.int32(): "integer", pa.int64(): "long"}


def measure_stage(directory: Path) -> dict[str, Any]:
    """Make a stage and measure its index: {"files", "partitions", "cold": {...}, "restart": {...}},
    each with `build_seconds`, `build_cpu_seconds`, `mib`, `peak_mib`, `plan_ms`, `plan_cpu_ms`
    (medians) and `plan_max_ms` of a batch from a new commit."""
    directory.mkdir(parents=True)
    make_stage(directory / "records", FILES)
    document: dict[str, Any] = {"files": FILES, "partitions": PARTITIONS}
    for name in ("cold", "restart"):  # the first leaves a copy of the index behind
        command = [sys.executable, "-m", "tests.bench.stage_size", str(directory)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        document[name] = json.loads(done.stdout)
    return document


def make_stage(table: Path, files: int) -> None:
    """Make a table with so many files, and its log with one checkpoint."""
    log = table / "_delta_log"
    log.mkdir(parents=True)
    fields = [
        {"name": one.name, "type": _TYPES[one.type], "nullable": True, "metadata": {}}
        for one in _SCHEMA
    ]
    made: list[Mapping[str, object]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "stage",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 0,
            }
        },
    ]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        made += pool.map(partial(make_file, table), range(files), chunksize=_PART)
    write_commit(log, 0, made)
    DeltaTable(str(table)).create_checkpoint()


def make_file(table: Path, number: int) -> Mapping[str, object]:
    """Write the stage's next file, in which partitions take turns; return its add action."""
    turn, first = divmod(number * _HELD, PARTITIONS)
    topic_partitions = [topic_partition(first + at) for at in range(_HELD)]
    offsets = range(turn * _RECORDS, (turn + 1) * _RECORDS)
    columns: list[list[Any]] = [
        ["east"] * _HELD * _RECORDS,
        [topic for topic, _ in topic_partitions for _ in offsets],
        [partition for _, partition in topic_partitions for _ in offsets],
        [offset for _ in topic_partitions for offset in offsets],
        [0] * _HELD * _RECORDS,
    ]
    rows = pa.Table.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)],
        schema=_SCHEMA,
    )
    path = table / f"part-{number:08}.snappy.parquet"
    pq.write_table(rows, path)
    sorted_columns: list[list[Any]] = [sorted(column) for column in columns]
    low, high = (
        {name: one[at] for name, one in zip(_SCHEMA.names, sorted_columns, strict=True)}
        for at in (0, -1)
    )
    stats = {"numRecords": rows.num_rows, "minValues": low, "maxValues": high}
    return add_of(path, 1_700_000_000_000 + number, {**stats, "nullCount": dict.fromkeys(low, 0)})


def _measure(directory: Path) -> dict[str, float]:
    """Build the index, then plan batches of new commits; run in its own process."""
    # imported by delta-rs on first use: not the index's memory
    importlib.import_module("pyarrow.dataset")
    before, began, used = _mib(), time.perf_counter(), time.process_time()
    place = place_of(directory)
    lake = SimpleNamespace(directory=place, checkpoints=directory, held=lambda _table: None)
    stage = StageFiles(cast(Lake, lake))
    with stage.reading() as index:
        built, taken = time.perf_counter() - began, time.process_time() - used
        mib, version, files = _mib(), index.version, len(index.paths())
        peak = _peak_mib()
    plans, cpu = [], []
    for number in range(_BATCHES):
        floors = {
            key: Floor(end, end, generation)
            for key, (generation, end) in stage.ends("east").items()
        }
        add = make_file(directory / "records", files + number)
        write_commit(directory / "records" / "_delta_log", version + 1 + number, [add])
        began, used = time.perf_counter(), time.process_time()
        with stage.reading() as index:
            plan = plan_batch(
                index, "east", floors, lambda topic: topic, produce_tasks=8, max_records=2_000_000
            )
        plans.append((time.perf_counter() - began) * 1000)
        cpu.append((time.process_time() - used) * 1000)
        if plan.record_count != _HELD * _RECORDS:
            raise RuntimeError(f"the plan has {plan.record_count} records")
    return {
        "build_seconds": round(built, 2),
        "build_cpu_seconds": round(taken, 2),
        "mib": round(mib - before, 1),
        "peak_mib": round(peak - before, 1),
        "plan_ms": round(statistics.median(plans), 1),
        "plan_cpu_ms": round(statistics.median(cpu), 1),
        "plan_max_ms": round(max(plans), 1),
    }


def _mib() -> float:
    """Resident memory of this process."""
    return psutil.Process().memory_info().rss / 2**20


def _peak_mib() -> float:
    """The peak resident memory. psutil lacks it, and getrusage starts from the parent's."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measure(Path(sys.argv[1]))))
