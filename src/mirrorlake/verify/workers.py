"""Who compares ranges: this process where it is little, else Spark's executors; the same code in
both."""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from mirrorlake.errors import ReplicationError
from mirrorlake.native.exact import headers_of, times_of
from mirrorlake.verify.digest import as_records
from mirrorlake.verify.job import Clusters, Compared, Range, reading
from mirrorlake.verify.verdict import Difference, Verdict

if TYPE_CHECKING:  # tasks import this, and need no lake
    from pyspark.sql import DataFrame, SparkSession

    from mirrorlake.lake.lake import Lake

#: What a task gives back of each range.
RESULT = pa.schema(
    [
        ("number", pa.int64()),
        ("counts", pa.list_(pa.int64())),
        ("digests", pa.list_(pa.string())),
        ("excused", pa.list_(pa.struct([("reason", pa.string()), ("count", pa.int64())]))),
        (
            "differences",
            pa.list_(
                pa.struct(
                    [("kind", pa.string()), ("first", pa.int64()), ("last", pa.int64())]
                    + [
                        ("count", pa.int64()),
                        ("target_offset", pa.int64()),
                        ("detail", pa.string()),
                    ]
                )
            ),
        ),
        ("bytes_read", pa.int64()),
        ("stale", pa.bool_()),
        ("untold", pa.int64()),
    ]
)


class Workers(Protocol):
    """Compares ranges, `tasks` at a time."""

    tasks: int

    def compare(self, clusters: Clusters, ranges: Sequence[Range]) -> list[Compared]:
        """What came of each range, in the order given. `bytes_per_s` of the clusters is for all
        together."""


class ThisProcess:
    """Compares in threads of this process."""

    tasks = min(4, os.cpu_count() or 1)

    def compare(self, clusters: Clusters, ranges: Sequence[Range]) -> list[Compared]:
        """See `Workers.compare`. Raises ClusterUnusable, FilesUnreadable."""
        parts = deal(ranges, self.tasks)
        shared = share(clusters, len(parts))
        with ThreadPoolExecutor(max(1, len(parts)), "verify") as pool:
            done = dict(
                pair
                for results in pool.map(lambda part: _part(shared, part), parts)
                for pair in results
            )
        return [done[number] for number in range(len(ranges))]


class Executors:
    """Compares in tasks of Spark, `tasks` of them at a time."""

    def __init__(self, spark: "SparkSession", tasks: int) -> None:
        self._spark = spark
        self.tasks = tasks

    def compare(self, clusters: Clusters, ranges: Sequence[Range]) -> list[Compared]:
        """See `Workers.compare`. Raises ReplicationError."""
        parts = deal(ranges, self.tasks)
        shared = share(clusters, len(parts))
        frame = self._spark.range(0, len(parts), 1, len(parts))
        done = _ran(frame, _Task(shared, parts))
        return [done[number] for number in range(len(ranges))]


class RowExecutors:
    """As `Executors`, where these cannot open the stage's files: Spark reads the stage, and hands
    over its rows."""

    def __init__(self, lake: "Lake", tasks: int) -> None:
        self._lake = lake
        self.tasks = tasks

    def compare(self, clusters: Clusters, ranges: Sequence[Range]) -> list[Compared]:
        """See `Executors.compare`."""
        from mirrorlake.verify.stage_rows import rows_of_ranges

        bare = [replace(range_, files=()) for range_ in ranges]
        shared = share(clusters, min(self.tasks, len(bare)))
        frame = rows_of_ranges(self._lake, clusters.source, bare, self.tasks)
        done = _ran(frame, _RowTask(shared, bare))
        empty = [
            number for number in range(len(bare)) if number not in done
        ]  # the stage has nothing of them
        if empty:
            left = Executors(self._lake.spark, self.tasks).compare(
                clusters, [bare[number] for number in empty]
            )
            done |= dict(zip(empty, left, strict=True))
        return [done[number] for number in range(len(bare))]


def _ran(frame: "DataFrame", task: "_Task | _RowTask") -> dict[int, Compared]:
    """What tasks give back, by the number of the range. Raises ReplicationError with what made one
    fail."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from mirrorlake.spark.causes import cause_of
    from mirrorlake.spark.failures import SPARK_FAILURES

    try:
        rows = frame.mapInArrow(task, from_arrow_schema(RESULT)).toArrow().to_pylist()
    except SPARK_FAILURES as error:
        raise ReplicationError(f"ranges could not be compared: {cause_of(error)}") from error
    return {row["number"]: _compared(row) for row in rows}


def cores_of(spark: "SparkSession") -> int:
    """How many tasks a session runs at a time, as Spark itself divides work by."""
    from pyspark.sql import functions as F

    return max(1, spark.range(0, 1_000_000).select(F.spark_partition_id()).distinct().count())


Part = list[tuple[int, Range]]


def deal(ranges: Sequence[Range], tasks: int) -> list[Part]:
    """Deal ranges out, each with its number: neighbours to one task, since it reads on where it
    ended."""
    count = max(1, min(tasks, len(ranges)))
    numbered = list(enumerate(ranges))
    bounds = [len(ranges) * number // count for number in range(count + 1)]
    return [
        numbered[first:end] for first, end in zip(bounds, bounds[1:], strict=False) if first < end
    ]


def share(clusters: Clusters, tasks: int) -> Clusters:
    """What each task may read, of what all may."""
    if clusters.bytes_per_s is None:
        return clusters
    return replace(clusters, bytes_per_s=clusters.bytes_per_s / max(1, tasks))


def _part(clusters: Clusters, part: Part) -> list[tuple[int, Compared]]:
    with reading(clusters) as reader:
        return [(number, reader.compare(range_)) for number, range_ in part]


class _Task:
    """mapInArrow over a frame of numbers of parts."""

    def __init__(self, clusters: Clusters, parts: Sequence[Part]) -> None:
        self._clusters = clusters
        self._parts = parts

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                rows = [
                    _row(at, compared)
                    for at, compared in _part(self._clusters, self._parts[number])
                ]
                yield pa.RecordBatch.from_pylist(rows, RESULT)


class _RowTask:
    """mapInArrow over the rows of ranges, those of each range one after another, by offset."""

    def __init__(self, clusters: Clusters, ranges: Sequence[Range]) -> None:
        self._clusters = clusters
        self._ranges = ranges

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = (piece for batch in batches for piece in by_number(batch))
        with reading(self._clusters) as reader:
            for number, group in groupby(pieces, key=lambda piece: piece[0]):
                compared = reader.compare(self._ranges[number], (rows for _, rows in group))
                yield pa.RecordBatch.from_pylist([_row(number, compared)], RESULT)


def by_number(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Cut rows where the number of their range changes."""
    numbers = batch.column("number").to_numpy(zero_copy_only=False)
    ends = [*(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    start = 0
    for end in ends:
        if end > start:
            yield int(numbers[start]), _as_records(batch.slice(start, end - start))
        start = end


def _as_records(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows that Spark hands over: it names what is within lists in its own way."""
    return as_records(
        rows.column("offset"),
        times_of(rows),
        rows.column("key"),
        rows.column("value"),
        headers_of(rows),
    )


def _row(number: int, compared: Compared) -> dict[str, Any]:
    return {
        "number": number,
        "counts": list(compared.counts),
        "digests": list(compared.digests),
        "excused": [
            {"reason": reason, "count": count} for reason, count in compared.verdict.excused.items()
        ],
        "differences": [vars(difference) for difference in compared.verdict.differences],
        "bytes_read": compared.bytes_read,
        "stale": compared.stale,
        "untold": compared.untold,
    }


def _compared(row: dict[str, Any]) -> Compared:
    excused = {reason_count["reason"]: reason_count["count"] for reason_count in row["excused"]}
    differences = tuple(Difference(**difference) for difference in row["differences"])
    counts, digests = tuple(row["counts"]), tuple(row["digests"])
    verdict = Verdict(differences, excused)
    return Compared(
        counts,
        digests,
        verdict,
        bytes_read=row["bytes_read"],
        stale=row["stale"],
        untold=row["untold"],
    )
