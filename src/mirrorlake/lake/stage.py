"""Reads with Spark which offsets the files of the stage hold."""

from collections.abc import Callable, Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mirrorlake.lake.lake import Lake
from mirrorlake.offsets.partition_ranges import StagedRange

#: Hears the highest number of a landed batch of some files; None where that is not known.
NoteBatch = Callable[[int | None], None]


def ranges_of_table(
    lake: Lake, version: int, note_batch: NoteBatch
) -> Iterable[tuple[str, list[StagedRange]]]:
    """What each file of a version of the stage holds, older files first."""
    frame = (
        lake.spark.read.format("delta")
        .option("versionAsOf", str(version))
        .table(lake.name("records"))
    )
    return _ranges(frame, F.lit(0), note_batch)


def ranges_of_commits(
    lake: Lake, after_version: int, up_to_version: int, note_batch: NoteBatch
) -> Iterable[tuple[str, list[StagedRange]]]:
    """What the commits behind `after_version`, up to `up_to_version` inclusive, added, per file.
    Raises one of SPARK_FAILURES where the commits no longer exist."""
    feed = (
        lake.spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", str(after_version + 1))
        .option("endingVersion", str(up_to_version))
        .table(lake.name("records"))
    )
    # Rows that were landed, not those that retention deleted.
    landed = feed.where(F.col("_change_type") == "insert")
    return _ranges(landed, F.col("_commit_version"), note_batch)


def _ranges(
    frame: DataFrame, version: Column, note_batch: NoteBatch
) -> Iterable[tuple[str, list[StagedRange]]]:
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
            F.max("batch_id").alias("newest_batch"),
        )
        .collect()
    )
    note_batch(max((row["newest_batch"] or 0 for row in rows), default=None))
    names = ("source_cluster", "topic", "partition", "generation", "first", "last", "record_count")
    files: dict[str, list[StagedRange]] = {}
    for row in sorted(rows, key=lambda row: (row["version"], row["batch_id"] or 0, row["path"])):
        files.setdefault(row["path"], []).append(StagedRange(*(row[name] for name in names)))
    return files.items()
