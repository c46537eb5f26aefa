"""The driver's side of producing: one flow, batch after batch, with no state but the tables and the
target's positions.

A batch is what the stage holds above the flow's progress (`produce/batch.py`), and progress is
offsets: the ends of the map, and the positions that the target committed. The order of events is
what makes it exactly once: transactions in Kafka, then the rows of `offset_map`, then those of
`latency`. When a process dies in between, the tables show how far the map goes, and the target
how far the flow went, see `produce/task.py`.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from mirrorlake import failpoints
from mirrorlake.errors import CountDiffers, FilesUnreadable, LayoutError
from mirrorlake.offsets.generations import FIRST
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.progress import Floor, floors_of
from mirrorlake.offsets.starts import floors_from
from mirrorlake.produce.batch import BatchPlan, PartitionPlan, ShardPlan, plan_batch
from mirrorlake.produce.batch_report import BatchReport, latest_ms
from mirrorlake.produce.codecs import Codecs
from mirrorlake.produce.fencing import fence_all, newest_token, set_back
from mirrorlake.produce.flow_state import FlowState, KnownGenerations, Upcoming
from mirrorlake.produce.map_writer import MapWriter
from mirrorlake.produce.ports import BatchWay, Stage
from mirrorlake.produce.refused_records import RefusedRecords
from mirrorlake.produce.report import Reports, table_of
from mirrorlake.produce.shard_jobs import checked_for_unread, foreign_from, narrowed_jobs, target_of
from mirrorlake.produce.spec import FlowSpec, Target
from mirrorlake.produce.task import ShardJob

if TYPE_CHECKING:
    from mirrorlake.lake.map_store import LakeMap
    from mirrorlake.produce.workers import SparkWorkers

logger = logging.getLogger(__name__)

#: Errors of a task that could not open the stage's files, or found them out of order.
_READER_FAILURES = (FilesUnreadable, LayoutError, FileNotFoundError)


class RecordsDeleted(Exception):
    """Records were deleted from the stage after the flow's holes were looked for: that has to be
    done once more before a batch goes on behind them."""


class FlowProducer:
    """Produces one flow. `ensure_targets` is called with the partition plans of a batch before its
    first record. Topics for which `is_heartbeats` is true do not count in a report's latency.
    `on_part` gets the report of the finished part of a batch that failed, before `step` raises."""

    def __init__(
        self,
        stage: Stage,
        store: "LakeMap",
        workers: "SparkWorkers",
        spec: FlowSpec,
        ensure_targets: Callable[[Sequence[PartitionPlan]], None],
        is_heartbeats: Callable[[str], bool] = lambda _topic: False,
        on_part: Callable[[BatchReport], None] = lambda _report: None,
    ) -> None:
        self.spec = spec
        self._on_part = on_part
        self._is_heartbeats = is_heartbeats
        self._stage = stage
        self._workers = workers
        self._ensure_targets = ensure_targets
        self._files_work = spec.reader != "rows" and workers.can_read_files()
        self._disordered: set[str] = set()  # files found to hold offsets out of order
        self._upcoming = Upcoming()
        #: The version of the stage above which nothing is left to produce.
        self._produced_version: int | None = None
        self._store = store
        # First: then the map's ends include all appends of the process before. The clock only makes
        # batch numbers easier to read: they rise from those in the table.
        started = store.take_over(time.time_ns() // 1_000_000)
        self._codecs = Codecs(spec.producer)
        self._refusals = RefusedRecords(store, self._codecs)
        self._generations = KnownGenerations(spec.generations)
        self._fencing_token = self._fence_other_shards(store)
        ends, newest = store.ends()
        floors = floors_of(ends, spec.remote_topic, spec.targets)
        floors = floors_from(floors, spec.starts, spec.remote_topic, spec.targets)
        self._state = FlowState(floors, spec.stopped if spec.transactional else ())
        self.batch_id = max(newest, started) + 1
        self._map_writer = MapWriter(store, spec.name)
        #: The count of deletions up to which the flow's holes are known; None: not looked for.
        self.known_deletions: int | None = None

    def _fence_other_shards(self, store: "LakeMap") -> int:
        """Fence the producers of another number of shards: partitions have moved between
        transactional ids, so the task that has a partition now would not fence a task that outlived
        its driver.

        Returns the token. One that dies in between does it again: the lake gets the number last.
        """
        if not self.spec.transactional:
            return 0
        before, count = store.produce_tasks(), self.spec.produce_tasks
        if before in (None, count):
            token = newest_token(self._targets(1)[0], self.spec.targets)
        else:
            token = fence_all(self._targets(max(before, count)), self.spec.targets)
        if before != count:
            store.note_produce_tasks(count)
        return token

    def _targets(self, count: int) -> list[Target]:
        """The targets of the first `count` shards, for fencing their producers."""
        return [target_of(self.spec, self._codecs, shard) for shard in range(count)]

    def floors(self) -> dict[TopicAndPartition, Floor]:
        """Where the flow goes on, for every partition of which it mapped or skipped records."""
        return dict(self._state.floors)

    @property
    def has_mapped(self) -> bool:
        """Whether this producer has produced records whose rows are in the map."""
        return self._map_writer.has_mapped

    def step(self) -> BatchReport | None:
        """Produce the next batch; None without more records. Raises RecordsDeleted."""
        self._map_writer.check()
        return self._step(by_files=True)

    def _step(self, by_files: bool) -> BatchReport | None:
        spec = self.spec
        with self._stage.reading() as index:
            if self.known_deletions not in (None, index.deletions):
                raise RecordsDeleted
            version = index.version
            if version == self._produced_version:
                return None
            plan = plan_batch(
                index,
                spec.source_cluster,
                self._state.floors,
                spec.remote_topic,
                produce_tasks=spec.produce_tasks,
                max_records=self._workers.at_most(spec.max_records),
                blocked=spec.blocked,
                targets=spec.targets,
                stopped=spec.stopped,
                unrestored=self._state.unrestored,
                whole={place: one.last_offset or 0 for place, one in spec.whole.items()},
                among=self._upcoming.among(index, spec.source_cluster),
            )
            self._upcoming.left(plan.upcoming)
        if not plan.shards:
            self._produced_version = version
            return None
        by_files = by_files and plan.ordered and self._files_work and self._stage.is_its_files
        return self._produce(plan, version, by_files and not self._disordered & plan.files)

    def _produce(self, plan: BatchPlan, version: int, by_files: bool) -> BatchReport | None:
        self._ensure_targets([one for one in plan.partitions if not one.restores_only])
        if any(self._state.begins_generation(partition) for partition in plan.partitions):
            # the metadata of a newer generation cannot name records of an older one
            self._map_writer.drain()
        self._generations.refresh(plan.partitions)
        failpoints.reached("planned")
        way, done = self._run(plan, by_files)
        failpoints.reached("produced")
        report = self._book(plan, version, "files" if by_files else "rows", way, done)
        if done.failure is None:
            return report
        # Failed shards may have written records: each task begins with a fresh producer.
        self._state.owners.clear()
        if by_files and self.spec.reader != "files" and isinstance(done.failure, _READER_FAILURES):
            self._distrust(plan, done.failure)
            rest = self._step(by_files=False)
            return report if rest is None else report.followed_by(rest)
        if isinstance(done.failure, CountDiffers):
            # the index may have missed files that were rewritten, or rows that were deleted
            self._stage.invalidate()
        if report.record_count:
            self._on_part(report)
        raise done.failure

    def _book(
        self, plan: BatchPlan, version: int, reader: str, way: BatchWay, done: Reports
    ) -> BatchReport:
        """Take over what tasks report. A failed shard's next task asks the target."""
        result = table_of(done)
        complete = done.failure is None and bool(pc.all(result["complete"], min_count=0).as_py())
        self._state.advance(result)
        if done.failure is None:
            self._state.skip_empty(plan, result)
        if result.num_rows or done.failure is None:
            self._map_writer.add(result, self.batch_id, version, way)
        # after the map: its rows show what a target has lost
        self.spec = self._refusals.take(result, self.spec)
        if self.spec.whole:
            self.spec = replace(self.spec, whole=self._state.still(self.spec.whole))
        if not complete and done.failure is None:
            # the metadata was full; it has room again once the map has the rows that it names
            self._map_writer.drain()
        count = int(pc.sum(result["record_count"]).as_py() or 0)
        report = BatchReport(
            self.batch_id,
            stage_version=version,
            record_count=count,
            reader=reader,
            complete=complete,
            replication_ms=latest_ms(result, self._is_heartbeats),
            way=way,
            result=result,
        )
        self.batch_id += 1
        return report

    def set_back(self, places: Mapping[TopicAndPartition, int]) -> None:
        """Reset the positions of some target partitions, since what they stood for is lost. Values
        are generations of the target topics. The next producer goes on from the end of the map."""
        if self.spec.transactional:
            set_back(self._targets(self.spec.produce_tasks), places)

    def drain(self) -> None:
        """Wait until everything produced is in the map. Raises the errors of the append."""
        self._map_writer.drain()

    def close(self) -> None:
        """Drain, and end the map writer's thread. Raises Fenced if another process has taken over,
        whatever failed before: that was the cause, and a retry would take the flow back."""
        try:
            try:
                self._map_writer.close()
            finally:
                self._workers.close()
        finally:
            self._store.check_owner()

    def _run(self, plan: BatchPlan, by_files: bool) -> tuple[BatchWay, Reports]:
        """Run a batch's tasks; returns where they ran, and their results.

        After any failure some shards may have been written. So the next attempt of each begins with
        a fresh producer, which fences all others and asks the target how far the flow is.
        """
        try:
            jobs = self._jobs(plan)
            if by_files:
                return self._workers.files(jobs)
            jobs = narrowed_jobs(jobs, self._workers.count)
            way, done = self._workers.rows(jobs, plan.partitions, self.spec.produce_tasks)
        except BaseException:
            self._state.owners.clear()
            raise
        return way, done if done.failure is not None else checked_for_unread(jobs, done)

    def _distrust(self, plan: BatchPlan, reason: BaseException) -> None:
        """Remember why workers could not read the files of a batch."""
        if isinstance(reason, FilesUnreadable):
            self._files_work = False
        elif isinstance(reason, LayoutError):
            self._disordered |= plan.files
        else:
            self._stage.forget()  # the files were rewritten and vacuumed since the index saw them
        logger.warning(
            "flow %s: workers cannot read the stage's files; Spark reads them: %s",
            self.spec.name,
            reason,
        )

    def _jobs(self, plan: BatchPlan) -> list[ShardJob]:
        return [
            ShardJob(
                self._with_facts(shard),
                target_of(self.spec, self._codecs, shard.shard, self._fencing_token),
                owner=self._state.owners.get(shard.shard),
                skipped=self._refusals.skipped(shard.partitions, self.spec),
                foreign_from=foreign_from(self.spec, shard),
                again={
                    plan.key: self.spec.again[plan.place]
                    for plan in shard.partitions
                    if plan.place in self.spec.again
                },
                parks=self.spec.parks,
            )
            for shard in plan.shards
        ]

    def _with_facts(self, shard: ShardPlan) -> ShardPlan:
        """Give a shard's plans what is not in the map yet, which the target keeps in its metadata,
        the ids of generations, and, if known, how many records the tasks will read."""
        partitions = tuple(
            replace(
                plan,
                source_ids=self._generations.ids(plan.key),
                target_id=self.spec.targets.get(plan.target_topic, FIRST).topic_id,
                unmapped=self._map_writer.unmapped(plan.key),
                spans=plan.spans if self.spec.counted else None,
            )
            for plan in shard.partitions
        )
        return replace(shard, storage=self._stage.storage, partitions=partitions)
