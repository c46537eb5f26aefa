"""The sink of a landing query whose batches the session commits: into a catalog, by Delta's own
sink; and through Spark Connect, where a sink of ours would run in another process.

Spark has been seen to take a batch for done without having run a task of it. So tasks report what
they have read (`receipts.py`), and a batch counts once they have read all of it. Delta has
committed by then: `landing/unread.py` looks for holes.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mirrorlake import failpoints
from mirrorlake.lake.lake import Lake
from mirrorlake.landing.checkpoints import has_name, is_fenced_by_delta, keep_read, newest_end
from mirrorlake.landing.job import LandJob
from mirrorlake.landing.receipts import RECEIPTS, not_read, reported_batch
from mirrorlake.landing.stage_rows import ADDED_BY_SPARK, PART_DONE, rows_of_parts, schema_for_spark
from mirrorlake.offsets.positions import Ends, ranges_between
from mirrorlake.spark.tasks import numbers

if TYPE_CHECKING:  # few records are landed without a session
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

logger = logging.getLogger(__name__)


class SessionSink:
    """Has a session commit what a job reads. A batch not read in full is a `failure`."""

    def __init__(self, lake: Lake, job: LandJob) -> None:
        self._lake = lake
        self._job = job
        self._query: StreamingQuery | None = None
        #: The query's id and checkpoint, known without a session, which may have ended.
        self._named: tuple[str, Path] | None = None
        self._reached: Ends = job.starts
        self._passed_over = self._shows_name = False
        self._looking = threading.Lock()
        self.failure: Exception | None = None

    def start(self, writer: "DataStreamWriter", checkpoint: Path) -> "StreamingQuery":
        """Start a query with a checkpoint. Raises OSError if its mark cannot record where it
        begins: a hole that it leaves would not be looked for."""
        self._keep_read(checkpoint)
        # Creating any frame makes the session this thread's active one, which Delta's sink needs.
        self._lake.spark.createDataFrame([], "nothing int")
        rows = writer.format("delta").outputMode("append")
        query = rows.toTable(self._lake.name("records"))
        self._query, self._named = query, (str(query.id), checkpoint)
        return query

    def covered(self) -> Ends:
        """See `LandingQuery.covered`. To be called at least every forty batches: a local session
        remembers no more, and what earlier ones have read is then unknown."""
        query = self._query
        last = None if query is None else query.lastProgress
        if query is None or last is None:
            return {}
        failpoints.reached("reported")
        with self._looking:
            batch = reported_batch(last.json, self._job.starts)
            if batch.end != self._reached and self.failure is None and not self._skips():
                follows = batch.start == self._reached
                self._take([last] if follows else query.recentProgress)
            return self._reached

    def _skips(self) -> bool:
        """Whether Delta skips the batches that Spark reports, since another process has taken over.
        If the checkpoint never showed the query's name, that is left to `fenced`."""
        if self._named is None:
            return False
        if has_name(self._named[1]):
            self._shows_name = True
            return False
        return self._shows_name and self.fenced()

    @property
    def compared(self) -> bool:
        """Whether tasks have read all that the query has planned. If not, its end has to check
        whether that left a hole (`checkpoints.left_queries`)."""
        if self._named is None:
            return True
        come_to_it = newest_end(self._named[1]) == self._reached
        return come_to_it and not self._passed_over and self.failure is None

    def fenced(self) -> bool:
        """See `LandingQuery.fenced`."""
        return self._named is not None and is_fenced_by_delta(self._lake, *self._named)

    def _take(self, reported: "Sequence[StreamingQueryProgress]") -> None:
        """Count the batches that follow one another and were read as planned."""
        batches = [reported_batch(progress.json, self._job.starts) for progress in reported]
        if all(batch.start != self._reached for batch in batches):
            logger.warning(
                "landing from cluster %s: Spark does not report some batches any more; what they "
                "staged is compared with what they were to when this query ends",
                self._job.alias,
            )
            self._reached, self._passed_over = batches[0].start, True
        for batch in (batch for batch in batches if batch.start == self._reached):
            self.failure = not_read(self._job.alias, batch.planned, batch.receipts)
            if self.failure is not None:
                return
            self._reached = batch.end
        if self._named is not None and not self._passed_over:
            try:
                self._keep_read(self._named[1])
            except OSError as error:
                # The end of the query then checks more than it would have to.
                alias = self._job.alias
                logger.info("how far landing from cluster %s is was not kept: %s", alias, error)

    def _keep_read(self, checkpoint: Path) -> None:
        job = self._job
        keep_read(self._lake, job.alias, checkpoint, self._reached, job.generations)

    def stop_after_batch(self) -> None:
        """Do nothing: after a batch Spark plans the next one, which takes a moment."""

    def close(self, interrupted_after: float | None) -> None:
        """If a stop interrupted a batch after so many seconds, let the next query begin smaller."""
        if interrupted_after is not None:
            self._job.keep_pace(self._job.pace().after_failure(interrupted_after))

    def append(self, application: str, check: Callable[[], object] = lambda: None) -> None:
        """Commit all that a job with an end reads, once per application. It is read by a frame with
        a task for each part, not by the source. Spark keeps what tasks read on their disks until
        all of it is there; only then it is committed, unless `check` raises. Raises
        ReplicationError if a part is missing."""
        job = self._job
        ranges = ranges_between(job.starts, job.final or {})
        parts = job.parts(ranges, job.final_noted, job.tasks_for(ranges), job.pace())
        read = partial(rows_of_parts, job, parts)
        rows = numbers(self._lake.spark, len(parts)).mapInArrow(read, _handed(job)).persist()
        try:
            done = rows.where(rows["partition"] == PART_DONE).select("topic").collect()
            problem = not_read(job.alias, ranges, [row["topic"] for row in done])
            if problem is not None:
                raise problem
            check()
            writer = _records(job, rows).write.format("delta").mode("append")
            writer.option("txnAppId", application)
            writer.option("txnVersion", "1").saveAsTable(self._lake.name("records"))
        finally:
            rows.unpersist()


def stream_of(spark: "SparkSession", job: LandJob, lake_id: str) -> "DataFrame":
    """The rows of `records` that a query's tasks hand over; its progress has what they read.

    A session knows sources by name, and the last one registered counts: a session may land another
    lake too, from a cluster with the same alias.
    """
    from pyspark.sql import functions as F

    from mirrorlake.landing.stream_source import source_of

    source = source_of(job, f"mirrorlake_land_{job.alias}_{lake_id}", _handed(job))
    spark.dataSource.register(source)
    # A set: if Spark runs a stage twice, each task counts once.
    receipts = F.collect_set(F.when(F.col("partition") == PART_DONE, F.col("topic")))
    handed = spark.readStream.format(source.name()).load()
    return _records(job, handed.observe(RECEIPTS, receipts.alias(RECEIPTS)))


def _handed(job: LandJob) -> "StructType":
    """The columns that tasks hand over, as Spark declares them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema_for_spark(job.schema))


def _records(job: LandJob, rows: "DataFrame") -> "DataFrame":
    """The handed rows that are records, with the column that Spark adds."""
    from pyspark.sql import functions as F

    records = rows.where(F.col("partition") != PART_DONE)
    return records.withColumn(ADDED_BY_SPARK, F.lit(job.alias)).select(job.schema.names)
