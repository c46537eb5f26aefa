"""Where the shards of a batch are written: one task of Spark's executors per shard."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mirrorlake.errors import FilesUnreadable
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.small_batches import Demand, SmallBatches
from mirrorlake.lake.stage_sources import readable_by_files
from mirrorlake.produce.batch import PartitionPlan, shard_of
from mirrorlake.produce.counted import Stretch
from mirrorlake.produce.ports import BatchWay
from mirrorlake.produce.probe import files_readable
from mirrorlake.produce.report import Reports, table_of
from mirrorlake.produce.task import ShardJob, forget_writers, produce_shards
from mirrorlake.spark.session_start import SessionStart
from mirrorlake.spark.tasks import Done, by_number, dealt, run_by_spark, run_here, run_rows_by_spark

if TYPE_CHECKING:  # small batches of a lake in a folder need no session
    from mirrorlake.produce.stage_rows import Selection

#: The share of a small batch at which it counts as full: batches end where stretches of offsets do.
_FULL = 0.9


class SparkWorkers:
    """Workers of the session that a lake is open in. `source_cluster` is the flow's. A `selection`
    writes only some of the rows that Spark reads. Calls return rows of `report.RESULT` and the
    failure of tasks, and raise other failures: a lost worker, with all that the tasks of its batch
    returned.

    This process writes small batches (`lake/small_batches.py`) itself: tasks cost more than they
    do. In a catalog, whose files this process may not be able to open, Spark reads them for it.
    """

    def __init__(
        self,
        lake: Lake,
        source_cluster: str,
        small_batch_records: int = 0,
        selection: "Selection | None" = None,
    ) -> None:
        self._lake = lake
        self._source_cluster = source_cluster
        self._small = SmallBatches(small_batch_records)
        self._demand = Demand()
        self._selection = selection
        self._opens_files = lake.opens_files
        self._written_here: set[str] = set()

    def at_most(self, records: int) -> int:
        """How many records the next batch may have: a small one until a session is there."""
        return records if self._later is None else min(records, self._small.records)

    def can_read_files(self) -> bool:
        """Whether reading the table's files gives the table's rows."""
        return readable_by_files(self._lake)

    def files(self, jobs: Sequence[ShardJob]) -> tuple[BatchWay, Reports]:
        """Run jobs that read the stage's files themselves, which hold all offsets in order; none if
        workers cannot open them. Returns where they ran, too."""
        count, later = sum(job.plan.record_count for job in jobs), self._later
        if later is not None and self._demand.worth_a_session(
            count / (_FULL * self._small.records)
        ):
            later.begin()
        if later is not None or (self._opens_files and count <= self._small.records):
            self._note(jobs)
            return "short", run_here(produce_shards, dealt(jobs, len(jobs)))
        # Arrow's file systems may crash a process; those that open a lake at a URL do not.
        plans = [job.plan for job in jobs if job.plan.storage is None]
        paths = sorted({path for plan in plans for path in plan.files})
        if paths and not files_readable(self._lake.spark, paths[0]):
            unreadable = FilesUnreadable(f"workers cannot open files as {paths[0]}")
            return "long", Done(failure=unreadable)
        return "long", run_by_spark(self._lake.spark, produce_shards, jobs, len(jobs))

    @property
    def _later(self) -> SessionStart | None:
        """The session that is started once it is needed, if batches can do without it."""
        return self._lake.later_session if self._opens_files and self._small.records else None

    def close(self) -> None:
        """Drop the producers that this process has."""
        forget_writers(self._written_here)

    def count(self, stretches: Sequence[Stretch]) -> Sequence[int]:
        """How many records the newest version of the stage has of some offsets."""
        from mirrorlake.produce.stage_rows import counts

        return counts(self._lake, self._source_cluster, stretches)

    def rows(
        self, jobs: Sequence[ShardJob], plans: Sequence[PartitionPlan], produce_tasks: int
    ) -> tuple[BatchWay, Reports]:
        """Run jobs over rows that Spark reads and sorts; returns where they ran, too."""
        from mirrorlake.produce.stage_rows import sorted_rows  # only with a session

        stretches = [
            (shard_of(*plan.key, produce_tasks), (plan.place, plan.first, plan.last))
            for plan in plans
        ]
        cluster, selection = self._source_cluster, self._selection
        frame = sorted_rows(self._lake, cluster, stretches, produce_tasks, selection)
        by_shard = {job.plan.shard: job for job in jobs}
        way: BatchWay = "long"
        if sum(job.plan.record_count for job in jobs) <= self._small.max_records:
            self._note(jobs)
            way, rows = "short", frame.toArrow().to_batches()
            done = run_here(produce_shards, [by_number(rows, by_shard)])
        else:
            done = run_rows_by_spark(frame, produce_shards, by_shard)
        written = table_of(done)
        records, size = (sum(written[name].to_pylist()) for name in ("record_count", "byte_count"))
        self._small.learn(records, size)
        return way, done

    def _note(self, jobs: Sequence[ShardJob]) -> None:
        self._written_here |= {job.target.transactional_id for job in jobs}
