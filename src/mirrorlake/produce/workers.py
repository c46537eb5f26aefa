"""Spark's executors as `produce.ports.Workers`: one task a shard."""

from collections.abc import Sequence

import pyarrow as pa

from mirrorlake.errors import FilesUnreadable
from mirrorlake.lake import stage
from mirrorlake.lake.lake import Lake
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.probe import files_readable
from mirrorlake.produce.report import RESULT_DDL
from mirrorlake.produce.stage_rows import sorted_rows
from mirrorlake.produce.task import ReadFiles, ReadRows, ShardJob


class SparkWorkers:
    """Workers of the session that a lake is open in. `source_cluster` is the flow's."""

    def __init__(self, lake: Lake, source_cluster: str) -> None:
        self._lake = lake
        self._source_cluster = source_cluster

    def can_read_files(self) -> bool:
        """Whether reading the table's files is reading the table."""
        return stage.readable_by_files(self._lake)

    def files(self, jobs: Sequence[ShardJob]) -> pa.Table:
        """Run jobs whose workers read the stage's files themselves. Raises FilesUnreadable where they must not try."""
        paths = sorted({path for job in jobs for path in job.plan.files})
        if paths and not files_readable(self._lake.spark, paths[0]):
            raise FilesUnreadable(f"workers cannot open files as {paths[0]}")
        frame = self._lake.spark.range(0, len(jobs), 1, len(jobs))
        return frame.mapInArrow(ReadFiles(jobs), RESULT_DDL).toArrow()

    def rows(self, jobs: Sequence[ShardJob], plans: Sequence[PartitionPlan], produce_tasks: int) -> pa.Table:
        """Run jobs over rows that Spark reads and sorts."""
        frame = sorted_rows(self._lake, self._source_cluster, plans, produce_tasks)
        return frame.mapInArrow(ReadRows(jobs), RESULT_DDL).toArrow()
