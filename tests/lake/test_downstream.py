"""A stream of others over `records`, as docs/downstream.md has it: it rests while a day of commits
goes by, and goes on."""

import json
import os
import re
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from mirrorlake.config.lake import Lake as Location
from mirrorlake.lake import path_tables
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.delta_log import DeltaLog
from mirrorlake.lake.old_commits import shorten
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.run.upkeep import UpkeepWorker

PAGE = Path(__file__).parents[2] / "docs" / "downstream.md"
AT = datetime(2026, 11, 23, tzinfo=timezone.utc)
DAY_MS = timedelta(days=1) // timedelta(milliseconds=1)
#: The class of the error that the page names.
RESTED_TOO_LONG = "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
Start = Callable[[SparkSession, str, str], StreamingQuery]


@pytest.fixture
def start_silver() -> Start:
    """What the page shows."""
    (code,) = re.findall(r"^```python\n(.+?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Start] = {}
    exec(code, names)
    return names["start_silver"]


@pytest.fixture
def lake(tmp_path: Path) -> PathLake:
    def no_session() -> SparkSession:
        raise AssertionError("writing a lake in a folder takes no Spark")

    lake = open_lake(no_session, Location(path=str(tmp_path / "lake")), tmp_path)
    assert isinstance(lake, PathLake)
    return lake


@pytest.fixture
def upkeep(lake: PathLake, monkeypatch: pytest.MonkeyPatch) -> UpkeepWorker:
    monkeypatch.setattr(path_tables, "COMPACT_AFTER", 20)  # as often as 80 of them at full speed
    return UpkeepWorker(lake, StageFiles(lake))


def land(lake: PathLake, numbers: range, upkeep: UpkeepWorker) -> None:
    """One commit an order, and the upkeep of a run beside them."""
    for number in numbers:
        row = {
            "source_cluster": "east",
            "topic": "orders",
            "partition": 0,
            "offset": number,
            "timestamp": AT,
            "value": json.dumps({"customer": "ann", "amount": number / 2}).encode(),
            "batch_id": number,
            "generation": 0,
        }
        lake.tables.append("records", rows_of("records", [row]), "landing", number)
        if number % 10 == 9:
            upkeep.look_over()


def older(lake: PathLake, days: int) -> None:
    """Make all that the log of `records` holds, and its files, so many days older."""
    log = lake.tables.place / "records" / "_delta_log"
    for name in log.names():
        if name.endswith(".json"):
            text = (log / name).read().decode()
            aged = re.sub(
                r'"timestamp":\s*(\d+)',
                lambda at: f'"timestamp": {int(at[1]) - days * DAY_MS}',
                text,
            )
            (log / name).write(aged.encode())
    for path in Path(str(lake.tables.place)).glob("records/**/*"):
        at = path.stat().st_mtime - days * 86_400
        os.utime(path, (at, at))


def in_silver(spark: SparkSession, start: Start, lake: PathLake, silver: Path) -> list[int]:
    """Run the stream over all that is there, and say which orders are in silver then."""
    start(spark, str(lake.tables.place), str(silver)).awaitTermination()
    rows = spark.read.format("delta").load(str(silver)).select("offset", "amount").collect()
    assert all(row["amount"] == row["offset"] / 2 for row in rows)
    return sorted(row["offset"] for row in rows)


@pytest.mark.slow
def test_a_stream_that_rested_goes_on(
    spark: SparkSession,
    start_silver: Start,
    lake: PathLake,
    upkeep: UpkeepWorker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(path_tables, "_HOUR", 0.0)
    silver = tmp_path / "silver"
    land(lake, range(35), upkeep)
    assert in_silver(spark, start_silver, lake, silver) == list(range(35))
    land(lake, range(35, 100), upkeep)
    older(lake, days=1)
    land(lake, range(100, 130), upkeep)
    upkeep.delete_replaced(0)
    lake.upkeep("records").vacuum(168)
    assert in_silver(spark, start_silver, lake, silver) == list(range(130)), "each once"
    older(lake, days=8)
    land(lake, range(130, 160), upkeep)
    older(lake, days=8)
    land(lake, range(160, 190), upkeep)
    with pytest.raises(StreamingQueryException, match=RESTED_TOO_LONG):
        in_silver(spark, start_silver, lake, silver)
    fresh = in_silver(spark, start_silver, lake, tmp_path / "anew")
    assert fresh == list(range(190)), "the table itself has them all"


@pytest.mark.wide(
    "lake/test_upkeep.py::test_a_table_of_an_earlier_version_gets_a_log_of_its_length"
)
def test_of_a_busy_table_the_newest_commits_alone_are_kept(
    spark: SparkSession, start_silver: Start, lake: PathLake, upkeep: UpkeepWorker, tmp_path: Path
) -> None:
    """A stream that stands within them goes on, and one that stands before them hears what to
    do."""
    silver = tmp_path / "silver"
    land(lake, range(40), upkeep)
    assert in_silver(spark, start_silver, lake, silver) == list(range(40))
    log, now = DeltaLog(lake.tables.place / "records"), time.time_ns() // 1_000_000
    land(lake, range(40, 80), upkeep)
    assert shorten(log, now, most=60) > 0
    assert in_silver(spark, start_silver, lake, silver) == list(range(80))
    land(lake, range(80, 200), upkeep)
    assert shorten(log, now, most=60) > 0
    with pytest.raises(StreamingQueryException, match=RESTED_TOO_LONG):
        in_silver(spark, start_silver, lake, silver)
    assert RESTED_TOO_LONG in PAGE.read_text()
