"""The source of a landing query that reads Kafka natively: a Python data source of Spark's (its
version 4.0 and later).

Spark plans and triggers, keeps the offsets in its checkpoint and runs the tasks. Where a batch ends
is decided here (`latestOffset`, in a process beside the driver): Spark 4.0 sets a Python source no
limit. A task reads its ranges, writes a file of `records` that nothing refers to yet, and hands
over what a commit has to say of it; the driver commits the files of all tasks at once
(`landing/native_sink.py`). Files of attempts that failed stay unreferenced, until `maintain`
removes them.
"""

import logging
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from mirrorlake import failpoints
from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.log import read_ranges
from mirrorlake.landing.job import LandJob, document
from mirrorlake.landing.open_ends import read_open_ends, write_open_ends
from mirrorlake.landing.pace import in_small_answers
from mirrorlake.landing.ranges import OffsetRange, next_ends, shared_out
from mirrorlake.offsets.as_of import noted_ends
from mirrorlake.offsets.positions import TopicAndPartition

if (
    TYPE_CHECKING
):  # three processes import this before a query begins, and each needs a part of the rest, or none
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from mirrorlake.kafka.admin import ClusterAdmin

#: How long no leader may answer before the query fails, seconds.
PATIENCE_SECONDS = 20.0


def source_of(job: LandJob) -> type[DataSource]:
    """A source for Spark to register. The job goes with the class, and so not into the query's
    options, which Spark shows."""
    return type("NativeSource", (_NativeSource,), {"job": job, "__doc__": _NativeSource.__doc__})


class _NativeSource(DataSource):
    """A row for each file that was written: stage_file.ADDED, and how long it took to read."""

    job: LandJob

    @classmethod
    def name(cls) -> str:
        return f"mirrorlake_land_{cls.job.alias}"

    def schema(self) -> str:
        return (
            "path string, size bigint, stats string, records bigint, bytes bigint, topic_bytes "
            "string, seconds double"
        )

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        return _StreamReader(self.job)


class _Part(InputPartition):
    """What one task reads; up to where the whole batch covers each partition, and what it notes of
    open ends. `small_answers`: see `native.reader.NativeReader`."""

    def __init__(
        self,
        ranges: list[OffsetRange],
        landed_at: int,
        ends: Mapping[TopicAndPartition, int],
        noted: str | None,
        small_answers: bool,
    ) -> None:
        super().__init__(None)
        self.ranges = ranges
        self.landed_at = landed_at
        self.ends = ends
        self.noted = noted
        self.small_answers = small_answers


class _StreamReader(DataSourceStreamReader):
    """Plans batches, and reads a task's part of one."""

    def __init__(self, job: LandJob) -> None:
        self._job = job
        self._reached = dict(job.starts)
        self._admin: ClusterAdmin | None = None
        self._quiet_since = -math.inf
        self._heard = time.monotonic()

    def initialOffset(self) -> dict[str, Any]:
        return document(self._job.starts)

    def latestOffset(self) -> dict[str, Any]:
        job = self._job
        due = time.monotonic() - self._quiet_since >= job.waiting_seconds
        ends = job.final if job.final is not None else self._log_ends()
        waiting, limit = () if due else job.waiting, job.limit()
        reached = next_ends(
            self._reached,
            ends,
            max_records=job.max_records,
            waiting=waiting,
            record_bytes=job.record_bytes(),
            batch_bytes=limit,
        )
        if any(reached[key] != self._reached[key] for key in job.waiting):
            self._quiet_since = time.monotonic()
        if reached != self._reached:
            write_open_ends(Path(job.checkpoint), document(reached), self._noted(reached, ends))
        self._reached = reached
        return document(reached)

    def _noted(
        self, reached: Mapping[TopicAndPartition, int], ends: Mapping[TopicAndPartition, int]
    ) -> str | None:
        """What a batch notes of logs that go on behind it; None where it does not reach the ends of
        all."""
        if any(ends.get(key) != end for key, end in reached.items()):
            return None
        if self._admin is None:
            return self._job.final_noted
        return noted_ends(
            reached, self._admin.end_offsets(list(reached), committed=False, skip_silent=True)
        )

    def _log_ends(self) -> Mapping[TopicAndPartition, int]:
        """The last stable offsets. Raises ClusterUnreachable when no leader answers for long; a
        partition whose leader alone does not answer stays where it is, until the landing worker
        finds out why."""
        from mirrorlake.kafka.admin import ClusterAdmin

        if self._admin is None:
            # The worker asks the same cluster, and reports it; this process's output is not shown.
            logging.getLogger("mirrorlake.kafka").setLevel(logging.ERROR)
            self._admin = ClusterAdmin(self._job.alias, self._job.client)
        ends = self._admin.end_offsets(list(self._reached), skip_silent=True)
        now = time.monotonic()
        if ends or not self._reached:
            self._heard = now
        elif now - self._heard > PATIENCE_SECONDS:
            raise ClusterUnreachable(
                f"no leader of cluster {self._job.alias} reports the ends of its partitions; it is "
                "asked again",
                alias=self._job.alias,
            )
        return ends

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        before, behind = _offsets(start), _offsets(end)
        ranges = [
            OffsetRange(*key, before[key], behind[key])
            for key in sorted(behind)
            if before[key] < behind[key]
        ]
        now = time.time_ns() // 1_000_000
        noted = read_open_ends(Path(self._job.checkpoint), end)
        parts = shared_out(ranges, self._job.tasks, self._job.record_bytes())
        small = in_small_answers(self._job.limit())
        ends = [
            {
                (offset_range.topic, offset_range.partition): behind[
                    offset_range.topic, offset_range.partition
                ]
                for offset_range in part
            }
            for part in parts
        ]
        return [
            _Part(part, now, each, noted, small) for part, each in zip(parts, ends, strict=True)
        ]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Read, write, and say what was written; runs in a worker."""
        import pyarrow as pa

        from mirrorlake.kafka.refusals import unusable
        from mirrorlake.landing.stage_file import Batch, StageFile
        from mirrorlake.native.reader import ClusterSilent

        assert isinstance(partition, _Part)
        job = self._job
        batch = Batch(
            job.alias, partition.landed_at, job.generations, partition.ends, partition.noted
        )
        file = StageFile(Path(job.directory), job.schema, batch, "task")
        ranges = {
            (offset_range.topic, offset_range.partition): (offset_range.first, offset_range.end)
            for offset_range in partition.ranges
        }
        began = time.monotonic()
        try:
            for key, rows in read_ranges(job.alias, job.client, ranges, partition.small_answers):
                file.add(key, rows)
        except ClusterSilent as error:
            raise unusable(job.alias, job.client, error.args[0]) from error
        added = file.close()
        failpoints.reached("file-written")
        if added is not None:
            seconds = pa.array([time.monotonic() - began])
            yield pa.RecordBatch.from_arrays(
                [*added.columns, seconds], [*added.schema.names, "seconds"]
            )


def _offsets(document: Mapping[str, Mapping[str, int]]) -> dict[TopicAndPartition, int]:
    return {
        (topic, int(number)): end
        for topic, parts in document.items()
        for number, end in parts.items()
    }
