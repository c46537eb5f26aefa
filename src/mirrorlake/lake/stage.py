"""Reading the stage: which files hold what, as new commits bring it, and rows in order where files do not.

`new_ranges` follows the table's commits through its change feed, so its cost is that of what is new. `backfill_ranges`
and `sorted_rows` look at a whole version instead: for a flow that is new to an old stage, or whose commits are gone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mirrorlake.core.batch import FileRange, PartitionPlan, shard_of
from mirrorlake.errors import LakeError
from mirrorlake.lake.lake import Lake

#: Commits that hold rows in the order in which they were landed, and those that do not touch rows.
_IN_ORDER = frozenset(
    {
        "CREATE TABLE",
        "CREATE OR REPLACE TABLE",
        "WRITE",
        "STREAMING UPDATE",
        "SET TBLPROPERTIES",
        "ADD COLUMNS",
        "VACUUM START",
        "VACUUM END",
    }
)
_BARRED_FEATURES = ("deletionVectors", "columnMapping")


@dataclass(frozen=True)
class Selected:
    """The rows of the stage that concern a flow: a source cluster and a Java regex of whole topic names."""

    source_cluster: str
    pattern: str

    def condition(self) -> Column:
        """As a predicate over `records`."""
        return (F.col("source_cluster") == self.source_cluster) & F.col("topic").rlike(f"^(?:{self.pattern})$")


def follows_commits(lake: Lake, after_version: int) -> bool:
    """Whether every commit behind `after_version` is still known and holds rows as they were landed."""
    history = (
        lake.spark.sql(f"DESCRIBE HISTORY {lake.name('records')}")
        .where(F.col("version") > after_version)
        .select("version", "operation")
        .collect()
    )
    versions = {row["version"] for row in history}
    if versions != set(range(after_version + 1, max(versions, default=after_version) + 1)):
        return False
    return all(row["operation"] in _IN_ORDER for row in history)


def readable_by_files(lake: Lake) -> bool:
    """Whether reading the table's files is reading the table: no deletion vectors, no column mapping."""
    detail = lake.spark.sql(f"DESCRIBE DETAIL {lake.name('records')}").collect()[0].asDict()
    features = detail.get("tableFeatures") or []
    return not any(feature in features for feature in _BARRED_FEATURES)


def new_ranges(lake: Lake, selected: Selected, after_version: int, up_to_version: int) -> list[FileRange]:
    """What the commits behind `after_version`, up to `up_to_version` inclusive, brought, per file and partition."""
    feed = (
        lake.spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", str(after_version + 1))
        .option("endingVersion", str(up_to_version))
        .table(lake.name("records"))
    )
    rows = (
        feed.where(selected.condition() & _brought())
        .groupBy(
            F.input_file_name().alias("path"),
            F.col("_commit_version").alias("version"),
            "topic",
            "partition",
            "generation",
        )
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.count("offset").alias("record_count"),
        )
        .collect()
    )
    return [FileRange(**row.asDict()) for row in rows]


def staged_ranges(lake: Lake, selected: Selected, version: int) -> list[FileRange]:
    """What a whole version holds of a flow, one row per partition and generation, no file: the plan of a backfill."""
    rows = (
        _at(lake, version)
        .where(selected.condition())
        .groupBy("topic", "partition", "generation")
        .agg(
            F.lit("").alias("path"),
            F.lit(version).alias("version"),
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.count("offset").alias("record_count"),
        )
        .collect()
    )
    return [FileRange(**row.asDict()) for row in rows]


def sorted_rows(
    lake: Lake,
    source_cluster: str,
    plans: Iterable[PartitionPlan],
    shard_count: int,
    versions: tuple[int, int] | None,
    version: int,
) -> DataFrame:
    """The rows of some offset ranges, each shard's in one task, by topic, partition and offset.

    Reads what the commits in `versions` (exclusive, inclusive) brought, or else the whole table as of `version`. This
    is the plan with a payload shuffle: for files that are not in order, and for workers that cannot open files.
    """
    wanted = list(plans)
    if not wanted:
        raise LakeError("no offsets were asked for")
    frame = _at(lake, version) if versions is None else _between(lake, *versions)
    ranges = lake.spark.createDataFrame(
        [
            (
                plan.topic,
                plan.partition,
                plan.generation,
                plan.first,
                plan.last,
                shard_of(plan.topic, plan.partition, shard_count),
            )
            for plan in wanted
        ],
        "range_topic string, range_partition int, range_generation int, range_first bigint, range_last bigint,"
        " shard int",
    )
    inside = (
        (F.col("topic") == F.col("range_topic"))
        & (F.col("partition") == F.col("range_partition"))
        & (F.col("generation") == F.col("range_generation"))
        & F.col("offset").between(F.col("range_first"), F.col("range_last"))
    )
    return (
        frame.where(F.col("source_cluster") == source_cluster)
        # Literal bounds too: they let Delta skip files by their statistics.
        .where(F.col("offset").between(min(plan.first for plan in wanted), max(plan.last for plan in wanted)))
        .join(F.broadcast(ranges), inside)
        .select("shard", "topic", "partition", "offset", "timestamp", "key", "value", "headers", "landed_at")
        .repartition(shard_count, "shard")
        .sortWithinPartitions("shard", "topic", "partition", "offset")
    )


def _at(lake: Lake, version: int) -> DataFrame:
    return lake.spark.read.format("delta").option("versionAsOf", str(version)).table(lake.name("records"))


def _between(lake: Lake, after_version: int, up_to_version: int) -> DataFrame:
    return (
        lake.spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", str(after_version + 1))
        .option("endingVersion", str(up_to_version))
        .table(lake.name("records"))
        .where(_brought())
    )


def _brought() -> Column:
    """Of the change feed: rows that were landed, not those that retention took away."""
    return F.col("_change_type") == "insert"


def cut_windows(plans: Sequence[PartitionPlan], max_records: int) -> list[PartitionPlan]:
    """The next piece of a backfill: at most `max_records` offsets, dealt evenly over the partitions that have some."""
    share = max(1, max_records // max(1, len(plans)))
    pieces = []
    for plan in plans:
        first = max(plan.first, plan.floor.source)
        if first <= plan.last:
            pieces.append(
                PartitionPlan(
                    plan.topic, plan.partition, plan.target_topic, plan.floor, first, min(plan.last, first + share - 1)
                )
            )
    return pieces
