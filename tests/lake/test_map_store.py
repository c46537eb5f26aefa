"""Who takes over a flow's map gets nothing more from who had it before, and that one hears of it,
whatever clocks say; in a folder, and in a catalog, where Delta itself skips a fenced append and
says nothing."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from mirrorlake.config.lake import Lake as Location
from mirrorlake.errors import Fenced
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.path_lake import PathLake
from tests.support.lake_rows import now_of
from tests.support.laws import BY_SPARK
from tests.support.replication import answered_by_spark_alone
from tests.support.sample_lake import empty_lake

SLOW = pytest.mark.slow


@pytest.fixture(
    params=["folder", *(pytest.param(way, marks=SLOW) for way in ("catalog", BY_SPARK))]
)
def lake(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Lake]:
    if request.param == "folder":
        yield empty_lake(spark, tmp_path)
        return
    if request.param == BY_SPARK:
        answered_by_spark_alone(monkeypatch)
    place = Location(
        catalog="spark_catalog", schema="fences", checkpoints=str(tmp_path / "checkpoints")
    )
    yield open_lake(spark, place, tmp_path)
    spark.sql("DROP SCHEMA spark_catalog.fences CASCADE")
    shutil.rmtree(tmp_path / "checkpoints", ignore_errors=True)


def a_run(first: int, batch: int | None = None) -> pa.Table:
    place = {
        "flow": "a->b",
        "topic": "t",
        "partition": 0,
        "target_topic": "t",
        "target_partition": 0,
    }
    ends = {
        "source_first": first,
        "source_last": first,
        "target_first": first,
        "target_last": first,
    }
    row = {
        **place,
        **ends,
        "record_count": 1,
        "batch_id": batch or first,
        "generation": 0,
        "target_generation": 0,
    }
    kinds = {"partition": pa.int32(), "target_partition": pa.int32(), "generation": pa.int32()}
    kinds["target_generation"] = pa.int32()
    return pa.table({name: pa.array([value], kinds.get(name)) for name, value in row.items()})


def mapped(lake: Lake) -> list[int]:
    return [
        row["source_first"]
        for row in now_of(lake).rows("SELECT source_first FROM offset_map ORDER BY source_first")
    ]


def test_an_append_of_an_older_process_is_not_taken_after_a_takeover(lake: Lake) -> None:
    older, newer = LakeMap(lake, "a->b"), LakeMap(lake, "a->b")
    before = older.take_over(5)
    older.append_map(a_run(1), before + 1)
    # the answer was lost, say: it is there once, and nobody complains
    older.append_map(a_run(1), before + 1)
    older.check_owner()
    after = newer.take_over(5)
    with pytest.raises(Fenced, match="another process has taken over"):
        older.append_map(a_run(2), before + 2)
    with pytest.raises(Fenced):
        older.append_latency(
            pa.table({"flow": ["a->b"], "topic": ["t"], "batch_id": [2]}), before + 2
        )
    with pytest.raises(Fenced):
        older.check_owner()
    newer.append_map(a_run(6, after + 1), after + 1)
    newer.check_owner()
    assert mapped(lake) == [1, 6]
    ends, newest = newer.ends()
    assert (ends[0].source_position, newest) == (7, after + 1)


def test_numbers_rise_from_what_the_table_knows_wherever_the_clock_is(lake: Lake) -> None:
    now = int(time.time() * 1000)
    ahead = LakeMap(lake, "a->b").take_over(now + 3_600_000)
    store = LakeMap(lake, "a->b")
    number = store.take_over(now)
    assert number > ahead
    store.append_map(a_run(1), number + 1)
    assert mapped(lake) == [1]
    assert LakeMap(lake, "a->b").take_over(0) > number + 1


def test_a_lake_that_an_earlier_version_fenced_in_the_future(lake: Lake) -> None:
    """In a catalog that Spark answers about its commits do not say how far it came."""
    application = f"mirrorlake/{lake.lake_id}/a->b/map"
    now = int(time.time() * 1000)
    if isinstance(lake, PathLake):
        lake.tables.fence("offset_map", application, now + 7_200_000)
    else:
        nothing = lake.table("offset_map").limit(0).write.format("delta").mode("append")
        nothing = nothing.option("txnAppId", application).option("txnVersion", str(now + 7_200_000))
        nothing.saveAsTable(lake.name("offset_map"))
    store = LakeMap(lake, "a->b")
    number = store.take_over(now)
    store.append_map(a_run(1), number + 1)
    assert number > now + 7_200_000 and mapped(lake) == [1]


@pytest.mark.parametrize("lake", [pytest.param("catalog", marks=SLOW)], indirect=True)
def test_an_append_is_two_jobs_of_spark(spark: SparkSession, lake: Lake) -> None:
    """One asks how far the application is, the other one writes."""
    store, batches = LakeMap(lake, "a->b"), 5
    first = store.take_over(1) + 1
    store.append_map(a_run(1, first), first)
    spark.sparkContext.setJobGroup("appends", "of a test")
    try:
        for number in range(1, batches + 1):
            store.append_map(a_run(number + 1, first + number), first + number)
    finally:
        spark.sparkContext.setJobGroup("others", "of a test")
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("appends")
    assert len(jobs) <= 2 * batches
    assert mapped(lake) == list(range(1, batches + 2))
