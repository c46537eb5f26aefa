"""A day of small commits in fast motion: few files are left, the log has checkpoints, and the
tables open fast."""

import os
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import NoReturn

import pytest
from deltalake import DeltaTable

from mirrorlake.config.lake import Lake as Location
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.layout import FOLLOWED, log_properties
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.run.upkeep import UpkeepWorker

AT = datetime(2026, 11, 23, tzinfo=timezone.utc)
#: Each is a round of the short way; look_over comes as often as it would at two rounds a second.
ROUNDS, ROUNDS_A_TURN = 250, 10


def _round(tables: PathTables, number: int) -> None:
    key = {
        "source_cluster": "east",
        "topic": "t",
        "partition": 0,
        "generation": 0,
        "batch_id": number,
    }
    records = [
        {**key, "offset": number * 5 + at, "timestamp": AT, "value": b"v" * 50} for at in range(5)
    ]
    tables.append("records", rows_of("records", records), "landing", number)
    run = {
        "flow": "east->west",
        "topic": "t",
        "partition": 0,
        "target_topic": "t",
        "target_partition": 0,
    }
    ends = {"source_first": number * 5, "source_last": number * 5 + 4, "target_first": number * 5}
    mapped = {**run, **ends, "target_last": number * 5 + 4, "record_count": 5, "batch_id": number}
    tables.append("offset_map", rows_of("offset_map", [mapped]), "map", number)
    batch = {"flow": "east->west", "batch_id": number, "topic": "t", "partition": 0}
    tables.append("latency", rows_of("latency", [batch]), "map", number)


def _no_session() -> NoReturn:
    raise AssertionError("upkeep needs no Spark")


def _an_hour_later(lake: Path) -> None:
    """Make all that the logs hold an hour older."""
    for path in lake.glob("*/_delta_log/*"):
        at = path.stat().st_mtime - 3600
        os.utime(path, (at, at))


def test_tables_stay_small_while_rounds_go_on(tmp_path: Path) -> None:
    lake = open_lake(_no_session, Location(path=str(tmp_path)), tmp_path)
    assert isinstance(lake, PathLake)
    tables, upkeep = lake.tables, UpkeepWorker(lake, StageFiles(lake))
    for number in range(ROUNDS):
        _round(tables, number)
        if number % ROUNDS_A_TURN == 0:
            upkeep.look_over()
        if number == ROUNDS // 2:
            _an_hour_later(tmp_path)
    upkeep.delete_replaced(0)
    for table in ("records", "offset_map", "latency"):
        began = time.process_time()
        found = DeltaTable(str(tmp_path / table))
        assert time.process_time() - began < 0.5, "of CPU, whatever else the machine does"
        assert len(found.file_uris()) < 100
        log = tmp_path / table / "_delta_log"
        assert list(log.glob("*.checkpoint.parquet"))
        commits, files = len(list(log.glob("*.json"))), len(list(log.parent.glob("*.parquet")))
        if table in FOLLOWED:
            assert commits > ROUNDS and files >= ROUNDS, "streams of others may need all of it"
        else:
            assert files < 100, "what was replaced is gone"
            assert commits < ROUNDS * 0.7, "what is older than half an hour is gone"
    offsets = (
        DeltaTable(str(tmp_path / "records"))
        .to_pyarrow_table(columns=["offset"])["offset"]
        .to_pylist()
    )
    assert sorted(offsets) == list(range(ROUNDS * 5))


@pytest.mark.parametrize(("table", "earlier"), [("latency", "7 days"), ("records", "30 minutes")])
def test_a_table_of_an_earlier_version_gets_a_log_of_its_length(
    tmp_path: Path, table: str, earlier: str
) -> None:
    tables = PathTables(tmp_path)
    tables.create(
        table, {"delta.logRetentionDuration": f"interval {earlier}", "mirrorlake.id": "x"}
    )
    for _ in range(2):
        PathTables(tmp_path).append(table, rows_of(table, []))
    stored = tables.properties(table)
    assert log_properties(table).items() <= stored.items() and stored["mirrorlake.id"] == "x"
    assert tables.version(table) == 3, "made, changed once, appended to twice"
