"""delta-rs and Spark write and read the same tables in turn."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mirrorlake.config.lake import Lake as Location
from mirrorlake.errors import Fenced
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.owners import OWNER_NUMBERS
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.place import FolderPlace


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return open_lake(spark, Location(path=str(tmp_path / "lake")), tmp_path)


def _rows(*batches: int) -> pa.Table:
    return rows_of(
        "latency",
        [{"flow": "a->b", "batch_id": number, "topic": "t", "partition": 0} for number in batches],
    )


def _batches(lake: Lake) -> list[int]:
    return [
        row["batch_id"]
        for row in lake.sql("SELECT batch_id FROM latency ORDER BY batch_id").collect()
    ]


def _tables(lake: Lake) -> PathTables:
    assert isinstance(lake, PathLake)
    return lake.tables


def _by_spark(lake: Lake, rows: pa.Table, application: str, version: int) -> None:
    writer = lake.spark.createDataFrame(rows).write.format("delta").mode("append")
    writer.option("txnAppId", application).option("txnVersion", str(version)).saveAsTable(
        lake.name("latency")
    )


def test_an_application_appends_once_whoever_writes(lake: Lake) -> None:
    tables = _tables(lake)
    tables.append("latency", _rows(1), "app", 1)
    tables.append("latency", _rows(1), "app", 1)
    _by_spark(lake, _rows(1), "app", 1)
    _by_spark(lake, _rows(2), "app", 2)
    tables.append("latency", _rows(2), "app", 2)
    tables.append("latency", _rows(3), "app", 3)
    assert _batches(lake) == [1, 2, 3]


def test_who_comes_second_with_the_same_version_writes_nothing(lake: Lake) -> None:
    """Two processes that both saw that the batch is not there."""
    one, two = (PathTables(lake.directory or Path()) for _ in range(2))
    for tables in (one, two):
        assert tables.version("latency") == 0
    threads = [
        threading.Thread(target=tables.append, args=("latency", _rows(7), "app", 7))
        for tables in (one, two)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _batches(lake) == [7]


def test_a_fence_stops_an_append_of_either(lake: Lake) -> None:
    lake.fence("latency", "app", 5)
    with pytest.raises(Fenced):
        _tables(lake).append("latency", _rows(4), "app", 4)
    _by_spark(lake, _rows(4), "app", 4)
    assert _batches(lake) == []
    lake.append("latency", _rows(6), "app", 6)
    assert _batches(lake) == [6]


def test_of_two_that_take_over_at_once_each_has_a_number_of_its_own(lake: Lake) -> None:
    one, two = (PathTables(lake.directory or Path()) for _ in range(2))
    assert one.version("latency") == two.version("latency")
    with ThreadPoolExecutor(2) as threads:
        numbers = list(
            threads.map(lambda tables: tables.take_over("latency", "app", 7), (one, two))
        )
    assert sorted(numbers) == [7, 7 + OWNER_NUMBERS]
    with pytest.raises(Fenced):
        _tables(lake).append("latency", _rows(1), "app", 8)


@pytest.mark.slow
def test_spark_optimizes_and_vacuums_between_appends_and_back(lake: Lake) -> None:
    tables = _tables(lake)
    for number in range(5):
        tables.append("latency", _rows(number))
    lake.sql("OPTIMIZE latency").collect()
    tables.append("latency", _rows(5))
    with_retention = "spark.databricks.delta.retentionDurationCheck.enabled"
    lake.spark.conf.set(with_retention, "false")
    lake.sql("VACUUM latency RETAIN 0 HOURS").collect()
    lake.spark.conf.unset(with_retention)
    tables.append("latency", _rows(6))
    tables.compact("latency")
    _by_spark(lake, _rows(7), "app", 1)
    tables.append("latency", _rows(8))
    assert _batches(lake) == list(range(9))
    assert len(lake.table("latency").inputFiles()) == 3


def test_compaction_leaves_one_file_and_a_checkpoint(lake: Lake) -> None:
    tables = _tables(lake)
    for number in range(120):
        tables.append("latency", _rows(number))
    assert tables.due() == ["latency"]
    replaced = tables.compact("latency")
    tables.write_log_checkpoint("latency")
    assert tables.due() == [] and len(replaced) == 120 and all(path.exists() for path in replaced)
    (file,) = lake.table("latency").inputFiles()
    assert pq.read_table(file.removeprefix("file://"))["batch_id"].to_pylist() == list(
        range(119, -1, -1)
    )
    log = Path(lake.directory or ".") / "latency" / "_delta_log"
    assert list(log.glob("*.checkpoint.parquet"))


def test_columns_that_rows_lack_are_null_and_those_that_the_table_lacks_are_added(
    lake: Lake, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    lake.spark.sql(
        f"CREATE TABLE delta.`{old}/changes` (flow STRING, at TIMESTAMP NOT NULL, kind STRING) "
        "USING DELTA"
    )
    tables = PathTables(old)
    rows = rows_of(
        "changes", [{"flow": "a->b", "at": None, "kind": "topic", "policy": "p"}]
    ).drop_columns(["before"])
    at = (
        pa.array(["2026-11-23 12:00:00"])
        .cast(pa.timestamp("us"))
        .cast(pa.timestamp("us", tz="UTC"))
    )
    tables.append("changes", rows.set_column(rows.column_names.index("at"), "at", at))
    (row,) = lake.spark.read.format("delta").load(f"{old}/changes").collect()
    assert (row["flow"], row["policy"], row["before"]) == ("a->b", "p", None)


@pytest.mark.parametrize("is_late", [False, True], ids=["in time", "into the past"])
def test_a_late_answer_to_an_append_that_others_have_joined_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """Its file is no longer one of the table, and its rows are. Committed once more, they would be
    there twice, until the file of the second commit is deleted as one that was joined. A commit
    that comes into the past, where the log was cleaned up, is made again."""
    tables, other = PathTables(tmp_path), PathTables(tmp_path)
    tables.create("latency")
    for number in range(3):
        tables.append("latency", _rows(number))
    create = FolderPlace.create

    def upkeep() -> None:
        other.append("latency", _rows(8))
        other.compact("latency")
        other.write_log_checkpoint("latency")

    def late(place: FolderPlace, content: bytes) -> None:
        monkeypatch.setattr(FolderPlace, "create", create)
        if is_late:
            upkeep()
            place.delete()
        create(place, content)
        if not is_late:
            upkeep()

    monkeypatch.setattr(FolderPlace, "create", late)
    tables.append("latency", _rows(7))
    rows = PathTables(tmp_path).opened("latency").to_pyarrow_table()
    assert sorted(rows["batch_id"].to_pylist()) == [0, 1, 2, 7, 8]
