"""The two readers as Spark calls them (mapInArrow), by files and by rows: each hands a shard's rows
to its task.

See DESIGN.md, "Two ways, two readers".
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from mirrorlake.produce.stage_files import read_shard, split_by_partition
from mirrorlake.produce.task import ShardJob, produce_shard


class ReadFiles:
    """mapInArrow over a frame of job numbers: the worker reads the stage's files itself."""

    def __init__(self, jobs: Sequence[ShardJob]) -> None:
        self._jobs = jobs

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                job = self._jobs[number]
                yield produce_shard(job, read_shard(job.plan, job.skipped))


class ReadRows:
    """mapInArrow over the rows themselves, sorted by (shard, topic, partition, offset): Spark reads
    the stage."""

    def __init__(self, jobs: Sequence[ShardJob]) -> None:
        self._jobs = {job.plan.shard: job for job in jobs}

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pending = _Pushback(iter(batches))
        while (shard := pending.shard()) is not None:
            job = self._jobs[shard]
            plans = {(plan.topic, plan.partition): plan for plan in job.plan.partitions}
            rows = (
                piece
                for batch in pending.of_shard(shard)
                for piece in split_by_partition(batch, plans)
            )
            yield produce_shard(job, rows)
            deque(rows, maxlen=0)  # what it left is not the beginning of another shard


class _Pushback:
    """An iterator of record batches that can be taken shard by shard; a batch may hold the rows of
    several."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._buffered: pa.RecordBatch | None = None

    def shard(self) -> int | None:
        """The shard of the next row; None at the end."""
        while self._buffered is None or self._buffered.num_rows == 0:
            self._buffered = next(self._batches, None)
            if self._buffered is None:
                return None
        return int(self._buffered.column("shard")[0].as_py())

    def of_shard(self, shard: int) -> Iterator[pa.RecordBatch]:
        """The rows up to the first one of another shard."""
        while self.shard() == shard:
            batch = self._buffered
            shards = batch.column("shard").to_numpy(zero_copy_only=False)  # type: ignore[union-attr]
            end = int(np.searchsorted(shards, shard, side="right"))
            self._buffered = batch.slice(end)  # type: ignore[union-attr]
            yield batch.slice(0, end)  # type: ignore[union-attr]
