"""Python workers of a local session: what they are forked from has imported what they need, and not
from a zip."""

import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.matrix


def test_workers_come_from_a_process_that_is_ready(spark: SparkSession) -> None:
    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gc
        import os
        import sys
        from pathlib import Path

        import pyspark

        runs = vars(sys.modules["pyspark.worker"])
        # Garbage is not looked for among what was there before the fork.
        ready = all(each is not runs for each in gc.get_objects())
        parent = Path(f"/proc/{os.getppid()}/cmdline").read_text(encoding="utf-8").split("\0")
        for _ in batches:
            rows = {"parent": [parent], "pyspark": [pyspark.__file__], "ready": [ready]}
            yield pa.RecordBatch.from_pydict(rows)

    (row,) = (
        spark.range(1, numPartitions=1)
        .mapInArrow(told, "parent array<string>, pyspark string, ready boolean")
        .collect()
    )
    assert row.parent[:3] == [sys.executable, "-m", "mirrorlake.spark.worker_daemon"]
    assert row.ready, "what runs its tasks was imported before the fork, too"
    assert row.pyspark == pyspark.__file__, "the installed one, not that of python/lib/pyspark.zip"


def test_threads_of_workers_share_heaps(spark: SparkSession) -> None:
    """Else memory of workers that go at full rate rises for an hour (docs/not_obvious.md)."""

    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"heaps": [os.environ["MALLOC_ARENA_MAX"]]})

    (row,) = spark.range(1, numPartitions=1).mapInArrow(told, "heaps string").collect()
    assert int(row.heaps) == 2


def test_workers_do_not_list_a_jar_before_each_task(spark: SparkSession) -> None:
    """The JVM names Spark's own among the places to import from; listing it takes 15 ms of CPU a
    task."""

    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"places": [[*sys.path, *sys.path_importer_cache]]})

    (row,) = spark.range(1, numPartitions=1).mapInArrow(told, "places array<string>").collect()
    assert not [place for place in row.places if ".jar" in place]
