"""Land: the source topics of one cluster into `records`, one streaming query however many flows read from it.

Within a query the Delta sink makes each batch exactly once. No query goes on from the checkpoint of another: a batch is
committed whole, so the offset after the newest one in the table is where a partition goes on, and a process that died
between Delta's commit and Spark's has left nothing that could contradict it.
"""

import json
import logging
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.utils import is_remote

from mirrorlake.config.topology import Landing
from mirrorlake.lake.forgotten import forgotten_from
from mirrorlake.lake.lake import Lake
from mirrorlake.landing.native_land import land_natively
from mirrorlake.landing.native_source import LandJob
from mirrorlake.landing.query import LandingQuery
from mirrorlake.landing.source_comparison import LandingPlan
from mirrorlake.landing.stage_sink import StageSink
from mirrorlake.native.selfcheck import problem as native_problem
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.spark.query_files import starting_offsets
from mirrorlake.spark.session import redact_secrets

logger = logging.getLogger(__name__)

#: A cluster's own settings override these.
SOURCE_SETTINGS: Mapping[str, str] = {
    # Measured: 1.6 times the rate of the client's defaults on 1 KB records.
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.receive.buffer.bytes": str(1 << 20),
    "kafka.max.poll.records": "5000",
    # How long tasks wait for a source that may be gone, while they hold cores that others need: Kafka's defaults are
    # 60 s, Spark's is 120 s.
    "kafka.default.api.timeout.ms": "20000",
    "kafka.request.timeout.ms": "15000",
    "kafkaConsumer.pollTimeoutMs": "20000",
}
#: Spark reads a source partition's part of a batch in chunks of so many records. `coalesce` gives each file as many
#: chunks as the next one, and so about as many records: by whole partitions, the heartbeats' few records would weigh as
#: much as any, and one task would have twice the work of the other. Chunks cost landing up to a tenth of its CPU.
PIECE_RECORDS = 100_000
#: How often heartbeats are landed; the objective of their age is a minute.
HEARTBEAT_SECONDS = 10.0

#: Options of Spark's Kafka source that hold secrets of a cluster.
SECRET_OPTIONS = frozenset({"kafka.sasl.jaas.config", "kafka.ssl.keystore.key", "kafka.ssl.key.password"})
#: More than any batch's number: Delta takes no batch of a query that has come so far.
_NO_MORE = 2**62


def end_queries(lake: Lake, alias: str) -> None:
    """See to it that no query before now can commit to `records` any more, and forget their checkpoints.

    To be called before the table is asked where to go on: a process that was killed may leave a query that still runs.
    """
    root = _root(lake, alias)
    for checkpoint in root.iterdir() if root.is_dir() else ():
        for application in (_application(checkpoint), _query_id(checkpoint)):
            if application is not None:
                lake.fence("records", application, _NO_MORE)
        shutil.rmtree(checkpoint)


def _application(checkpoint: Path) -> str:
    """What the commits of a query with this checkpoint are known by, where they are the driver's."""
    return f"mirrorlake land {checkpoint.name}"


def _query_id(checkpoint: Path) -> str | None:
    """The id under which Delta's own sink commits the batches of a checkpoint; None if it never came to begin."""
    try:
        return str(json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"])
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError):
        return None


def forget_query(lake: Lake, alias: str) -> None:
    """Remove the checkpoint of a query that has ended."""
    shutil.rmtree(_root(lake, alias), ignore_errors=True)


def _root(lake: Lake, alias: str) -> Path:
    return lake.checkpoints / "land" / alias


def start_landing(
    lake: Lake,
    options: Mapping[str, str],
    plan: LandingPlan,
    landing: Landing,
    once: bool,
    is_heartbeats: Callable[[str], bool] = lambda _topic: False,
    client: Mapping[str, str | int | bool] | None = None,
) -> LandingQuery:
    """Start landing what a plan says, at least one partition.

    Args:
        lake: the lake.
        options: of Spark's Kafka source.
        plan: the partitions, and where each begins.
        landing: the cluster's settings.
        once: end at the end offsets seen at the start; else when it is stopped.
        is_heartbeats: the topics that wait for one another, HEARTBEAT_SECONDS at most: a flow that is idle except for
        its
            heartbeats would else never rest.
        client: settings of librdkafka, to read natively where that can be done: of a lake in a directory. Else
            Spark's own source reads.

    Raises:
        ClusterUnreachable: `once`, and the source does not report its ends.
        LakeError: the session would write the options' secrets down.
    """
    if client is not None and lake.path_tables is not None and not is_remote() and _natively():
        checkpoint = _root(lake, plan.alias) / uuid.uuid4().hex[:12]
        waiting = frozenset(key for key in plan.starts if not once and is_heartbeats(key[0]))
        job = LandJob.of(plan, client, landing, lake.path_tables.directory, checkpoint, waiting, HEARTBEAT_SECONDS)
        return land_natively(lake, lake.path_tables, job, landing, _application(checkpoint), once)
    if not SECRET_OPTIONS.isdisjoint(options):
        redact_secrets(lake.spark)
    # Makes the session this thread's active one, which Delta's sink asks for by name; any frame does.
    lake.spark.createDataFrame([], "nothing int")
    if once:
        return LandingQuery(_start(lake, options, plan, landing, None))
    quiet = {key: start for key, start in plan.starts.items() if is_heartbeats(key[0])}
    others = {key: start for key, start in plan.starts.items() if key not in quiet}
    paces = ((landing.trigger_ms, others), (max(landing.trigger_ms, int(HEARTBEAT_SECONDS * 1000)), quiet))
    return LandingQuery(
        *(_start(lake, options, replace(plan, starts=starts), landing, ms) for ms, starts in paces if starts)
    )


def _start(
    lake: Lake, options: Mapping[str, str], plan: LandingPlan, landing: Landing, trigger_ms: int | None
) -> StreamingQuery:
    """Start a query with a trigger every so many milliseconds, or, for None, one that ends at today's ends."""
    checkpoint = _root(lake, plan.alias) / uuid.uuid4().hex[:12]
    source = lake.spark.readStream.format("kafka").options(**_read_options(options, plan, "land"))
    source = source.option("maxOffsetsPerTrigger", str(landing.max_records_per_batch))
    # coalesce bounds the files, and keeps neighbours together: the chunks of a source partition lie in one file, or
    # go on at the start of the next.
    rows = _as_records(source.load(), plan).coalesce(landing.files_per_batch)
    writer = rows.writeStream.queryName(f"land {plan.alias} {lake.lake_id} {checkpoint.name}")
    writer = writer.option("checkpointLocation", str(checkpoint))
    if trigger_ms is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{trigger_ms} milliseconds")
    if lake.path_tables is None or is_remote():  # Spark Connect would run the sink in another process than this one
        return writer.format("delta").outputMode("append").toTable(lake.name("records"))
    lake.make_known("records")
    sink = StageSink(lake, lake.path_tables, landing, _application(checkpoint), checkpoint, dict(plan.starts))
    return writer.foreachBatch(sink).start()


def _natively() -> bool:
    why_not = native_problem()
    if why_not is not None:
        logger.warning("records are read by Spark's own source, which is slower, because %s", why_not)
    return why_not is None


def land_again(
    lake: Lake, options: Mapping[str, str], plan: LandingPlan, ends: Mapping[TopicAndPartition, int], version: int
) -> None:
    """Land offsets in one commit: the stage had them and has lost them.

    Args:
        lake, options: where to, and options of Spark's Kafka source.
        plan: its `starts` are the first offsets.
        ends: offsets behind the last ones.
        version: doing it twice with the same one, also while the first attempt still runs, lands them once.
    """
    if not SECRET_OPTIONS.isdisjoint(options):
        redact_secrets(lake.spark)
    source = lake.spark.read.format("kafka").options(**_read_options(options, plan, "again"))
    source = source.option("endingOffsets", starting_offsets(ends))
    rows = _without_forgotten(_as_records(source.load(), plan), lake, plan)
    writer = rows.write.format("delta").mode("append")
    application = f"mirrorlake again {plan.alias} {_assigned(plan)}"
    writer.option("txnAppId", application).option("txnVersion", str(version)).saveAsTable(lake.name("records"))


def _without_forgotten(rows: DataFrame, lake: Lake, plan: LandingPlan) -> DataFrame:
    """Leave out what was deleted by predicate: the source may have it still."""
    for (topic, partition, generation), ranges in forgotten_from(lake, plan.alias).items():
        if (topic, partition) in plan.starts and generation == plan.generations.get((topic, partition), 0):
            gone = reduce(or_, (F.col("offset").between(*item) for item in ranges))
            rows = rows.where(~((F.col("topic") == topic) & (F.col("partition") == partition) & gone))
    return rows


def _read_options(options: Mapping[str, str], plan: LandingPlan, what: str) -> dict[str, str]:
    return {
        **SOURCE_SETTINGS,
        **options,
        "assign": _assigned(plan),
        "startingOffsets": starting_offsets(plan.starts),
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": "true",
        "maxRecordsPerPartition": str(PIECE_RECORDS),
        "groupIdPrefix": f"mirrorlake-{what}-{plan.alias}",
    }


def _as_records(source: DataFrame, plan: LandingPlan) -> DataFrame:
    """The columns of `records`. The batch's own time, which a replay keeps, is both landed_at and batch_id."""
    return source.withColumn("landed_at", _batch_time()).select(
        F.lit(plan.alias).alias("source_cluster"),
        "topic",
        "partition",
        "offset",
        "timestamp",
        F.col("timestampType").alias("timestamp_type"),
        "key",
        "value",
        "headers",
        "landed_at",
        F.unix_millis("landed_at").alias("batch_id"),
        _generation(plan.generations).alias("generation"),
        F.lit(None).cast("bigint").alias("batch_end"),  # Spark's source tells no ends
        F.lit(None).cast("string").alias("open_ends"),
    )


def _batch_time() -> Column:
    """The time of the batch, as no literal in Spark's generated code.

    There it would make every batch's code another: compiled twice over by the driver, then by the JVM, which costs a
    backlog of small records a tenth of the CPU. Spark generates no code for what stands inside `aggregate`.
    """
    return F.aggregate(F.array(), F.current_timestamp(), lambda time, _: time)


def _generation(generations: Mapping[TopicAndPartition, int]) -> Column:
    column = F.lit(0)
    for (topic, partition), generation in generations.items():
        here = (F.col("topic") == topic) & (F.col("partition") == partition)
        column = F.when(here, F.lit(generation)).otherwise(column)
    return column


def _assigned(plan: LandingPlan) -> str:
    """The partitions, as Spark's option `assign` wants them."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(plan.starts):
        topics.setdefault(topic, []).append(partition)
    return json.dumps(topics, ensure_ascii=False, separators=(",", ":"))
