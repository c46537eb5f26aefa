"""Rows of the stage in order, by Spark, where files do not hold them so or cannot be opened."""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mirrorlake.errors import LakeError
from mirrorlake.lake.lake import Lake
from mirrorlake.produce.batch import PartitionPlan, shard_of
from mirrorlake.produce.counted import Stretch
from mirrorlake.produce.stage_files import CONTENT

#: Takes rows of `records` and gives those of them that are wanted, with the same columns.
Selection = Callable[[DataFrame], DataFrame]


def generation() -> Column:
    """The generation of a row of `records`; older rows have none, which is the first."""
    return F.coalesce(F.col("generation"), F.lit(0))


def inside_range() -> Column:
    """Whether a row of `records` lies in a range of `range_topic`, `range_partition` and
    `range_generation`, from `range_first` to `range_last`, both inclusive."""
    return (
        (F.col("topic") == F.col("range_topic"))
        & (F.col("partition") == F.col("range_partition"))
        & (generation() == F.col("range_generation"))
        & F.col("offset").between(F.col("range_first"), F.col("range_last"))
    )


def counts(lake: Lake, source_cluster: str, stretches: Sequence[Stretch]) -> list[int]:
    """How many rows of `records` there are of some offsets, in their order."""
    ranges = lake.spark.createDataFrame(
        [(at, *place, first, last) for at, (place, first, last) in enumerate(stretches)],
        "at int, range_topic string, range_partition int, range_generation int, "
        "range_first bigint, range_last bigint",
    )
    rows = _within(
        lake,
        source_cluster,
        min(first for _, first, _ in stretches),
        max(last for _, _, last in stretches),
    )
    counted = rows.join(F.broadcast(ranges), inside_range()).groupBy("at").count()
    by_number = {row["at"]: row["count"] for row in counted.collect()}
    return [by_number.get(at, 0) for at in range(len(stretches))]


def _within(lake: Lake, source_cluster: str, first: int, last: int) -> DataFrame:
    """Rows of a source cluster by literal bounds, inclusive: these let Delta skip files by their
    statistics."""
    rows = lake.table("records").where(F.col("source_cluster") == source_cluster)
    return rows.where(F.col("offset").between(first, last))


def sorted_rows(
    lake: Lake,
    source_cluster: str,
    plans: Sequence[PartitionPlan],
    produce_tasks: int,
    selection: Selection | None = None,
) -> DataFrame:
    """The rows of some ranges of offsets, each shard's in one task, by topic, partition and offset;
    with a `selection` only some of them.

    Reads the newest version by offsets, wherever its files have them. This is the plan with a
    payload shuffle: for files that are not in order, and for workers that cannot open files.
    """
    wanted = list(plans)
    if not wanted:
        raise LakeError("no offsets were asked for")
    ranges = lake.spark.createDataFrame(
        [
            (*plan.place, plan.first, plan.last, shard_of(*plan.key, produce_tasks))
            for plan in wanted
        ],
        "range_topic string, range_partition int, range_generation int, range_first bigint, "
        "range_last bigint, shard int",
    )
    rows = _within(
        lake,
        source_cluster,
        min(plan.first for plan in wanted),
        max(plan.last for plan in wanted),
    )
    return (
        (rows if selection is None else selection(rows))
        .join(F.broadcast(ranges), inside_range())
        .select("shard", "topic", "partition", generation().alias("generation"), "offset", *CONTENT)
        .repartition(produce_tasks, "shard")
        .sortWithinPartitions("shard", "topic", "partition", "offset")
    )
