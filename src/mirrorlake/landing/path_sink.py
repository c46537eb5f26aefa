"""The batches of a landing query into a lake at a path: the driver reads a small one itself, a
larger one is Spark's tasks'. Each is one commit by delta-rs that names the query and the number of
the batch: a batch is in the table once, whichever way it went and however often it is tried."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake.transaction import AddAction

from mirrorlake import failpoints
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.log import Log, open_log
from mirrorlake.kafka.refusals import unusable
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.small_batches import SmallBatches
from mirrorlake.landing.job import LandJob, Pace, read_document
from mirrorlake.landing.pace import (
    in_small_answers,
    limit_after_failure,
    next_limit,
    reads_few_partitions,
)
from mirrorlake.landing.ranges import UNKNOWN_RECORD_BYTES
from mirrorlake.landing.stage_file import write_file
from mirrorlake.native.reader import ClusterSilent
from mirrorlake.offsets.positions import Ranges, TopicAndPartition, offset_count

if TYPE_CHECKING:  # few records are landed without a session
    from pyspark.sql import DataFrame


class PathSink:
    """Commits what a job reads. `application` is what its commits are known by, `checkpoint` that
    of its query, if it has one, and `fenced` asks whether another process has taken over."""

    def __init__(
        self,
        tables: PathTables,
        job: LandJob,
        *,
        application: str,
        checkpoint: Path | None,
        small_batch_records: int,
        fenced: Callable[[], bool],
    ) -> None:
        self._tables = tables
        self._job = job
        self._application = application
        self._checkpoint = checkpoint
        self._small = SmallBatches(small_batch_records)
        self.fenced = fenced
        self._before = dict(job.starts)
        self._pace = job.pace()
        self._log: Log | None = None
        self._reading, self._closing, self._no_more = threading.RLock(), False, False

    def __call__(self, frame: "DataFrame", batch: int) -> None:
        """`foreachBatch` of a query over `stream_source`: commit a batch."""
        if self._no_more:
            raise ReplicationError(
                f"landing from cluster {self._job.alias} takes no more batches: it is being stopped"
            )
        ranges, noted = self._planned(batch)
        if not self.is_small(ranges):
            with self._paced():
                self._commit_files_of(frame, batch)
            return
        try:
            self.land(ranges, noted, batch)
        except ClusterSilent as error:
            raise unusable(self._job.alias, self._job.client, error.args[0]) from error

    def is_small(self, ranges: Ranges) -> bool:
        """Whether the driver reads so much itself."""
        return offset_count(ranges) <= self._small.max_records

    def land(self, ranges: Ranges, noted: str | None, batch: int) -> None:
        """Read in this process, and commit, as the number `batch` of the application; its client is
        at the end of the log already and has the records, as a rule. `noted` is what the batch
        notes of the ends of logs. Raises KafkaException and StagingError."""
        with self._paced(), self._reading:
            began = time.monotonic()
            tasks = 1 + offset_count(ranges) // self._job.max_records  # each file has a bound
            written = (
                write_file(self._job, part, self._read(part.ranges), "driver")
                for part in self._job.parts(ranges, noted, tasks)
            )
            files = [file for rows in written if rows is not None for file in rows.to_pylist()]
            self._commit(files, batch, time.monotonic() - began)

    def stop_after_batch(self) -> None:
        """Let no batch begin: where one follows the other, the moment between two would be hard to
        meet."""
        self._no_more = True

    def close(self) -> None:
        """End what the driver reads itself, which a stop may not have waited for, and let go of its
        client."""
        self._closing = True
        with self._reading:
            self._close_log()

    def _close_log(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            log.close()

    def _planned(self, batch: int) -> tuple[Ranges, str | None]:
        """What a batch covers and notes, by what Spark wrote before it began; not every offset
        needs to have a record."""
        assert self._checkpoint is not None
        written = (self._checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8")
        ends, noted = read_document(json.loads(written.splitlines()[-1]))
        before, self._before = self._before, ends
        return {key: (before[key], end) for key, end in ends.items() if end > before[key]}, noted

    def _read(self, ranges: Ranges) -> Iterator[tuple[TopicAndPartition, pa.RecordBatch]]:
        limit = self._pace.limit
        if self._log is None:
            self._log = open_log(self._job.client, keep=True, small_answers=in_small_answers(limit))
        if reads_few_partitions(limit, self._expected_bytes(ranges)):
            # What is fetched ahead of others would take the link from these.
            self._log.keep_prefetched(ranges)
        try:
            for key, rows in self._log.read(ranges):
                if self._closing:
                    raise ReplicationError(
                        f"landing from cluster {self._job.alias} was stopped within a batch"
                    )
                yield key, rows
        except BaseException:
            self._close_log()
            raise

    def _expected_bytes(self, ranges: Ranges) -> float:
        """How large the records of a batch are by what those before them were, bytes as Arrow has
        them."""
        sizes = self._pace.record_bytes
        return sum(
            (end - first) * sizes.get(topic, UNKNOWN_RECORD_BYTES)
            for (topic, _), (first, end) in ranges.items()
        )

    def _commit_files_of(self, frame: "DataFrame", batch: int) -> None:
        """Commit the files that tasks wrote. What the driver's client fetches ahead would not be
        read."""
        if self._log is not None:
            self._log.keep_prefetched(())
        files = frame.toArrow().to_pylist()
        self._commit(files, batch, max((file["seconds"] for file in files), default=0.0))

    def _commit(self, files: Sequence[Mapping[str, Any]], batch: int, seconds: float) -> None:
        """Make files a part of the table, rows of ADDED, that took so long to read."""
        failpoints.reached("taken")
        now = time.time_ns() // 1_000_000
        adds = [
            AddAction(file["path"], file["size"], {}, now, data_change=True, stats=file["stats"])
            for file in files
        ]
        if adds:
            self._tables.add_files("records", adds, self._application, batch)
        failpoints.reached("landed")
        size = sum(file["bytes"] for file in files)
        self._small.learn(sum(file["records"] for file in files), size)
        limit = next_limit(self._pace.limit, size, seconds)
        self._keep(Pace(limit, _sizes(self._pace.record_bytes, files)))

    @contextmanager
    def _paced(self) -> Iterator[None]:
        """Let a batch that does not come to its end say how much the next ones may hold, too."""
        began = time.monotonic()
        try:
            yield
        except BaseException:
            limit = limit_after_failure(self._pace.limit, time.monotonic() - began)
            self._keep(replace(self._pace, limit=limit))
            raise

    def _keep(self, pace: Pace) -> None:
        if in_small_answers(pace.limit) != in_small_answers(self._pace.limit):
            self._close_log()  # its client asks for answers of the other size
        if pace != self._pace:
            self._job.keep_pace(pace)
        self._pace = pace


def _sizes(known: Mapping[str, float], files: Iterable[Mapping[str, Any]]) -> Mapping[str, float]:
    """How large the topics' records are by the newest files, where they are not as they were."""
    sizes: dict[str, float] = {}
    for file in files:
        sizes.update(json.loads(file["topic_bytes"]))
    same = all(0.8 * size <= known.get(topic, 0.0) <= 1.25 * size for topic, size in sizes.items())
    return known if same else {**known, **sizes}
