"""Land: the source topics of one cluster into `records`, one streaming query however many flows
read from it.

Who commits is what differs between lakes: at a path this process does, by delta-rs, what it reads
itself or what Spark's tasks wrote; elsewhere the session's own sink. Within a query each batch is
committed exactly once. Nothing here needs a session before many records are to be landed, or where
the session is what commits.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from confluent_kafka import KafkaException

from mirrorlake.config.topology import Landing
from mirrorlake.errors import StagingError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.lake.definitions import definition
from mirrorlake.lake.forgotten import forgotten_from
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.landing.checkpoints import (
    application_of,
    is_fenced,
    is_fenced_by_delta,
    new_checkpoint,
    pace_file,
)
from mirrorlake.landing.job import LandJob, Pace
from mirrorlake.landing.pace import limit_after_failure
from mirrorlake.landing.path_sink import PathSink
from mirrorlake.landing.query import STOP_SECONDS, LandedHere, LandingQuery, StreamedLanding
from mirrorlake.landing.source_comparison import LandingPlan
from mirrorlake.landing.stage_rows import schema_for_spark
from mirrorlake.offsets.as_of import noted_ends
from mirrorlake.offsets.positions import Ranges, TopicAndPartition, offset_count
from mirrorlake.spark.home import over_connect

if TYPE_CHECKING:  # few records are landed without a session
    from pyspark.sql import DataFrame, DataFrameReader
    from pyspark.sql.streaming.readwriter import DataStreamReader

#: How often heartbeats are landed, seconds; the objective of their age is a minute.
HEARTBEAT_SECONDS = 10.0

Client = Mapping[str, str | int | bool]


def start_landing(
    lake: Lake,
    plan: LandingPlan,
    landing: Landing,
    client: Client,
    *,
    once: bool,
    is_heartbeats: Callable[[str], bool] = lambda _topic: False,
) -> LandingQuery:
    """Start landing what a plan says, at least one partition: until it is stopped, or `once` up to
    the end offsets seen at the start. `client` are settings of librdkafka. Topics that
    `is_heartbeats` says wait for one another, HEARTBEAT_SECONDS at most: a flow that is idle except
    for its heartbeats would else never rest.

    Raises ClusterUnreachable where the source does not report the ends that it takes for `once`.
    """
    checkpoint = new_checkpoint(lake, plan.alias)
    job = _job(lake, plan, landing, client)
    if not once:
        waiting = frozenset(key for key in plan.starts if is_heartbeats(key[0]))
        job = replace(job, waiting=waiting, waiting_seconds=HEARTBEAT_SECONDS)
        return _stream(lake, job, landing, checkpoint, None)
    admin = ClusterAdmin(job.alias, job.client)
    final = admin.end_offsets(job.starts, committed=True)
    noted = noted_ends(final, admin.end_offsets(list(final), committed=False, skip_silent=True))
    ranges = {key: (job.starts[key], end) for key, end in final.items() if end > job.starts[key]}
    sink = _sink_of(lake, job, landing, checkpoint)
    in_one_batch = offset_count(ranges) <= job.max_records
    if sink is not None and in_one_batch and sink.is_small(ranges):
        return _landed_here(sink, ranges, noted)
    if not ranges:
        return LandedHere({}, None, lambda: False)
    job = replace(job, final=final, final_noted=noted)
    return _stream(lake, job, landing, checkpoint, {key: end for key, (_, end) in ranges.items()})


def land_again(
    lake: Lake,
    plan: LandingPlan,
    landing: Landing,
    client: Client,
    *,
    ends: Mapping[TopicAndPartition, int],
    occasion: str,
) -> None:
    """Land offsets in one commit, from the `starts` of a plan, inclusive, to `ends`, exclusive: the
    stage had them and has lost them. What was deleted by predicate stays deleted: the source may
    have it still. `occasion` names what it is landed again for: twice for the same one, even at the
    same time, lands them once. Raises KafkaException, or what Spark does.
    """
    forgotten = {
        (topic, partition): ranges
        for (topic, partition, generation), ranges in forgotten_from(lake, plan.alias).items()
        if generation == plan.generations.get((topic, partition), 0)
    }
    job = replace(_job(lake, plan, landing, client), final=ends, forgotten=forgotten)
    application = f"mirrorlake again {plan.alias} {plan.assigned} {occasion}"
    sink = _sink_of(lake, job, landing, None, application)
    if sink is not None:
        with closing(sink):
            sink.land({key: (job.starts[key], end) for key, end in ends.items()}, None, 1)
        return
    writer = _frame_of(lake, job, "again", lake.spark.read).write.format("delta").mode("append")
    writer = writer.option("txnAppId", application).option("txnVersion", "1")
    writer.saveAsTable(lake.name("records"))


def _job(lake: Lake, plan: LandingPlan, landing: Landing, client: Client) -> LandJob:
    place = lake.directory
    return LandJob(
        alias=plan.alias,
        client=dict(client),
        starts=plan.starts,
        generations=plan.generations,
        schema=definition("records").rows,
        directory=None if place is None else place / "records",
        pace_file=str(pace_file(lake, plan.alias)),
        max_records=landing.max_records_per_batch,
        tasks=landing.files_per_batch,
        trigger_seconds=landing.trigger_ms / 1_000,
    )


def _sink_of(
    lake: Lake, job: LandJob, landing: Landing, checkpoint: Path | None, application: str = ""
) -> PathSink | None:
    """Who commits in this process; None where the session does."""
    if not isinstance(lake, PathLake):
        return None
    if checkpoint is not None:
        application = application_of(checkpoint)
    return PathSink(
        lake.tables,
        job,
        application=application,
        checkpoint=checkpoint,
        small_batch_records=landing.small_batch_records,
        fenced=partial(is_fenced, lake, application),
    )


def _landed_here(sink: PathSink, ranges: Ranges, noted: str | None) -> LandingQuery:
    """Few records up to an end, landed now: a query would take seconds to begin."""
    error: Exception | None = None
    with closing(sink):
        try:
            sink.land(ranges, noted, 0)
        except (KafkaException, StagingError) as raised:
            error = raised
    return LandedHere({key: end for key, (_, end) in ranges.items()}, error, sink.fenced)


def _stream(
    lake: Lake,
    job: LandJob,
    landing: Landing,
    checkpoint: Path,
    final: Mapping[TopicAndPartition, int] | None,
) -> LandingQuery:
    """One query for all partitions: which of them wait for others is decided for each batch."""
    spark = lake.spark
    # Over Spark Connect a sink of ours would run in another process than this one.
    sink = None if over_connect() else _sink_of(lake, job, landing, checkpoint)
    if sink is None:
        job = replace(job, directory=None)
    writer = (
        _frame_of(lake, job, "land", spark.readStream)
        .writeStream.queryName(f"land {job.alias} {lake.lake_id} {checkpoint.name}")
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=f"{landing.trigger_ms} milliseconds")
    )
    if sink is not None:
        query = writer.foreachBatch(sink).start()
        close, no_more = lambda _within_batch: sink.close(), sink.stop_after_batch
        return StreamedLanding(query, final, sink.fenced, close, no_more)
    # Makes the session this thread's active one, which Delta's sink asks for by name; any frame
    # does.
    spark.createDataFrame([], "nothing int")
    query = writer.format("delta").outputMode("append").toTable(lake.name("records"))
    fenced = partial(is_fenced_by_delta, lake, str(query.id), checkpoint)
    return StreamedLanding(query, final, fenced, partial(_note_interrupted, job))


def _note_interrupted(job: LandJob, within_batch: bool) -> None:
    """Have the next query begin with smaller batches than one that a stop did not wait for."""
    if within_batch:
        job.keep_pace(Pace(limit_after_failure(job.pace().limit, STOP_SECONDS)))


def _frame_of(
    lake: Lake, job: LandJob, what: str, reader: "DataStreamReader | DataFrameReader"
) -> "DataFrame":
    """What the tasks of a job hand over: rows of `records`, or which files they wrote of them."""
    from pyspark.sql import functions as F

    from mirrorlake.landing.stream_source import source_of

    columns = [column.name for column in definition("records").columns]
    if job.directory is None:
        job = replace(job, schema=schema_for_spark(job.schema))
    source = source_of(job, f"mirrorlake_{what}_{job.alias}", _row_types(job.schema))
    lake.spark.dataSource.register(source)
    frame = reader.format(source.name()).load()
    if job.directory is not None:
        return frame
    added = {"source_cluster": F.lit(job.alias), "landed_at": F.timestamp_millis("batch_id")}
    return frame.select(*(added.get(name, F.col(name)).alias(name) for name in columns))


def _row_types(schema: pa.Schema) -> str:
    """The types of columns in Spark's words; of one that is never null it asks less."""
    kinds = {column.name: column.spark_type for column in definition("records").columns}
    return ", ".join(
        f"{field.name} {kinds[field.name]}{'' if field.nullable else ' NOT NULL'}"
        for field in schema
    )
