"""The records that compaction would leave of ranges of the stage: each key's last value, by Spark.

They depend only on the ranges, so every query gives the same ones. Since finding them takes a pass
over all keys, and batches are many, each process writes their coordinates down once.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirrorlake.lake.lake import Lake
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.produce.stage_rows import generation, rows_at, rows_within, without_noted

_PLACE = ("topic", "partition", "generation", "offset")


class Compaction:
    """The records that are left of some ranges of one source cluster. A key whose last value is
    null (a tombstone) leaves none; all records without a key are left."""

    def __init__(self, lake: Lake, ranges: Sequence[StagedRange], folder: Path) -> None:
        """`folder` is where the coordinates are written: one that the session's workers reach."""
        self._lake, self._ranges, self._folder = lake, ranges, folder

    def counts(self) -> dict[PartitionGeneration, int]:
        """How many records are left of each generation of a partition."""
        rows = self._left().groupBy("topic", "partition", "generation").count().collect()
        return {
            PartitionGeneration(row["topic"], row["partition"], row["generation"]): row["count"]
            for row in rows
        }

    def write(self) -> None:
        """Write the coordinates of the left records, for `select`."""
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        self._left().write.mode("overwrite").parquet(str(self._folder))

    def select(self, rows: DataFrame) -> DataFrame:
        """The left ones of some rows of `records`."""
        return rows_at(rows, self._lake.spark.read.parquet(str(self._folder)))

    def forget(self) -> None:
        """Delete the written coordinates."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _left(self) -> DataFrame:
        """The coordinates of the left records."""
        stretches = [(0, (one.place, one.first, one.last)) for one in self._ranges]
        cluster = self._ranges[0].source_cluster
        staged = rows_within(self._lake, cluster, stretches)
        rows = without_noted(self._lake, cluster, staged).select(
            "topic",
            "partition",
            generation().alias("generation"),
            "offset",
            "key",
            F.isnull("value").alias("dead"),
        )
        last = (
            rows.where(F.col("key").isNotNull())
            .groupBy("topic", "partition", "key")
            .agg(F.max(F.struct("generation", "offset", "dead")).alias("last"))
            .where(~F.col("last.dead"))
            .select("topic", "partition", "last.generation", "last.offset")
        )
        return last.unionByName(rows.where(F.col("key").isNull()).select(*_PLACE))
