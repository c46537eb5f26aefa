"""One landed batch into `records`, natively: a small one is read by the driver itself, a larger one by Spark's tasks.

Either way it is one commit by delta-rs that names the query and the number of the batch: a batch is in the table once,
whichever way it went and however often it is tried.
"""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake.transaction import AddAction

from mirrorlake import failpoints
from mirrorlake.lake.forgotten import without_forgotten
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.small_batches import SmallBatches
from mirrorlake.landing import open_ends
from mirrorlake.landing.job import SIZES_FILE, LandJob, document
from mirrorlake.landing.stage_file import Batch, StageFile
from mirrorlake.native.reader import Reader
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.spark.query_files import read_position

if TYPE_CHECKING:  # few records are landed without a session
    from pyspark.sql import DataFrame

#: First offset, inclusive, and end, exclusive, by partition.
Ranges = Mapping[TopicAndPartition, tuple[int, int]]


class NativeSink:
    """`foreachBatch` of one landing query over `native_source`. `application` is what its commits are known by."""

    def __init__(self, tables: PathTables, job: LandJob, application: str, small_batch_records: int) -> None:
        self._tables = tables
        self._job = job
        self._application = application
        self._small = SmallBatches(small_batch_records)
        self._before = dict(job.starts)
        self._reader: Reader | None = None
        self._record_bytes: dict[str, float] = {}

    def __call__(self, frame: "DataFrame", batch: int) -> None:
        """Commit a batch."""
        ranges, noted = self._noted(batch)
        if self.is_small(ranges):
            self.read_here(ranges, batch, noted)
        else:
            self._read_by_tasks(frame, batch)

    def is_small(self, ranges: Ranges) -> bool:
        """Whether the driver reads so much itself."""
        return sum(end - first for first, end in ranges.values()) <= self._small.most

    def close(self) -> None:
        """Let go of the driver's own client."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _noted(self, batch: int) -> tuple[Ranges, str | None]:
        """What a batch covers, by what Spark noted before it began; not every offset needs to have a record. And what
        the batch notes of logs that go on behind it."""
        noted = (Path(self._job.checkpoint) / "offsets" / str(batch)).read_text(encoding="utf-8")
        ends = read_position(batch, noted, {}).sources[0]
        ranges = {key: (self._before[key], end) for key, end in ends.items() if end > self._before[key]}
        self._before.update(ends)
        return ranges, open_ends.left(Path(self._job.checkpoint), document(ends))

    def read_here(
        self,
        ranges: Ranges,
        batch: int,
        noted: str | None,
        forgotten: Mapping[TopicAndPartition, OffsetRanges] | None = None,
    ) -> None:
        """Read the records in this process and commit them, with what is `noted` of logs that go on behind them and
        without those that are `forgotten`; its client is at the end of the log already and has them, as a rule. Raises
        KafkaException."""
        landed_at = time.time_ns() // 1_000_000
        if self._reader is None:
            self._reader = Reader(self._job.client, keep=True)
        ends = {key: end for key, (_, end) in ranges.items()}
        shared = Batch(self._job.alias, landed_at, self._job.generations, ends, noted)
        file = StageFile(Path(self._job.directory), self._job.schema, shared, "driver")
        try:
            for key, rows in self._reader.read(ranges):
                gone = (forgotten or {}).get(key)
                kept = rows if gone is None else without_forgotten(rows, gone)
                if kept.num_rows:
                    file.add(key, kept)
        except BaseException:
            self.close()
            raise
        failpoints.reached("taken")
        added = file.close()
        self._commit([] if added is None else added.to_pylist(), batch)

    def _read_by_tasks(self, frame: "DataFrame", batch: int) -> None:
        """Commit the files that tasks wrote. What the driver's client fetches ahead would be read by nobody."""
        if self._reader is not None:
            self._reader.keep_only(None)
        files = frame.toArrow().to_pylist()
        failpoints.reached("taken")
        self._commit(files, batch)
        self._learn(files)

    def _commit(self, files: Sequence[Mapping[str, Any]], batch: int) -> None:
        """Make files a part of the table, rows of ADDED."""
        now = time.time_ns() // 1_000_000
        adds = [AddAction(file["path"], file["size"], {}, now, True, file["stats"]) for file in files]
        if adds:
            self._tables.add_files("records", adds, self._application, batch)
        failpoints.reached("landed")
        if files:
            self._small.learn(sum(file["records"] for file in files), sum(file["bytes"] for file in files))

    def _learn(self, files: Sequence[Mapping[str, Any]]) -> None:
        """Note how large the topics' records are, for the tasks of the next batches."""
        for file in files:
            self._record_bytes.update(json.loads(file["topic_bytes"]))
        if self._record_bytes:
            path = Path(self._job.checkpoint) / SIZES_FILE
            path.with_suffix(".new").write_text(json.dumps(self._record_bytes), encoding="utf-8")
            path.with_suffix(".new").replace(path)
