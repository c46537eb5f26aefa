"""Small files of the stage become one while others write, and who follows the stage sees the
same."""

import os
from datetime import datetime, timezone
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mirrorlake.config.lake import Lake as Location
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.delta_log import DeltaLog
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.place import place_of
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.young_files import YOUNG, Limits, YoungFiles
from mirrorlake.produce.batch import plan_batch
from tests.support.lake_rows import no_session, now_of

AT = datetime(2026, 11, 23, tzinfo=timezone.utc)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(no_session, Location(path=str(tmp_path / "lake")), tmp_path)


def _land(tables: PathTables, batch: int, headers: bool = False, value: bytes = b"v" * 10) -> None:
    rows = [
        {
            "source_cluster": "east",
            "topic": topic,
            "partition": partition,
            "offset": batch * 2 + at,
            "timestamp": AT,
            "timestamp_type": 0,
            "key": None,
            "value": value + f"{topic}-{partition}-{at}".encode(),
            "headers": [{"key": "a", "value": None}] if headers else None,
            "landed_at": AT,
            "batch_id": batch,
            "generation": 0,
        }
        for topic in ("orders", "payments")
        for partition in (0, 1)
        for at in (0, 1)
    ]
    tables.append("records", rows_of("records", rows), "landing", batch)


def _tables(lake: Lake) -> tuple[PathTables, Path]:
    assert isinstance(lake, PathLake)
    return lake.tables, lake.root


def test_order_within_partitions_statistics_and_the_index(lake: Lake) -> None:
    tables, directory = _tables(lake)
    stage, young = StageFiles(lake), YoungFiles(directory, StageFiles(lake))
    for batch in range(30):
        _land(tables, batch, headers=batch % 2 == 0)
        if batch == 9:
            assert stage.ends("east")["orders", 0] == (0, 20)  # the index follows from here on
    ordered = "SELECT * FROM records ORDER BY topic, partition, offset"
    before = now_of(lake).rows(ordered)
    assert young.compact(least=31) == []
    assert len(young.compact(least=10)) == 30
    assert now_of(lake).rows(ordered) == before
    (path,) = DeltaLog(place_of(directory / "records")).snapshot()[1]["path"].to_pylist()
    rows = pq.read_table(
        directory / "records" / path, columns=["topic", "partition", "offset"]
    ).to_pylist()
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == sorted(
        (row["topic"], row["partition"], row["offset"]) for row in rows
    )
    _land(tables, 30)
    for followed in (stage, StageFiles(lake)):  # kept up, and built anew
        with followed.reading() as index:
            assert len(index.paths()) == 2
        assert followed.ends("east")["payments", 1] == (0, 62)
    # Statistics: a file that cannot hold the offsets is not read.
    assert now_of(lake).rows("SELECT count(*) AS n FROM records WHERE offset >= 60") == [{"n": 8}]


def test_few_bytes_in_files_that_are_many_in_memory(lake: Lake) -> None:
    """Records of logs compress to a thirtieth: what is put in order at once is told by the rows,
    not by the files."""
    tables, directory = _tables(lake)
    limits = Limits(YOUNG.small_file, 1_000_000, 800_000)
    young = YoungFiles(directory, StageFiles(lake), limits)
    for batch in range(9):
        _land(
            tables, batch, value=f"{batch:02}".encode() * (200_000 if batch in (0, 1) else 10_000)
        )
    sizes = DeltaLog(place_of(directory / "records")).snapshot()[1]["size_bytes"].to_pylist()
    assert max(sizes) < 8 * 400_000 // 15, "a batch of 8 records of 400 kB"
    before = now_of(lake).rows("SELECT * FROM records ORDER BY topic, partition, offset")
    assert [len(young.compact()) for _ in range(3)] == [4, 3, 0]
    assert now_of(lake).rows("SELECT * FROM records ORDER BY topic, partition, offset") == before


def test_a_burst_between_quiet_times(lake: Lake) -> None:
    """What is behind a large file does not become one with what is before it: offsets would have to
    be sorted."""
    tables, directory = _tables(lake)
    limits, stage = Limits(20_000, YOUNG.small_rows, YOUNG.at_once), StageFiles(lake)
    young = YoungFiles(directory, StageFiles(lake), limits)
    for batch in range(9):
        _land(tables, batch, value=os.urandom(20_000) if batch == 4 else b"v")
    assert [len(young.compact()) for _ in range(3)] == [4, 4, 0]
    with stage.reading() as index:
        plan = plan_batch(
            index, "east", {}, lambda topic: topic, produce_tasks=2, max_records=1_000
        )
    assert plan.ordered and plan.record_count == 9 * 8 and len(plan.files) == 3


def test_commits_that_come_meanwhile(lake: Lake) -> None:
    tables, directory = _tables(lake)
    for batch in range(5):
        _land(tables, batch)
    young, other = YoungFiles(directory, StageFiles(lake)), YoungFiles(directory, StageFiles(lake))
    log = DeltaLog(place_of(directory / "records"))
    table, (_, files) = log.opened(), log.snapshot()
    paths, sizes = files["path"].to_pylist(), files["size_bytes"].to_pylist()
    _land(tables, 5)  # an append beside it
    assert young._replace(table, paths, sizes)
    assert not other._replace(table, paths, sizes), "its files are gone"
    assert now_of(lake).rows("SELECT count(*) AS n FROM records") == [{"n": 6 * 8}]
    now = DeltaLog(place_of(directory / "records")).snapshot()[1]["path"].to_pylist()
    assert len(now) == 2
    known = {*now, *paths}
    assert {path.name for path in (directory / "records").glob("*.parquet")} == known, (
        "nothing is left behind"
    )


@pytest.mark.wide("test_order_within_partitions_statistics_and_the_index")
def test_spark_optimizes_after_it_and_readers_of_changes_see_nothing_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = open_lake(spark, Location(path=str(tmp_path / "lake")), tmp_path)
    tables, directory = _tables(lake)
    young = YoungFiles(directory, StageFiles(lake))
    for batch in range(5):
        _land(tables, batch)
    replaced = young.compact(least=2)
    assert len(replaced) == 5
    changed = (
        lake.spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", 1)
    )
    assert changed.table(lake.name("records")).count() == 5 * 8, (
        "a reader of changes sees each record once"
    )
    for path in replaced:
        path.unlink()
    assert len(list((directory / "records").glob("*.parquet"))) == 1
    _land(tables, 5)
    lake.sql("OPTIMIZE records").collect()
    assert young.compact() == []
    assert lake.table("records").count() == 6 * 8
