"""The sink of a landing query into a lake at a path: this process commits its batches.

It commits what it has read itself, of a small batch, or what Spark's tasks wrote. Each batch is one
commit by delta-rs that names the query and the batch's number, so the table has it once, whichever
way and however often it is tried. Elsewhere the session commits (`landing/session_sink.py`).
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake.transaction import AddAction

from mirrorlake import failpoints
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.client_pool import Breadth
from mirrorlake.kafka.log import Log, open_log
from mirrorlake.kafka.refusals import silence_in_words
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.small_batches import SmallBatches
from mirrorlake.landing.checkpoints import is_fenced, planned_end
from mirrorlake.landing.job import LandJob, Part
from mirrorlake.landing.pace import Pace
from mirrorlake.landing.ranges import read_document
from mirrorlake.landing.stage_file import StagedFile, write_parts
from mirrorlake.landing.stage_rows import Read, read_part
from mirrorlake.offsets.positions import (
    Ends,
    Ranges,
    TopicAndPartition,
    offset_count,
    ranges_between,
)
from mirrorlake.spark.causes import cause_of
from mirrorlake.spark.tasks import Done, dealt, run_by_spark, run_here

if TYPE_CHECKING:  # few records are landed without a session
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class DriverLog:
    """Reads parts of a job by one client, kept from one batch to the next, and replaced once it
    knows many more partitions than these have."""

    def __init__(self, job: LandJob) -> None:
        self._job = job
        self._log: Log | None = None
        #: The partitions that the client has been asked for.
        self._asked: set[TopicAndPartition] = set()
        self._breadth = Breadth()
        #: Whether reading is given up: a stop does not wait for it.
        self.closing = False

    def read(self, pace: Pace, part: Part) -> Read:
        """See `Log.read`. Raises ReplicationError once it is `closing`."""
        if self._breadth.is_outgrown(len(self._asked), len(part.ranges)):
            self.close()
        self._asked.update(part.ranges)
        if self._log is None:
            small_answers = pace.in_small_answers
            self._log = open_log(self._job.client, keep=True, small_answers=small_answers)
        counts = {key: end - first for key, (first, end) in part.ranges.items()}
        over_slow_link = pace.reads_few_partitions(pace.size_of(counts))
        if over_slow_link:
            # Fetching ahead for other partitions would take the link from these.
            self._log.keep_prefetched(part.ranges)
        for key, rows in self._log.read(part.ranges):
            if self.closing:
                raise ReplicationError(
                    f"landing from cluster {self._job.alias} was stopped within a batch"
                )
            yield key, rows
        if not over_slow_link:  # there, what is fetched ahead is read next
            self._log.pause()

    def drop_prefetched(self) -> None:
        """Fetch nothing ahead: others read the next batch."""
        if self._log is not None:
            self._log.keep_prefetched(())

    def close(self) -> None:
        """Let go of the client; the next batch gets another one."""
        log, self._log = self._log, None
        self._asked.clear()
        if log is not None:
            log.close()


class PathSink:
    """Commits what a job reads by delta-rs, as `application`. A `failure` ends the query."""

    failure: Exception | None = None

    def __init__(self, lake: PathLake, job: LandJob, application: str) -> None:
        self._lake = lake
        self._job = job
        self._application = application
        self._small = SmallBatches(job.small_batch_records)
        #: What the batches so far tell about the next one.
        self.pace = job.pace()
        self._commit_seconds = deque[float](maxlen=9)
        self._log = DriverLog(job)
        #: The offsets up to which it has committed batches of a query.
        self._reached: Ends = {}
        #: See `SessionSink.compared`: whether each of its commits is known to be there or not to
        #: be. A commit whose answer was lost may come later, unless the next query fences this one,
        #: for which it has to find its name (`checkpoints.end_queries`).
        self.compared = True
        self._in_hand, self._no_more = threading.RLock(), False

    def start(self, writer: "DataStreamWriter", checkpoint: Path) -> "StreamingQuery":
        """Start a query with a checkpoint, and take its batches."""

        def take(frame: "DataFrame", batch: int) -> None:
            end, noted = read_document(planned_end(checkpoint, batch))
            try:
                with silence_in_words(self._job.alias, self._job.client):
                    ranges = ranges_between(self._reached or self._job.starts, end)
                    self.take(ranges, end, noted, batch, frame.sparkSession)
            except Exception:
                raise
            except BaseException as error:
                # Such as a panic in Rust: py4j hands none back, and Spark would wait for ever.
                raise ReplicationError(
                    "a batch could not be landed, since a library failed in itself: "
                    f"{cause_of(error)}"
                ) from error

        return writer.foreachBatch(take).start()

    def take(
        self,
        ranges: Ranges,
        end: Ends,
        noted: str | None,
        batch: int,
        spark: "SparkSession | None" = None,
    ) -> None:
        """Land the batch of a query that ends at `end`; see `land`."""
        self.land(ranges, noted, batch, spark)
        self._reached = end

    def covered(self) -> Ends:
        """See `LandingQuery.covered`."""
        return self._reached

    @property
    def small_records(self) -> int:
        """How many records this process reads itself at a time."""
        return self._small.max_records

    def is_small(self, ranges: Ranges) -> bool:
        """Whether so few offsets are read by this process itself."""
        return offset_count(ranges) <= self.small_records

    def land(
        self,
        ranges: Ranges,
        noted: str | None,
        batch: int,
        spark: "SparkSession | None" = None,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        """Read `ranges`, and commit them as the number `batch` of the application. A batch that is
        not small is read by tasks of a session, if there is one. `noted` is what the batch notes of
        the ends of logs; `check` is called once all is read, and if it raises, nothing is
        committed. Raises KafkaException and StagingError, and ClusterUnusable from tasks."""
        asked = time.monotonic()
        try:
            with self._in_hand:
                self._check_goes_on()
                began, here = time.monotonic(), spark is None or self.is_small(ranges)
                files = self._written(ranges, noted, None if here else spark).checked()
                by_tasks = max((file.seconds for file in files), default=0.0)
                check()
                self._commit(files, batch, time.monotonic() - began if here else by_tasks)
        except BaseException:  # an unfinished batch, too, tells how much the next one may hold
            self._keep(self.pace.after_failure(time.monotonic() - asked))
            raise

    def fenced(self) -> bool:
        """See `LandingQuery.fenced`."""
        return is_fenced(self._lake, self._application)

    def stop_after_batch(self) -> None:
        """Let no more batch begin: a stop would hardly meet the moment between two in a row."""
        self._no_more = True

    def close(self, _interrupted_after: float | None = None) -> None:
        """End reading here, which a stop may not have waited for, and close its client."""
        self._log.closing = True
        with self._in_hand:
            self._log.close()

    def _check_goes_on(self) -> None:
        """Raise ReplicationError if no more batch may begin."""
        if self._no_more:
            raise ReplicationError(
                f"landing from cluster {self._job.alias} takes no more batches: it is being stopped"
            )

    def _written(
        self, ranges: Ranges, noted: str | None, spark: "SparkSession | None"
    ) -> Done[StagedFile]:
        """Write the files of a batch."""
        job = self._job
        if spark is None:
            count = 1 + offset_count(ranges) // job.max_records  # each file has a bound
            write = partial(write_parts, job, "driver", partial(self._log.read, self.pace))
            return run_here(write, dealt(job.parts(ranges, noted, count, self.pace), 1))
        self._log.drop_prefetched()
        parts = job.parts(ranges, noted, job.tasks, self.pace)
        write = partial(write_parts, job, "task", partial(read_part, job))
        return run_by_spark(spark, write, parts, len(parts))

    def _commit(self, files: Sequence[StagedFile], batch: int, seconds: float) -> None:
        """Add files to the table; reading them took `seconds`."""
        failpoints.reached("taken")
        now = time.time_ns() // 1_000_000
        landed = [one for file in files for one in file.landed]
        adds = [
            AddAction(file.path, file.size, {}, now, data_change=True, stats=file.stats)
            for file in files
        ]
        if adds:
            began, self.compared = time.monotonic(), False
            with self._lake.measured("records"):
                self._lake.tables.add_files("records", adds, self._application, batch)
            self.compared = True
            self._commit_seconds.append(time.monotonic() - began)
            self._lake.meter.landed(self._job.alias, landed)
        failpoints.reached("landed")
        sizes, counts = Counter[str](), Counter[str]()
        for one in landed:
            sizes[one.topic] += one.bytes
            counts[one.topic] += one.records
        means = {topic: size / counts[topic] for topic, size in sizes.items()}
        self._small.learn(counts.total(), sizes.total())
        pace = self.pace.after(sizes.total(), seconds, means)
        self._keep(pace.after_commits(self._commit_seconds))

    def _keep(self, pace: Pace) -> None:
        if pace.in_small_answers != self.pace.in_small_answers:
            self._log.close()  # its client asks for answers of another size
        if pace != self.pace:
            self._job.keep_pace(pace)
        self.pace = pace
