"""Reading the stage with Spark: which files hold what, and rows in order where files do not hold them so."""

from collections.abc import Iterable, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mirrorlake.core.batch import PartitionPlan, shard_of
from mirrorlake.core.stage_index import StagedRange
from mirrorlake.errors import LakeError
from mirrorlake.lake.lake import Lake

_BARRED_FEATURES = ("deletionVectors", "columnMapping")
#: What reading commits may raise that are not there any more.
COMMITS_GONE = (PySparkException, Py4JError)


def readable_by_files(lake: Lake) -> bool:
    """Whether reading the table's files is reading the table: no deletion vectors, no column mapping."""
    detail = lake.spark.sql(f"DESCRIBE DETAIL {lake.name('records')}").collect()[0].asDict()
    features = detail.get("tableFeatures") or []
    return not any(feature in features for feature in _BARRED_FEATURES)


def ranges_of_table(lake: Lake, version: int) -> Iterable[tuple[str, list[StagedRange]]]:
    """What each file of a version of the stage holds, older files first."""
    frame = lake.spark.read.format("delta").option("versionAsOf", str(version)).table(lake.name("records"))
    return _ranges(frame, F.lit(0))


def ranges_of_commits(lake: Lake, after_version: int, up_to_version: int) -> Iterable[tuple[str, list[StagedRange]]]:
    """What the commits behind `after_version`, up to `up_to_version` inclusive, brought, per file. Raises one of
    COMMITS_GONE."""
    feed = (
        lake.spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", str(after_version + 1))
        .option("endingVersion", str(up_to_version))
        .table(lake.name("records"))
    )
    # Rows that were landed, not those that retention took away.
    return _ranges(feed.where(F.col("_change_type") == "insert"), F.col("_commit_version"))


def _ranges(frame: DataFrame, version: Column) -> Iterable[tuple[str, list[StagedRange]]]:
    rows = (
        frame.groupBy(
            F.input_file_name().alias("path"),
            version.alias("version"),
            "source_cluster",
            "topic",
            "partition",
            F.coalesce("generation", F.lit(0)).alias("generation"),
        )
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.count("offset").alias("record_count"),
            F.min("batch_id").alias("batch_id"),
        )
        .collect()
    )
    names = ("source_cluster", "topic", "partition", "generation", "first", "last", "record_count")
    files: dict[str, list[StagedRange]] = {}
    for row in sorted(rows, key=lambda row: (row["version"], row["batch_id"] or 0, row["path"])):
        files.setdefault(row["path"], []).append(StagedRange(*(row[name] for name in names)))
    return files.items()


def sorted_rows(lake: Lake, source_cluster: str, plans: Sequence[PartitionPlan], shard_count: int) -> DataFrame:
    """The rows of some windows of offsets, each shard's in one task, by topic, partition and offset.

    Reads the newest version by offsets, wherever its files have them. This is the plan with a payload shuffle: for
    files that are not in order, and for workers that cannot open files.
    """
    wanted = list(plans)
    if not wanted:
        raise LakeError("no offsets were asked for")
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
    generation = F.coalesce(F.col("generation"), F.lit(0))
    inside = (
        (F.col("topic") == F.col("range_topic"))
        & (F.col("partition") == F.col("range_partition"))
        & (generation == F.col("range_generation"))
        & F.col("offset").between(F.col("range_first"), F.col("range_last"))
    )
    return (
        lake.table("records")
        .where(F.col("source_cluster") == source_cluster)
        # Literal bounds too: they let Delta skip files by their statistics.
        .where(F.col("offset").between(min(plan.first for plan in wanted), max(plan.last for plan in wanted)))
        .join(F.broadcast(ranges), inside)
        .select(
            "shard",
            "topic",
            "partition",
            generation.alias("generation"),
            "offset",
            "timestamp",
            "key",
            "value",
            "headers",
            "landed_at",
        )
        .repartition(shard_count, "shard")
        .sortWithinPartitions("shard", "topic", "partition", "offset")
    )
