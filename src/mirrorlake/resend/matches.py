"""The staged records that a predicate picks, by Spark: how many, where, and as they are sent."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from mirrorlake.errors import InputError, first_line
from mirrorlake.lake.lake import Lake
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.produce.marked import SOURCE_HEADER
from mirrorlake.produce.stage_rows import Selection, generation, rows_at, without_noted
from mirrorlake.resend.note import first_of
from mirrorlake.spark.causes import cause_of
from mirrorlake.spark.failures import SPARK_FAILURES

#: The header that a replayed record has in front of that with its place, for the replay's id.
REPLAY_HEADER = "mirrorlake-replay"
#: How much of a key and of a value a dry run shows, bytes.
SHOWN_BYTES = 80
_NO_HEADERS = "CAST(array() AS ARRAY<STRUCT<key: STRING, value: BINARY>>)"
_PLACE = (
    "named_struct('cluster', source_cluster, 'topic', topic, 'partition', partition, "
    "'offset', offset)"
)


class Matches:
    """Records of one topic that a predicate picks."""

    def __init__(self, lake: Lake, cluster: str, topic: str, where: str) -> None:
        self._cluster, self._topic = cluster, topic
        rows = lake.table("records").where(
            (F.col("source_cluster") == cluster) & (F.col("topic") == topic)
        )
        try:
            self._rows = without_noted(lake, cluster, rows.where(where))
            self._rows.schema  # noqa: B018 - with Spark Connect a condition is looked into when this is asked
        except (AnalysisException, ParseException) as error:
            raise InputError(f"the predicate cannot be used: {first_line(error)}") from error

    def ranges(self) -> dict[StagedRange, int]:
        """Where they lie in each generation of each partition, and how many, by one version of the
        table; each range with the time of its oldest record, ms."""
        grouped = (
            self._rows.groupBy("partition", generation().alias("generation"))
            .agg(
                F.min("offset").alias("first"),
                F.max("offset").alias("last"),
                F.count("*").alias("records"),
                F.min(_stamped()).alias("oldest_ms"),
            )
            .orderBy("partition", "generation")
        )
        return {
            StagedRange(self._cluster, self._topic, *row[:-1]): row["oldest_ms"]
            for row in _collected(grouped)
        }

    def first(self, ranges: Mapping[StagedRange, int], max_records: int) -> dict[StagedRange, int]:
        """The ranges of the first `max_records`, by partition, generation, offset, as `ranges`."""
        whole, part = first_of(ranges, max_records)
        kept = {each: ranges[each] for each in whole}
        if part is not None:
            inside = self._rows.where(
                (F.col("partition") == part.partition)
                & (generation() == part.generation)
                & (F.col("offset") <= part.last)
            )
            columns = ("offset", _stamped().alias("at"))
            firsts = inside.select(*columns).orderBy("offset").limit(part.record_count)
            ((last, oldest_ms),) = _collected(firsts.agg(F.max("offset"), F.min("at")))
            kept[part._replace(last=last)] = oldest_ms
        return kept

    def examples(self, count: int) -> list[dict[str, Any]]:
        """The first records: partition, offset, timestamp (ms), beginnings of key and value."""
        begins = (F.expr(f"substring({name}, 1, {SHOWN_BYTES})") for name in ("key", "value"))
        columns = (F.col("partition"), F.col("offset"), _stamped(), *begins)
        records = (
            self._rows.orderBy("partition", generation(), "offset").limit(count).select(*columns)
        )
        names = ("partition", "offset", "timestamp", "key", "value")
        return [dict(zip(names, row, strict=True)) for row in _collected(records)]


def _stamped() -> Column:
    """A record's timestamp, ms."""
    return F.coalesce("timestamp_ms", F.unix_millis("timestamp"))


def _collected(rows: DataFrame) -> list[Row]:
    """Collect few rows. Raises InputError if the predicate fails for a record, as a cast may."""
    try:
        return rows.collect()
    except SPARK_FAILURES as error:
        raise InputError(f"the predicate cannot be used: {cause_of(error)}") from error


def of_replay(topic: str, where: str, replay: str) -> Selection:
    """A topic's records that a predicate picks, each with a replay's headers behind its own."""
    # The predicate does not see records of other topics, for which it may fail.
    return lambda rows: _with_headers(rows.where(F.col("topic") == topic).where(where), replay)


def of_picked(
    spark: SparkSession, picked: Sequence[tuple[str, int, int, int]], replay: str
) -> Selection:
    """Records by (topic, partition, generation, offset), with a replay's headers behind theirs."""
    columns = "topic string, partition int, generation int, offset bigint"
    places = F.broadcast(spark.createDataFrame(list(picked), columns))
    return lambda rows: _with_headers(rows_at(rows, places), replay)


def _with_headers(rows: DataFrame, replay: str) -> DataFrame:
    mine = ", ".join(
        f"named_struct('key', '{name}', 'value', CAST({value} AS BINARY))"
        for name, value in ((REPLAY_HEADER, f"'{replay}'"), (SOURCE_HEADER, f"to_json({_PLACE})"))
    )
    return rows.withColumn(
        "headers", F.expr(f"concat(coalesce(headers, {_NO_HEADERS}), array({mine}))")
    )


def builtin_functions(spark: SparkSession) -> Callable[[str], bool]:
    """Tells whether a function is one of Spark's own."""

    @cache
    def names() -> frozenset[str]:
        return frozenset(row[0].lower() for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect())

    return lambda name: name in names()
