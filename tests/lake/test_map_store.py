"""Who takes over a flow's map gets nothing more from who had it before."""

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from mirrorlake.lake.map_store import LakeMap
from tests.support.lake_rows import now_of
from tests.support.sample_lake import empty_lake


def a_run(first: int) -> pa.Table:
    place = {"flow": "a->b", "topic": "t", "partition": 0, "target_topic": "t", "target_partition": 0}
    ends = {"source_first": first, "source_last": first, "target_first": first, "target_last": first}
    row = {**place, **ends, "record_count": 1, "batch_id": first, "generation": 0, "target_generation": 0}
    kinds = {"partition": pa.int32(), "target_partition": pa.int32(), "generation": pa.int32()}
    kinds["target_generation"] = pa.int32()
    return pa.table({name: pa.array([value], kinds.get(name)) for name, value in row.items()})


def test_an_append_of_an_older_process_is_not_taken_after_a_takeover(spark: SparkSession, tmp_path: Path) -> None:
    lake = empty_lake(spark, tmp_path)
    older, newer = LakeMap(lake, "a->b"), LakeMap(lake, "a->b")
    older.append_map(a_run(1), 1)
    newer.take_over(5)
    older.append_map(a_run(2), 2)
    newer.append_map(a_run(6), 6)
    ends, newest = newer.ends()
    rows = now_of(lake).rows("SELECT batch_id, source_first FROM offset_map ORDER BY batch_id")
    assert [tuple(row.values()) for row in rows] == [(1, 1), (6, 6)]
    assert (ends[0].source_position, newest) == (7, 6)
