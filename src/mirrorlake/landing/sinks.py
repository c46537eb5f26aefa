"""Who commits the batches of a landing query: this process, or its session.

Into a lake at a path this process commits: what it read itself, of a small batch, or what Spark's
tasks wrote. Each batch is one commit by delta-rs that names the query and the number of the batch:
it is in the table once, whichever way it went and however often it is tried. Into a catalog the
session's own Delta sink commits rows that tasks hand over; so it does through Spark Connect, where
a sink of ours would run in another process than this one.
"""

import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from deltalake.transaction import AddAction

from mirrorlake import failpoints
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.refusals import silence_in_words
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.small_batches import SmallBatches
from mirrorlake.landing.checkpoints import is_fenced, is_fenced_by_delta, planned_end
from mirrorlake.landing.driver_log import DriverLog
from mirrorlake.landing.job import LandJob, read_document
from mirrorlake.landing.pace import Pace
from mirrorlake.landing.stage_file import ADDED, landed_of, write_parts
from mirrorlake.landing.stage_rows import PART_DONE, read_part, rows_of_parts, schema_for_spark
from mirrorlake.offsets.positions import Ranges, TopicAndPartition, offset_count, ranges_between
from mirrorlake.spark.tasks import Done, dealt, run_by_spark, run_here

if TYPE_CHECKING:  # few records are landed without a session
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

logger = logging.getLogger(__name__)

Ends = Mapping[TopicAndPartition, int]
#: What a query's progress has of each batch.
_OFFSETS_READ = "offsets_read"


class PathSink:
    """Commits what a job reads by delta-rs, known by the name `application`. What fails ends the
    query: there is no `failure` of one that goes on."""

    failure: Exception | None = None

    def __init__(self, lake: PathLake, job: LandJob, application: str) -> None:
        self._lake = lake
        self._job = job
        self._application = application
        self._small = SmallBatches(job.small_batch_records)
        self._pace = job.pace()
        self._log = DriverLog(job)
        self._in_hand, self._no_more = threading.RLock(), False

    def start(self, writer: "DataStreamWriter", checkpoint: Path) -> "StreamingQuery":
        """Take the batches of a query with a checkpoint."""
        before = dict(self._job.starts)

        def take(frame: "DataFrame", batch: int) -> None:
            if self._no_more:
                raise ReplicationError(
                    f"landing from cluster {self._job.alias} takes no more batches: it is being "
                    "stopped"
                )
            ends, noted = read_document(planned_end(checkpoint, batch))
            ranges = ranges_between(before, ends)
            before.update(ends)
            with silence_in_words(self._job.alias, self._job.client):
                self.land(ranges, noted, batch, frame.sparkSession)

        return writer.foreachBatch(take).start()

    def covered(self, query: "StreamingQuery") -> Ends:
        """See `LandingQuery.covered`."""
        progress = query.lastProgress
        return {} if progress is None else _batch_of(progress, {}).end

    def is_small(self, ranges: Ranges) -> bool:
        """Whether this process reads so much itself."""
        return offset_count(ranges) <= self._small.max_records

    def land(
        self, ranges: Ranges, noted: str | None, batch: int, spark: "SparkSession | None" = None
    ) -> None:
        """Read and commit, as the number `batch` of the application; what is not small by tasks of
        a session, where there is one. `noted` is what the batch notes of the ends of logs. Raises
        KafkaException and StagingError, and ClusterUnusable from tasks."""
        with self._paced(), self._in_hand:
            began, here = time.monotonic(), spark is None or self.is_small(ranges)
            files = self._written(ranges, noted, None if here else spark).checked().to_pylist()
            by_tasks = max((file["seconds"] for file in files), default=0.0)
            self._commit(files, batch, time.monotonic() - began if here else by_tasks)

    def fenced(self) -> bool:
        """See `LandingQuery.fenced`."""
        return is_fenced(self._lake, self._application)

    def stop_after_batch(self) -> None:
        """Let no batch begin: where one follows the other, the moment between two would be hard to
        meet."""
        self._no_more = True

    def close(self, _interrupted_after: float | None = None) -> None:
        """End what this process reads itself, which a stop may not have waited for, and let go of
        its client."""
        self._log.closing = True
        with self._in_hand:
            self._log.close()

    def _written(self, ranges: Ranges, noted: str | None, spark: "SparkSession | None") -> Done:
        """The files of a batch."""
        job = self._job
        if spark is None:
            count = 1 + offset_count(ranges) // job.max_records  # each file has a bound
            write = partial(write_parts, job, "driver", partial(self._log.read, self._pace))
            return run_here(write, dealt(job.parts(ranges, noted, count), 1), ADDED)
        self._log.drop_prefetched()
        parts = job.parts(ranges, noted, job.tasks)
        write = partial(write_parts, job, "task", partial(read_part, job))
        return run_by_spark(spark, write, parts, ADDED, len(parts))

    def _commit(self, files: Sequence[Mapping[str, Any]], batch: int, seconds: float) -> None:
        """Make files a part of the table, rows of ADDED, that took so long to read."""
        failpoints.reached("taken")
        now = time.time_ns() // 1_000_000
        adds = [
            AddAction(file["path"], file["size"], {}, now, data_change=True, stats=file["stats"])
            for file in files
        ]
        if adds:
            with self._lake.measured("records"):
                self._lake.tables.add_files("records", adds, self._application, batch)
            self._lake.meter.landed(self._job.alias, landed_of(files))
        failpoints.reached("landed")
        size, sizes = sum(file["bytes"] for file in files), dict[str, float]()
        for file in files:
            sizes.update(json.loads(file["topic_bytes"]))
        self._small.learn(sum(file["records"] for file in files), size)
        self._keep(self._pace.after(size, seconds, sizes))

    @contextmanager
    def _paced(self) -> Iterator[None]:
        """Let a batch that does not come to its end say how much the next ones may hold, too."""
        began = time.monotonic()
        try:
            yield
        except BaseException:
            self._keep(self._pace.after_failure(time.monotonic() - began))
            raise

    def _keep(self, pace: Pace) -> None:
        if pace.in_small_answers != self._pace.in_small_answers:
            self._log.close()  # its client asks for answers of the other size
        if pace != self._pace:
            self._job.keep_pace(pace)
        self._pace = pace


class SessionSink:
    """Has a session commit what a job reads. Spark takes a batch for done whose parts it did not
    run: such a one is a `failure`, by what tasks say that they have read."""

    def __init__(self, lake: Lake, job: LandJob) -> None:
        self._lake = lake
        self._job = job
        self._query: tuple[str, Path] | None = None
        self._reached: Ends = job.starts
        self._looking = threading.Lock()
        self.failure: Exception | None = None

    def start(self, writer: "DataStreamWriter", checkpoint: Path) -> "StreamingQuery":
        """Take the batches of a query with a checkpoint."""
        # Makes the session this thread's active one, which Delta's sink asks for by name; any frame
        # does.
        self._lake.spark.createDataFrame([], "nothing int")
        rows = writer.format("delta").outputMode("append")
        query = rows.toTable(self._lake.name("records"))
        self._query = str(query.id), checkpoint
        return query

    def covered(self, query: "StreamingQuery") -> Ends:
        """See `LandingQuery.covered`. To be asked at least every hundred batches: Spark does not
        remember more of them, and those before are taken for read."""
        last = query.lastProgress
        if last is None:
            return {}
        with self._looking:
            batch = _batch_of(last, self._job.starts)
            if batch.end != self._reached and self.failure is None:
                follows = batch.start == self._reached
                self._take([last] if follows else query.recentProgress)
            return self._reached

    def fenced(self) -> bool:
        """See `LandingQuery.fenced`."""
        return self._query is not None and is_fenced_by_delta(self._lake, *self._query)

    def _take(self, reported: "Sequence[StreamingQueryProgress]") -> None:
        """Count batches that were read as they were planned, one behind the other."""
        batches = [_batch_of(progress, self._job.starts) for progress in reported]
        if all(batch.start != self._reached for batch in batches):
            logger.warning(
                "landing from cluster %s: Spark does not report some batches any more",
                self._job.alias,
            )
            self._reached = batches[0].start
        for batch in (batch for batch in batches if batch.start == self._reached):
            if batch.read >= batch.planned:
                self._reached = batch.end
                continue
            self.failure = ReplicationError(
                f"Spark reports a batch of cluster {self._job.alias} as landed of which its tasks "
                f"have read {batch.read:,} of {batch.planned:,} offsets; landing goes on from what "
                "is staged: compare that with `mirrorlake verify`, and Spark's version with "
                "docs/compatibility.md"
            )

    def stop_after_batch(self) -> None:
        """Nothing: behind a batch Spark plans the next one, which takes a moment."""

    def close(self, interrupted_after: float | None) -> None:
        """Have the next query begin with smaller batches than one that was not waited for longer
        than so many seconds."""
        if interrupted_after is not None:
            self._job.keep_pace(self._job.pace().after_failure(interrupted_after))

    def append(self, application: str) -> None:
        """Commit all that a job with an end reads, once for one application: by a task for each
        part, as a frame has them and no source."""
        job = self._job
        parts = job.parts(ranges_between(job.starts, job.final or {}), job.final_noted, job.tasks)
        numbers = self._lake.spark.range(0, len(parts), 1, max(1, len(parts)))
        rows = numbers.mapInArrow(partial(rows_of_parts, job, parts), _handed(job))
        writer = _records(job, rows).write.format("delta").mode("append")
        writer.option("txnAppId", application)
        writer.option("txnVersion", "1").saveAsTable(self._lake.name("records"))


def stream_of(spark: "SparkSession", job: LandJob) -> "DataFrame":
    """The rows of `records` that tasks of a query hand over; of what they have read its progress
    tells."""
    from pyspark.sql import functions as F

    from mirrorlake.landing.stream_source import source_of

    source = source_of(job, f"mirrorlake_land_{job.alias}", _handed(job))
    spark.dataSource.register(source)
    offsets = F.sum(F.when(F.col("partition") == PART_DONE, F.col("offset"))).alias(_OFFSETS_READ)
    handed = spark.readStream.format(source.name()).load().observe(_OFFSETS_READ, offsets)
    return _records(job, handed)


def _handed(job: LandJob) -> "StructType":
    """The columns that tasks hand over, as Spark declares them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema_for_spark(job.schema))


def _records(job: LandJob, rows: "DataFrame") -> "DataFrame":
    """Rows that tasks hand over as records, with the columns that Spark adds."""
    from pyspark.sql import functions as F

    added = {"source_cluster": F.lit(job.alias), "landed_at": F.timestamp_millis("batch_id")}
    columns = [added.get(name, F.col(name)).alias(name) for name in job.schema.names]
    return rows.where(F.col("partition") != PART_DONE).select(columns)


class _Batch(NamedTuple):
    """Where a batch begins and ends that Spark reports, and how many offsets its tasks have read,
    as far as they hand rows over."""

    start: Ends
    end: Ends
    read: int

    @property
    def planned(self) -> int:
        return offset_count(ranges_between(self.start, self.end))


def _batch_of(progress: "StreamingQueryProgress", starts: Ends) -> _Batch:
    """The batch of a query that began at `starts`: Spark names no start of the first one."""
    report = json.loads(progress.json)
    # Spark hands the offsets over as a JSON text within the JSON where it is one of Connect.
    given = [report["sources"][0].get(name) for name in ("startOffset", "endOffset")]
    start, end = (json.loads(each) if isinstance(each, str) else each for each in given)
    read = report.get("observedMetrics", {}).get(_OFFSETS_READ, {}).get(_OFFSETS_READ)
    begins = read_document(start)[0] if start else starts
    return _Batch(begins, read_document(end)[0] if end else begins, read or 0)
