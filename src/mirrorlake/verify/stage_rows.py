"""Rows of ranges of the stage, by Spark, for tasks that cannot open its files."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirrorlake.lake.lake import Lake
from mirrorlake.produce.stage_files import CONTENT
from mirrorlake.verify.job import Range

_RANGES = (
    "number int, of_topic string, of_partition int, of_generation int, first bigint, last bigint"
)


def rows_of_ranges(
    lake: Lake, source_cluster: str, ranges: Sequence[Range], tasks: int
) -> DataFrame:
    """The staged records of some ranges, with the `number` of the range: each range's in one task,
    by offset."""
    wanted = lake.spark.createDataFrame(
        [
            (number, range_.topic, range_.partition, range_.generation, range_.first, range_.last)
            for number, range_ in enumerate(ranges)
        ],
        _RANGES,
    )
    inside = (
        (F.col("topic") == F.col("of_topic"))
        & (F.col("partition") == F.col("of_partition"))
        & (F.coalesce(F.col("generation"), F.lit(0)) == F.col("of_generation"))
        & F.col("offset").between(F.col("first"), F.col("last"))
    )
    return (
        lake.table("records")
        .where(F.col("source_cluster") == source_cluster)
        # Literal bounds too: they let Delta skip files by their statistics.
        .where(
            F.col("offset").between(
                min(range_.first for range_ in ranges), max(range_.last for range_ in ranges)
            )
        )
        .where(F.col("topic").isin(sorted({range_.topic for range_ in ranges})))
        .join(F.broadcast(wanted), inside)
        .select("number", "offset", *CONTENT)
        .repartition(tasks, "number")
        .sortWithinPartitions("number", "offset")
    )
