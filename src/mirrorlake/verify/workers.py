"""Where ranges are compared: few in this process, others in executors, by the same code."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mirrorlake.errors import ReplicationError
from mirrorlake.produce.encoding import as_records
from mirrorlake.spark.tasks import (
    Done,
    Task,
    Work,
    dealt,
    run_by_spark,
    run_here,
    run_rows_by_spark,
)
from mirrorlake.verify.job import Clusters, Compared, Range, RangeReader

if TYPE_CHECKING:  # tasks import this, and need no lake
    from pyspark.sql import SparkSession

    from mirrorlake.lake.lake import Lake

#: A range with its number, and the outcome of one.
NumberedRange = tuple[int, Range]
NumberedOutcome = tuple[int, Compared]


class AuditWorkers:
    """Compares ranges, `tasks` at a time: in tasks of the session of `lake`, else in threads.
    `by_rows`: executors cannot open the stage's files, so Spark reads it and hands over rows."""

    def __init__(
        self, lake: "Lake | None" = None, tasks: int | None = None, by_rows: bool = False
    ) -> None:
        self._lake, self._by_rows = lake, by_rows
        self.tasks = tasks or min(4, os.cpu_count() or 1)

    def compare(self, clusters: Clusters, ranges: Sequence[Range]) -> list[Compared]:
        """The results of ranges, in their order. `bytes_per_s` of the clusters is the limit for all
        tasks together. Raises ClusterUnusable, FilesUnreadable, ReplicationError."""
        shared = share(clusters, min(self.tasks, len(ranges)))
        done = self._run(clusters.source, partial(_compare, shared), list(enumerate(ranges)))
        compared = dict(done.checked())
        lacking = [range_ for number, range_ in enumerate(ranges) if number not in compared]
        if lacking and not self._by_rows:
            raise ReplicationError(f"{len(lacking)} ranges were not compared; run verify again")
        # the stage has no rows of them, so no task was given them
        bare = [replace(range_, files=()) for range_ in lacking]
        left = iter(AuditWorkers(self._lake, self.tasks).compare(clusters, bare) if bare else ())
        return [compared.get(number) or next(left) for number in range(len(ranges))]

    def _run(
        self,
        source: str,
        task: Task[NumberedRange, NumberedOutcome],
        ranges: Sequence[NumberedRange],
    ) -> Done[NumberedOutcome]:
        """Run a task over ranges; `source` is the alias of their source."""
        if self._lake is None:
            return run_here(task, dealt(ranges, self.tasks))
        from mirrorlake.produce.stage_rows import sorted_rows  # only a session's owner needs these
        from mirrorlake.spark.causes import cause_of
        from mirrorlake.spark.failures import SPARK_FAILURES

        try:
            if not self._by_rows:
                return run_by_spark(self._lake.spark, task, ranges, self.tasks)
            stretches = [(number, (one.place, one.first, one.last)) for number, one in ranges]
            frame = sorted_rows(self._lake, source, stretches, self.tasks)
            jobs = {number: (number, replace(range_, files=())) for number, range_ in ranges}
            return run_rows_by_spark(frame, task, jobs)
        except SPARK_FAILURES as error:
            raise ReplicationError(f"ranges could not be compared: {cause_of(error)}") from error


def cores_of(spark: "SparkSession") -> int:
    """How many tasks a session runs at a time, by Spark's own default partitioning."""
    from pyspark.sql import functions as F

    return max(1, spark.range(0, 1_000_000).select(F.spark_partition_id()).distinct().count())


def share(clusters: Clusters, tasks: int) -> Clusters:
    """The clusters with one task's share of their limit."""
    if clusters.bytes_per_s is None:
        return clusters
    return replace(clusters, bytes_per_s=clusters.bytes_per_s / max(1, tasks))


def _compare(clusters: Clusters, work: Work[NumberedRange]) -> Iterator[NumberedOutcome]:
    """The task. It reads the stage itself unless it is given rows, and continues reading a cluster
    where one range follows another."""
    with closing(RangeReader(clusters)) as reader:
        for (number, range_), batches in work:
            staged = None if batches is None else map(as_records, batches)
            yield number, reader.compare(range_, staged)
