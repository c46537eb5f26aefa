"""Rows of the stage in order, by Spark, where files do not hold them so or cannot be opened."""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mirrorlake.errors import LakeError
from mirrorlake.lake.lake import Lake
from mirrorlake.produce.batch import PartitionPlan, shard_of
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
    rows = (
        lake.table("records")
        .where(F.col("source_cluster") == source_cluster)
        # Literal bounds too: they let Delta skip files by their statistics.
        .where(
            F.col("offset").between(
                min(plan.first for plan in wanted), max(plan.last for plan in wanted)
            )
        )
    )
    return (
        (rows if selection is None else selection(rows))
        .join(F.broadcast(ranges), inside_range())
        .select("shard", "topic", "partition", generation().alias("generation"), "offset", *CONTENT)
        .repartition(produce_tasks, "shard")
        .sortWithinPartitions("shard", "topic", "partition", "offset")
    )
