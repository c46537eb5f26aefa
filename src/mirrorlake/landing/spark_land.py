"""Landing by Spark's own Kafka source: into a catalog, over Spark Connect, and where there is no
native reader."""

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from mirrorlake.config.topology import Landing
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.landing.checkpoints import application_of, is_fenced_by_delta, new_checkpoint
from mirrorlake.landing.query import LandingQuery
from mirrorlake.landing.source_comparison import LandingPlan
from mirrorlake.landing.spark_times import NOT_BY_SPARK, SPARK_FIRST_MS
from mirrorlake.landing.stage_sink import StageSink
from mirrorlake.native.exact import LAST_MS
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.spark.home import over_connect
from mirrorlake.spark.query_files import starting_offsets
from mirrorlake.spark.session import redact_secrets

#: A cluster's own settings override these.
SOURCE_SETTINGS: Mapping[str, str] = {
    # Measured: 1.6 times the rate of the client's defaults on 1 KB records.
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.receive.buffer.bytes": str(1 << 20),
    "kafka.max.poll.records": "5000",
    # How long tasks wait for a source that may be gone, while they hold cores that others need:
    # Kafka's defaults are 60 s, Spark's is 120 s.
    "kafka.default.api.timeout.ms": "20000",
    "kafka.request.timeout.ms": "15000",
    "kafkaConsumer.pollTimeoutMs": "20000",
}
#: Spark reads a source partition's part of a batch in chunks of so many records. `coalesce` gives
#: each file as many chunks as the next one, and so about as many records: by whole partitions, the
#: heartbeats' few records would weigh as much as any, and one task would have twice the work of the
#: other. Chunks cost landing up to a tenth of its CPU.
PIECE_RECORDS = 100_000
#: Options of Spark's Kafka source that hold secrets of a cluster.
SECRET_OPTIONS = frozenset(
    {"kafka.sasl.jaas.config", "kafka.ssl.keystore.key", "kafka.ssl.key.password"}
)


def land_by_spark(
    lake: Lake,
    options: Mapping[str, str],
    plan: LandingPlan,
    landing: Landing,
    once: bool,
    waiting: frozenset[TopicAndPartition],
    waiting_seconds: float,
) -> LandingQuery:
    """Start landing what a plan says; partitions that are `waiting` are read every
    `waiting_seconds`.

    Raises LakeError where the session would write the options' secrets down.
    """
    if not SECRET_OPTIONS.isdisjoint(options):
        redact_secrets(lake.spark)
    # Makes the session this thread's active one, which Delta's sink asks for by name; any frame
    # does.
    lake.spark.createDataFrame([], "nothing int")
    if once:
        return _query(lake, _start(lake, options, plan, landing, None))
    quiet = {key: start for key, start in plan.starts.items() if key in waiting}
    others = {key: start for key, start in plan.starts.items() if key not in waiting}
    paces = (
        (landing.trigger_ms, others),
        (max(landing.trigger_ms, int(waiting_seconds * 1000)), quiet),
    )
    return _query(
        lake,
        *(
            _start(lake, options, replace(plan, starts=starts), landing, ms)
            for ms, starts in paces
            if starts
        ),
    )


def _query(lake: Lake, *started: tuple[StreamingQuery, Path]) -> LandingQuery:
    def fenced() -> bool:
        return any(
            is_fenced_by_delta(lake, str(query.id), checkpoint) for query, checkpoint in started
        )

    return LandingQuery(*(query for query, _ in started), fenced=fenced)


def _start(
    lake: Lake,
    options: Mapping[str, str],
    plan: LandingPlan,
    landing: Landing,
    trigger_ms: int | None,
) -> tuple[StreamingQuery, Path]:
    """Start a query with a trigger every so many milliseconds, or, for None, one that ends at
    today's ends. Returns its checkpoint, too."""
    checkpoint = new_checkpoint(lake, plan.alias)
    source = lake.spark.readStream.format("kafka").options(**_read_options(options, plan, "land"))
    source = source.option("maxOffsetsPerTrigger", str(landing.max_records_per_batch))
    # coalesce bounds the files, and keeps neighbours together: the chunks of a source partition lie
    # in one file, or go on at the start of the next.
    rows = _as_records(source.load(), plan).coalesce(landing.files_per_batch)
    writer = rows.writeStream.queryName(f"land {plan.alias} {lake.lake_id} {checkpoint.name}")
    writer = writer.option("checkpointLocation", str(checkpoint))
    if trigger_ms is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{trigger_ms} milliseconds")
    # Over Spark Connect the sink would run in another process than this one.
    if not isinstance(lake, PathLake) or over_connect():
        return writer.format("delta").outputMode("append").toTable(lake.name("records")), checkpoint
    lake.make_known("records")
    sink = StageSink(lake, landing, application_of(checkpoint), checkpoint, dict(plan.starts))
    return writer.foreachBatch(sink).start(), checkpoint


def land_again_by_spark(
    lake: Lake,
    options: Mapping[str, str],
    plan: LandingPlan,
    ends: Mapping[TopicAndPartition, int],
    forgotten: Mapping[TopicAndPartition, OffsetRanges],
    application: str,
) -> None:
    """Land offsets, up to `ends`, without those that are `forgotten` (inclusive), in the one commit
    of an application."""
    if not SECRET_OPTIONS.isdisjoint(options):
        redact_secrets(lake.spark)
    source = lake.spark.read.format("kafka").options(**_read_options(options, plan, "again"))
    source = source.option("endingOffsets", starting_offsets(ends))
    rows = _as_records(source.load(), plan)
    for (topic, partition), ranges in forgotten.items():
        if (topic, partition) in plan.starts:
            gone = reduce(or_, (F.col("offset").between(*extent) for extent in ranges))
            rows = rows.where(
                ~((F.col("topic") == topic) & (F.col("partition") == partition) & gone)
            )
    writer = rows.write.format("delta").mode("append").option("txnAppId", application)
    writer.option("txnVersion", "1").saveAsTable(lake.name("records"))


def _read_options(options: Mapping[str, str], plan: LandingPlan, what: str) -> dict[str, str]:
    return {
        **SOURCE_SETTINGS,
        **options,
        "assign": plan.assigned,
        "startingOffsets": starting_offsets(plan.starts),
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": "true",
        "maxRecordsPerPartition": str(PIECE_RECORDS),
        "groupIdPrefix": f"mirrorlake-{what}-{plan.alias}",
    }


def _as_records(source: DataFrame, plan: LandingPlan) -> DataFrame:
    """The columns of `records`. The batch's own time, which a replay keeps, is both landed_at and
    batch_id."""
    return source.withColumn("landed_at", _batch_time()).select(
        F.lit(plan.alias).alias("source_cluster"),
        "topic",
        "partition",
        "offset",
        F.when(_is_date(), _as_it_was()).alias("timestamp"),
        F.col("timestampType").alias("timestamp_type"),
        "key",
        "value",
        "headers",
        "landed_at",
        F.unix_millis("landed_at").alias("batch_id"),
        _generation(plan.generations).alias("generation"),
        F.lit(None).cast("bigint").alias("batch_end"),  # Spark's source tells no ends
        F.lit(None).cast("string").alias("open_ends"),
        F.when(~_is_date(), F.unix_millis("timestamp")).alias("timestamp_ms"),
        F.lit(None)
        .cast("array<binary>")
        .alias("header_names"),  # Java's client gives names as texts
    )


def _as_it_was() -> Column:
    """A time, unless it is of before 1900: Spark's source takes that for one of Java's old
    calendar, and changes it."""
    where = F.concat_ws("-", "topic", "partition")
    reason = F.lit(f" cannot be staged, since {NOT_BY_SPARK}, from offset ")
    return F.when(F.unix_millis("timestamp") >= SPARK_FIRST_MS, F.col("timestamp")).otherwise(
        F.raise_error(F.concat(where, reason, F.col("offset").cast("string"))).cast("timestamp")
    )


def _is_date() -> Column:
    """Whether a time is one that `timestamp` holds (native/exact.py)."""
    return F.unix_millis("timestamp") <= LAST_MS


def _batch_time() -> Column:
    """The time of the batch, as no literal in Spark's generated code.

    There it would make every batch's code another: compiled twice over by the driver, then by the
    JVM, which costs a backlog of small records a tenth of the CPU. Spark generates no code for what
    stands inside `aggregate`.
    """
    return F.aggregate(F.array(), F.current_timestamp(), lambda time, _: time)


def _generation(generations: Mapping[TopicAndPartition, int]) -> Column:
    column = F.lit(0)
    for (topic, partition), generation in generations.items():
        here = (F.col("topic") == topic) & (F.col("partition") == partition)
        column = F.when(here, F.lit(generation)).otherwise(column)
    return column
