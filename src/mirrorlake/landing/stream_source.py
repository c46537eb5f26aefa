"""The source of a landing query: a Python data source for Spark (version 4.0 and later).

Spark plans and triggers, keeps the offsets in its checkpoint and runs the tasks. `batch_planner.py`
decides where a batch ends, in a process beside the driver: only Spark 4.2 has a limit for Python
sources, the one that it asks them for (SPARK-55304). Tasks hand rows to the session's sink
(`landing/session_sink.py`); where this package commits (`PathSink`) none of the source's runs.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from mirrorlake.errors import ReplicationError
from mirrorlake.landing.batch_planner import BatchPlanner
from mirrorlake.landing.job import LandJob, Part
from mirrorlake.landing.pace import UNKNOWN_RECORD_BYTES, Pace
from mirrorlake.landing.ranges import offsets_document, read_document
from mirrorlake.offsets.positions import Ends, offset_count, ranges_between

if TYPE_CHECKING:  # three processes import this, and each needs a part of the rest at most
    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

logger = logging.getLogger(__name__)


def source_of(job: LandJob, name: str, schema: "StructType | str") -> type[DataSource]:
    """A source for Spark to register under a name, of rows of a schema. The job goes with the
    class, and so not into the query's options, which Spark shows."""
    rows = schema

    class LandingSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> "StructType | str":
            return rows

        def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
            return _Batches(job)

    return LandingSource


class _Batches(DataSourceStreamReader):
    """Plans the batches of a job, and reads a task's part of one."""

    def __init__(self, job: LandJob) -> None:
        self._job = job
        self._reached: Ends = job.starts
        self._document = offsets_document(job.starts)
        self._planning: BatchPlanner | None = None  # only in the planner's process
        #: The offset count of the batch in hand and its start time; and the pace learned from it.
        self._handed: tuple[int, float] | None = None
        self._learned: Pace | None = None
        #: The end of the planned batch, until Spark has asked for its parts.
        self._unasked: Ends | None = None

    def initialOffset(self) -> dict[str, Any]:
        return offsets_document(self._job.starts)  # Spark asks when the first batch is planned

    def getDefaultReadLimit(self) -> "ReadLimit":
        from pyspark.sql.streaming.datasource import ReadMaxRows  # of Spark 4.2, which asks for it

        return ReadMaxRows(self._job.max_records)

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: "ReadLimit | None" = None
    ) -> dict[str, Any]:
        """Where the next batch ends. Spark 4.2 passes where it starts, and the limit that it was
        given; earlier versions pass neither, and ask again only after the batch in hand."""
        job = self._job
        if start is not None:
            (self._reached, _), self._document = read_document(start), start
        if job.directory is None and self._unasked == self._reached:
            # Its tasks have not run: records that the next batch staged would lie behind a hole.
            raise ReplicationError(
                f"Spark takes a batch of cluster {job.alias} for done and never asked what its "
                "tasks are to read: compare its version with docs/compatibility.md"
            )
        most = getattr(limit, "max_rows", job.max_records)
        planned = self._planner().next(self._reached, self._pace(), most)
        if planned is not None:
            self._reached = planned.end
            self._document = offsets_document(planned.end, planned.noted)
            self._unasked = dict(planned.end)
        return self._document

    def _pace(self) -> Pace:
        """The pace of the next batch. Where the session's sink commits, the batch before is done
        when the next one is asked for: right then, or when its trigger's time is over."""
        job, handed = self._job, self._handed
        pace, self._handed = self._learned or job.pace(), None
        if job.directory is not None or handed is None:
            return pace
        offsets, seconds = handed[0], time.monotonic() - handed[1]
        took = seconds if seconds > job.trigger_seconds else 0.0
        most = job.max_records * UNKNOWN_RECORD_BYTES
        learned = pace.after(offsets * UNKNOWN_RECORD_BYTES, took, most=most)
        if learned != pace:
            self._learned = learned
            try:
                job.keep_pace(learned)
            except OSError as error:  # the session's driver may be on another machine
                logger.info("the next query begins with small batches: %s", error)
        return learned

    def _planner(self) -> BatchPlanner:
        if self._planning is None:
            self._planning = BatchPlanner(self._job)
            if self._job.final is None:
                _alone_in_this_process()
        return self._planning

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        (before, _), (behind, noted) = read_document(start), read_document(end)
        ranges, self._unasked = ranges_between(before, behind), None
        self._handed = offset_count(ranges), time.monotonic()
        job, pace = self._job, self._learned or self._job.pace()
        parts = job.parts(ranges, noted, job.tasks_for(ranges), pace)
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        from mirrorlake.landing.stage_rows import read_part, row_batches  # which only a task needs

        part: Part = partition.value
        return row_batches(self._job, part, read_part(self._job, part))


def _alone_in_this_process() -> None:
    """Set up a process that only plans the batches of one query, for ever."""
    from mirrorlake.heaps import collect_rarely

    collect_rarely()
    # The worker asks the same cluster and reports problems; this process's output is not shown.
    logging.getLogger("mirrorlake.kafka").setLevel(logging.ERROR)
