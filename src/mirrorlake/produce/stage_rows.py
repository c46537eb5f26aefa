"""Rows of the stage read by Spark: for files out of order, or that workers cannot open."""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mirrorlake.errors import LakeError
from mirrorlake.lake.lake import Lake
from mirrorlake.produce.counted import Stretch
from mirrorlake.produce.stage_files import CONTENT

#: Takes rows of `records` and returns the wanted ones, with the same columns.
Selection = Callable[[DataFrame], DataFrame]
#: A number for rows, and the offsets whose rows get it.
Numbered = tuple[int, Stretch]
_RANGES = (
    "number int, range_topic string, range_partition int, range_generation int, "
    "range_first bigint, range_last bigint"
)


def generation() -> Column:
    """The generation of a row of `records`; older rows have none, which is the first."""
    return F.coalesce(F.col("generation"), F.lit(0))


def rows_within(
    lake: Lake,
    source_cluster: str,
    stretches: Sequence[Numbered],
    selection: Selection | None = None,
) -> DataFrame:
    """Rows of `records` within some offsets, in the newest version, each with the `number` of its
    stretch; only those of a `selection`, if given. Raises LakeError if `stretches` is empty."""
    if not stretches:
        raise LakeError("no offsets were asked for")
    ranges = lake.spark.createDataFrame(
        [(number, *place, first, last) for number, (place, first, last) in stretches], _RANGES
    )
    topics = {place.topic for _, (place, _, _) in stretches}
    lowest = min(first for _, (_, first, _) in stretches)
    highest = max(last for _, (_, _, last) in stretches)
    # Literal bounds let Delta skip files by their statistics.
    rows = lake.table("records").where(
        (F.col("source_cluster") == source_cluster)
        & F.col("topic").between(min(topics), max(topics))
        & F.col("offset").between(lowest, highest)
    )
    inside = (
        (F.col("topic") == F.col("range_topic"))
        & (F.col("partition") == F.col("range_partition"))
        & (generation() == F.col("range_generation"))
        & F.col("offset").between(F.col("range_first"), F.col("range_last"))
    )
    return (rows if selection is None else selection(rows)).join(F.broadcast(ranges), inside)


def rows_at(rows: DataFrame, places: DataFrame) -> DataFrame:
    """The rows of `records` that stand at places: topic, partition, generation and offset."""
    named = places.toDF(*(f"at_{name}" for name in places.columns))
    same = [F.col(name) == F.col(f"at_{name}") for name in ("topic", "partition", "offset")]
    return rows.join(named, [*same, generation() == F.col("at_generation")], "left_semi")


def without_noted(lake: Lake, source_cluster: str, rows: DataFrame) -> DataFrame:
    """A cluster's rows of `records`, without those that `forget` has noted and not deleted yet."""
    noted = lake.table("forgotten").where(
        (F.col("source_cluster") == source_cluster) & F.col("deleted_at").isNull()
    )
    columns = ("topic", "partition", "generation", "first_offset", "last_offset")
    named = noted.select(*(F.col(name).alias(f"noted_{name}") for name in columns))
    same = [F.col(name) == F.col(f"noted_{name}") for name in ("topic", "partition")]
    within = F.col("offset").between(F.col("noted_first_offset"), F.col("noted_last_offset"))
    conditions = [*same, generation() == F.col("noted_generation"), within]
    return rows.join(F.broadcast(named), conditions, "left_anti")


def counts(lake: Lake, source_cluster: str, stretches: Sequence[Stretch]) -> list[int]:
    """How many rows `records` has within each of some stretches, in their order."""
    rows = rows_within(lake, source_cluster, list(enumerate(stretches)))
    by_number = {row["number"]: row["count"] for row in rows.groupBy("number").count().collect()}
    return [by_number.get(number, 0) for number in range(len(stretches))]


def sorted_rows(
    lake: Lake,
    source_cluster: str,
    stretches: Sequence[Numbered],
    tasks: int,
    selection: Selection | None = None,
) -> DataFrame:
    """The rows of `rows_within`, those of a number in one task, by topic, partition and offset.
    This is the plan with a payload shuffle."""
    return (
        rows_within(lake, source_cluster, stretches, selection)
        .select(
            "number", "topic", "partition", generation().alias("generation"), "offset", *CONTENT
        )
        .repartition(tasks, "number")
        .sortWithinPartitions("number", "topic", "partition", "offset")
    )
