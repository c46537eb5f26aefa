"""Jobs of landing, what they read, and the lake that they land in."""

import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa

from mirrorlake.lake.definitions import definition
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.place import place_of
from mirrorlake.landing.job import LandJob
from mirrorlake.landing.ranges import offsets_document
from mirrorlake.native.columns import SCHEMA
from mirrorlake.offsets.positions import TopicAndPartition
from tests.support.lake_rows import no_session


def job_in(folder: Path, **given: object) -> LandJob:
    common = {
        **{"alias": "east", "client": {"sasl.password": "hunter2"}, "starts": {}},
        **{"generations": {}, "schema": definition("records").rows, "directory": None},
        **{"pace_file": str(folder / "land" / "east-pace.json"), "max_records": 100, "tasks": 2},
    }
    return LandJob(**{**common, **given})  # type: ignore[arg-type]


def lake_in(folder: Path) -> PathLake:
    lake = PathLake(no_session, place_of(folder / "lake"), folder / "checkpoints")
    lake.create("records", {})
    return lake


def write_offsets(checkpoint: Path, batch: int, ends: dict[TopicAndPartition, int]) -> None:
    """As Spark writes them before it begins a batch."""
    file = checkpoint / "offsets" / str(batch)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"v1\n{{}}\n{json.dumps(offsets_document(ends))}", encoding="utf-8")


def rows(partition: int, offsets: list[int], size: int = 3) -> pa.RecordBatch:
    count = len(offsets)
    return pa.RecordBatch.from_pydict(
        {
            "partition": [partition] * count,
            "offset": offsets,
            "timestamp": pa.array([1_234] * count, SCHEMA.field("timestamp").type),
            "timestamp_type": [0] * count,
            "key": [None, b""] * (count // 2) + [b"k"] * (count % 2),
            "value": [bytes(size)] * count,
            "headers": [
                None if offset % 2 else [{"key": "h", "value": None}] for offset in offsets
            ],
        },
        schema=SCHEMA,
    )


class StoppedClock(SimpleNamespace):
    """Seconds, as a test says."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def time_ns(self) -> int:
        return 1
