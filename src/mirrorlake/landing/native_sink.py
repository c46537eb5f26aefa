"""One landed batch into `records`, natively: a small one is read by the driver itself, a larger one
by Spark's tasks.

Either way it is one commit by delta-rs that names the query and the number of the batch: a batch is
in the table once, whichever way it went and however often it is tried.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake.transaction import AddAction

from mirrorlake import failpoints
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.refusals import unusable
from mirrorlake.lake.forgotten import without_forgotten
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.small_batches import SmallBatches
from mirrorlake.landing.job import LandJob, document
from mirrorlake.landing.open_ends import read_open_ends
from mirrorlake.landing.pace import (
    in_small_answers,
    limit_after_failure,
    next_limit,
    reads_few_partitions,
)
from mirrorlake.landing.ranges import UNKNOWN_RECORD_BYTES
from mirrorlake.landing.stage_file import Batch, StageFile
from mirrorlake.native.reader import ClusterSilent, NativeReader
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.spark.query_files import read_position

if TYPE_CHECKING:  # few records are landed without a session
    from pyspark.sql import DataFrame

#: First offset, inclusive, and end, exclusive, by partition.
Ranges = Mapping[TopicAndPartition, tuple[int, int]]


class NativeSink:
    """`foreachBatch` of one landing query over `native_source`. `application` is what its commits
    are known by."""

    def __init__(
        self, tables: PathTables, job: LandJob, application: str, small_batch_records: int
    ) -> None:
        self._tables = tables
        self._job = job
        self._application = application
        self._small = SmallBatches(small_batch_records)
        self._before = dict(job.starts)
        self._reader: NativeReader | None = None
        self._record_bytes = job.record_bytes()
        self._limit = job.limit()
        self._size, self._seconds = (
            0,
            0.0,
        )  # of the last batch: bytes, and how long it took to read them
        self._reading, self._closing, self._no_more = threading.RLock(), False, False

    def __call__(self, frame: "DataFrame", batch: int) -> None:
        """Commit a batch."""
        if self._no_more:
            raise ReplicationError(
                f"landing from cluster {self._job.alias} takes no more batches: it is being stopped"
            )
        ranges, noted = self._noted(batch)
        with self.paced():
            if self.is_small(ranges):
                try:
                    self.read_here(ranges, batch, noted)
                except ClusterSilent as error:
                    raise unusable(self._job.alias, self._job.client, error.args[0]) from error
            else:
                self._read_by_tasks(frame, batch)

    @contextmanager
    def paced(self) -> Iterator[None]:
        """Let a batch, whether or not it comes to its end, say how much the next ones may hold."""
        began, self._size, self._seconds = time.monotonic(), 0, 0.0
        limit = self._limit
        try:
            yield
        except BaseException:
            limit = limit_after_failure(limit, time.monotonic() - began)
            raise
        else:
            limit = next_limit(limit, self._size, self._seconds)
        finally:
            if limit is not None and limit != self._limit:
                if in_small_answers(limit) != in_small_answers(self._limit):
                    self._close_reader()  # its client asks for answers of the other size
                self._job.keep_limit(limit)
            self._limit = limit

    def is_small(self, ranges: Ranges) -> bool:
        """Whether the driver reads so much itself."""
        return sum(end - first for first, end in ranges.values()) <= self._small.max_records

    def stop_after_batch(self) -> None:
        """Let no batch begin: where one follows the other, the moment between two would be hard to
        meet."""
        self._no_more = True

    def close(self) -> None:
        """End what the driver reads itself, which a stop may not have waited for, and let go of its
        client."""
        self._closing = True
        with self._reading:
            self._close_reader()

    def _close_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _noted(self, batch: int) -> tuple[Ranges, str | None]:
        """What a batch covers, by what Spark noted before it began; not every offset needs to have
        a record. And what the batch notes of logs that go on behind it."""
        noted = (Path(self._job.checkpoint) / "offsets" / str(batch)).read_text(encoding="utf-8")
        ends = read_position(batch, noted, {}).sources[0]
        ranges = {
            key: (self._before[key], end) for key, end in ends.items() if end > self._before[key]
        }
        self._before.update(ends)
        return ranges, read_open_ends(Path(self._job.checkpoint), document(ends))

    def read_here(
        self,
        ranges: Ranges,
        batch: int,
        noted: str | None,
        forgotten: Mapping[TopicAndPartition, OffsetRanges] | None = None,
    ) -> None:
        """Read the records in this process and commit them, with what is `noted` of logs that go on
        behind them and without those that are `forgotten`; its client is at the end of the log
        already and has them, as a rule. Raises KafkaException."""
        landed_at = time.time_ns() // 1_000_000
        ends = {key: end for key, (_, end) in ranges.items()}
        shared = Batch(self._job.alias, landed_at, self._job.generations, ends, noted)
        file = StageFile(Path(self._job.directory), self._job.schema, shared, "driver")
        began = time.monotonic()
        with self._reading:
            self._fill(file, ranges, forgotten or {})
        self._seconds = time.monotonic() - began
        failpoints.reached("taken")
        added = file.close()
        self._commit([] if added is None else added.to_pylist(), batch)

    def _fill(
        self, file: StageFile, ranges: Ranges, forgotten: Mapping[TopicAndPartition, OffsetRanges]
    ) -> None:
        if self._reader is None:
            self._reader = NativeReader(
                self._job.client, keep=True, small_answers=in_small_answers(self._limit)
            )
        if reads_few_partitions(self._limit, self._expected(ranges)):
            self._reader.keep_prefetched(
                ranges
            )  # what is fetched ahead of others would take the link from these
        try:
            for key, rows in self._reader.read(ranges):
                if self._closing:
                    raise ReplicationError(
                        f"landing from cluster {self._job.alias} was stopped within a batch"
                    )
                kept = without_forgotten(rows, forgotten[key]) if key in forgotten else rows
                if kept.num_rows:
                    file.add(key, kept)
        except BaseException:
            self._close_reader()
            raise

    def _expected(self, ranges: Ranges) -> float:
        """How large the records of a batch are by what those before them were, bytes as Arrow has
        them."""
        return sum(
            (end - first) * self._record_bytes.get(topic, UNKNOWN_RECORD_BYTES)
            for (topic, _), (first, end) in ranges.items()
        )

    def _read_by_tasks(self, frame: "DataFrame", batch: int) -> None:
        """Commit the files that tasks wrote. What the driver's client fetches ahead would not be
        read."""
        if self._reader is not None:
            self._reader.keep_prefetched(())
        files = frame.toArrow().to_pylist()
        self._seconds = max((file["seconds"] for file in files), default=0.0)
        failpoints.reached("taken")
        self._commit(files, batch)

    def _commit(self, files: Sequence[Mapping[str, Any]], batch: int) -> None:
        """Make files a part of the table, rows of ADDED."""
        now = time.time_ns() // 1_000_000
        adds = [
            AddAction(
                file["path"],
                file["size"],
                {},
                modification_time=now,
                data_change=True,
                stats=file["stats"],
            )
            for file in files
        ]
        if adds:
            self._tables.add_files("records", adds, self._application, batch)
        failpoints.reached("landed")
        if files:
            self._size = sum(file["bytes"] for file in files)
            self._small.learn(sum(file["records"] for file in files), self._size)
            self._learn(files)

    def _learn(self, files: Sequence[Mapping[str, Any]]) -> None:
        """Note how large the topics' records are, for the next batches, where they are not as they
        were."""
        known, sizes = self._record_bytes, dict[str, float]()
        for file in files:
            sizes.update(json.loads(file["topic_bytes"]))
        if any(
            not 0.8 * size <= known.get(topic, 0.0) <= 1.25 * size for topic, size in sizes.items()
        ):
            self._record_bytes = {**known, **sizes}
            self._job.keep_record_bytes(self._record_bytes)
