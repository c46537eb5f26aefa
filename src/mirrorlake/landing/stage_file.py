"""One Parquet file of `records`, written by a task from what it reads, with statistics.

A partition's rows stand together in row groups, in the order of their offsets: a flow opens only
the row groups that hold what it wants (`produce/stage_files.py`).
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from mirrorlake import failpoints
from mirrorlake.lake.meter import Landed
from mirrorlake.lake.parquet import KEYS, RARE, REPEATED, stated_ranges
from mirrorlake.lake.place import FileWriter, Place
from mirrorlake.landing.job import LandJob, Part
from mirrorlake.landing.stage_rows import Gathered, Read, Sizes, columns_of_records, gathered
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.spark.tasks import Work

#: Arrow bytes gathered before writing, and from which a partition gets row groups of its own.
GATHERED_BYTES, OWN_GROUP_BYTES = 64 << 20, 2 << 20


@dataclass(frozen=True)
class StagedFile:
    """What a task hands to the driver for each file: its name, its size in bytes, its statistics
    for the commit, what it holds of each partition, and the seconds it took to read and write."""

    path: str
    size: int
    stats: str
    landed: Sequence[Landed]
    seconds: float


class StageFile:
    """Writes a part's rows. `directory` and `schema` are the table's; `writer` begins the name."""

    def __init__(
        self, directory: Place, schema: pa.Schema, part: Part, writer: Literal["driver", "task"]
    ) -> None:
        self._began = time.monotonic()
        self._schema = schema
        self._part = part
        self._place = directory / f"{writer}-{uuid.uuid4()}.snappy.parquet"
        self._file: FileWriter | None = None
        self._writer: pq.ParquetWriter | None = None
        #: The first and last offset of each partition, its record count, and its Arrow bytes.
        self._held: dict[TopicAndPartition, list[int]] = {}

    def write(self, waiting: Gathered, sizes: Sizes) -> None:
        """Write rows of partitions, each in the order of offsets; `sizes` are their Arrow bytes. A
        large partition gets row groups of its own, the others share them. Raises StagingError."""
        group, size = dict[TopicAndPartition, list[pa.RecordBatch]](), 0
        for key, read in sorted(waiting.items()):
            own = sizes[key]
            self._count(key, read, own)
            if group and max(size, own) >= OWN_GROUP_BYTES:
                self._write_group(group)
                group, size = {}, 0
            group[key] = read
            size += own
        self._write_group(group)

    def close(self) -> StagedFile | None:
        """Finish the file; None when there were no rows, and so no file."""
        if self._writer is None or self._file is None:
            return None
        self._writer.close()
        size, took = self._file.close(), time.monotonic() - self._began
        landed = [Landed(*key, count, own) for key, (_, _, count, own) in self._held.items()]
        return StagedFile(self._place.name, size, self._stats(), landed=landed, seconds=took)

    def _count(self, key: TopicAndPartition, read: Sequence[pa.RecordBatch], size: int) -> None:
        first, last = read[0].column("offset")[0].as_py(), read[-1].column("offset")[-1].as_py()
        held = self._held.setdefault(key, [first, last, 0, 0])
        count = sum(rows.num_rows for rows in read)
        held[1:] = last, held[2] + count, held[3] + size

    def _write_group(self, read: Gathered) -> None:
        rows = columns_of_records(self._schema, self._part, read)
        if self._writer is None:
            self._file = self._place.writer()
            self._writer = pq.ParquetWriter(
                self._file.sink,
                rows.schema,
                compression="snappy",
                use_dictionary=list(REPEATED),
                write_statistics=[*KEYS, *RARE.values()],
                # rows encoded at a time: takes a tenth less CPU than 1,024
                write_batch_size=64 << 10,
                # else readers would get dictionaries, where other writers give plain columns
                store_schema=False,
            )
        self._writer.write_table(rows, row_group_size=rows.num_rows)

    def _stats(self) -> str:
        """Delta's statistics of the file, with the offset ranges of its partitions."""
        part = self._part
        ranges: list[list[Any]] = [
            [part.source_cluster, *key, part.generations.get(key, 0), first, last, count]
            for key, (first, last, count, _) in sorted(self._held.items())
        ]
        clusters, topics, partitions, generations, *offsets, counts = zip(*ranges, strict=True)
        columns: dict[str, Sequence[Any]] = {
            **{"source_cluster": clusters, "topic": topics, "partition": partitions},
            "offset": [*offsets[0], *offsets[1]],
            **{"batch_id": [part.batch], "generation": generations},
        }
        stats: dict[str, object] = {
            "numRecords": sum(counts),
            "minValues": {name: min(values) for name, values in columns.items()},
            "maxValues": {name: max(values) for name, values in columns.items()},
            "nullCount": dict.fromkeys(columns, 0),
        }
        return json.dumps(
            {**stats, **stated_ranges(ranges)}, ensure_ascii=False, separators=(",", ":")
        )


def write_parts(
    job: LandJob, writer: Literal["driver", "task"], read: Callable[[Part], Read], work: Work[Part]
) -> Iterator[StagedFile]:
    """A task of the pool (`spark/tasks.py`): write a file per part; none without rows."""
    assert job.directory is not None
    for part, _ in work:
        file = StageFile(job.directory, job.schema, part, writer)
        for waiting, sizes in gathered(job, read(part), GATHERED_BYTES):
            file.write(waiting, sizes)
        added = file.close()
        failpoints.reached("file-written")
        if added is not None:
            yield added
