"""The driver's side of producing: one flow, batch after batch, with no state but the tables and the
target's positions.

A batch is what the stage holds above the flow's progress (`produce/batch.py`), and progress is
offsets: the ends of the map, and the positions that the target committed. The order of events is
what makes it exactly once: transactions in Kafka, then the rows of `offset_map`, then those of
`latency`. Whatever dies in between is found out from the tables (how far the map goes) and from the
target (how far the flow goes), see `produce/task.py`.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake import failpoints
from mirrorlake.errors import CountDiffers, FilesUnreadable, LayoutError
from mirrorlake.offsets.generations import FIRST
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.progress import NOTHING_MAPPED, Floor, floors_of
from mirrorlake.offsets.starts import floors_from
from mirrorlake.produce.batch import BatchPlan, PartitionPlan, ShardPlan, plan_batch
from mirrorlake.produce.codecs import Codecs
from mirrorlake.produce.counted import check_unread, narrowed
from mirrorlake.produce.fencing import fence_all, newest_token, set_back
from mirrorlake.produce.map_writer import MapWriter, map_rows
from mirrorlake.produce.ports import BatchWay, MapStore, Stage, Workers
from mirrorlake.produce.refused_records import RefusedRecords
from mirrorlake.produce.spec import FlowSpec
from mirrorlake.produce.target import Target
from mirrorlake.produce.task import ShardJob
from mirrorlake.spark.tasks import Done

logger = logging.getLogger(__name__)

#: What a task raises that could not open, or not trust, the stage's files.
_PLACE = ("topic", "partition", "generation")
_READER_FAILURES = (FilesUnreadable, LayoutError, FileNotFoundError)


@dataclass(frozen=True)
class BatchReport:
    """What a batch did. `reader` is `files`, or `rows` where Spark fed the workers; `way` says
    where it was produced. `replication_ms` are p50, p95 and p99 of replication latency, each of the
    latest partition; None where no record was acknowledged.
    """

    batch_id: int
    stage_version: int
    record_count: int
    reader: str
    complete: bool
    replication_ms: tuple[int, int, int] | None = None
    way: BatchWay = "long"

    def followed_by(self, rest: "BatchReport") -> "BatchReport":
        """Of a batch of which another one, with this one as its first part, has done the rest."""
        return replace(rest, record_count=self.record_count + rest.record_count)


class FlowProducer:
    """Produces one flow. `ensure_targets` is called with the partition plans of a batch before its
    first record; topics that `is_heartbeats` says are left out of a report's latency; `on_part` is
    called with what was done of a batch that failed, before `step` raises."""

    def __init__(
        self,
        stage: Stage,
        store: MapStore,
        workers: Workers,
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
        self._owners: dict[int, str] = {}
        self._files_work = spec.reader != "rows" and workers.can_read_files()
        self._disordered: set[str] = set()  # files that were found to hold offsets out of order
        #: The version of the stage above which nothing was left.
        self._produced_version: int | None = None
        self._store = store
        # Before the map is asked for its ends: they are those of the last append before. The clock
        # only makes numbers easier to read: they rise from what the table knows.
        started = store.take_over(time.time_ns() // 1_000_000)
        self._codecs = Codecs(spec.producer)
        self._refusals = RefusedRecords(store, self._codecs)
        self._fencing_token = self._fence_other_shards(store)
        ends, newest = store.ends()
        floors = floors_of(ends, spec.remote_topic, spec.targets)
        self._floors = floors_from(floors, spec.starts, spec.remote_topic, spec.targets)
        self.batch_id = max(newest, started) + 1
        self._map_writer = MapWriter(store, spec.name)
        # stopped ones of which the target may have more than the map
        self._unrestored = set(spec.stopped if spec.transactional else ())

    def _fence_other_shards(self, store: MapStore) -> int:
        """Let no producer write any more that was one of another number of shards: partitions have
        moved between transactional ids, and a task that outlived its driver would not be fenced by
        the one that has its partition.

        Returns the flow's fencing token. Who dies in between does it again: the lake has the new
        number last.
        """
        if not self.spec.transactional:
            return 0
        before, count = store.produce_tasks(), self.spec.produce_tasks
        if before in (None, count):
            token = newest_token(self._target(0), self.spec.targets)
        else:
            shards = [self._target(shard) for shard in range(max(before, count))]
            token = fence_all(shards, self.spec.targets)
        if before != count:
            store.note_produce_tasks(count)
        return token

    def floors(self) -> dict[TopicAndPartition, Floor]:
        """Where the flow goes on, of every source partition of which it has mapped or skipped
        something."""
        return dict(self._floors)

    @property
    def has_mapped(self) -> bool:
        """Whether this producer has produced something, and it is in the map."""
        return self._map_writer.has_mapped

    def step(self) -> BatchReport | None:
        """Produce the next batch; None when the stage holds nothing above the flow's progress."""
        self._map_writer.check()
        return self._step(by_files=True)

    def _step(self, by_files: bool) -> BatchReport | None:
        spec = self.spec
        with self._stage.reading() as index:
            version = index.version
            if version == self._produced_version:
                return None
            plan = plan_batch(
                index,
                spec.source_cluster,
                self._floors,
                spec.remote_topic,
                produce_tasks=spec.produce_tasks,
                max_records=spec.max_records,
                blocked=spec.blocked,
                targets=spec.targets,
                stopped=spec.stopped,
                unrestored=self._unrestored,
            )
        if not plan.shards:
            self._produced_version = version
            return None
        by_files = by_files and plan.ordered and self._files_work
        return self._produce(plan, version, by_files and not self._disordered & plan.files)

    def _produce(self, plan: BatchPlan, version: int, by_files: bool) -> BatchReport | None:
        self._ensure_targets([one for one in plan.partitions if not one.restores_only])
        if any(self._begins_generation(partition) for partition in plan.partitions):
            # the metadata of a newer generation can no longer name an older one
            self._map_writer.drain()
        failpoints.reached("planned")
        way, done = self._run(plan, by_files)
        failpoints.reached("produced")
        report = self._book(plan, version, "files" if by_files else "rows", way, done)
        if done.failure is None:
            return report
        # Of the shards that failed some may have written: no task goes on as before.
        self._owners.clear()
        if by_files and self.spec.reader != "files" and isinstance(done.failure, _READER_FAILURES):
            self._distrust(plan, done.failure)
            rest = self._step(by_files=False)
            return report if rest is None else report.followed_by(rest)
        if isinstance(done.failure, CountDiffers):
            # files may have been rewritten, or rows deleted, and the index not have followed
            self._stage.invalidate()
        if report.record_count:
            self._on_part(report)
        raise done.failure

    def _book(
        self, plan: BatchPlan, version: int, reader: str, way: BatchWay, done: Done
    ) -> BatchReport:
        """Take over what tasks say that they have done. Of a shard that failed nothing is known:
        the next task asks the target."""
        result = done.rows
        complete = done.failure is None and bool(pc.all(result["complete"], min_count=0).as_py())
        self._advance(result)
        if done.failure is None:
            self._skip_empty(plan, result)
        if result.num_rows or done.failure is None:
            self._map_writer.add(result, self.batch_id, version, way)
        # behind the map: what a target has lost is told from what the map has of it
        if stopped := self._refusals.take(result, self.spec):
            self.spec = replace(self.spec, blocked=self.spec.blocked | stopped)
        if not complete and done.failure is None:
            # the metadata was full: it has room again when the map has what it names
            self._map_writer.drain()
        count = int(pc.sum(result["record_count"]).as_py() or 0)
        report = BatchReport(
            self.batch_id,
            stage_version=version,
            record_count=count,
            reader=reader,
            complete=complete,
            replication_ms=_latest(result, self._is_heartbeats),
            way=way,
        )
        self.batch_id += 1
        return report

    def _begins_generation(self, plan: PartitionPlan) -> bool:
        known = self._floors.get(plan.key, NOTHING_MAPPED)
        return plan.generation > known.generation

    def set_back(self, places: Mapping[TopicAndPartition, int]) -> None:
        """Let the positions that the target has in some target partitions say nothing any more:
        what they stood for is lost. Values are generations of the target topics. The next producer
        goes on from the end of the map."""
        if self.spec.transactional:
            set_back([self._target(shard) for shard in range(self.spec.produce_tasks)], places)

    def drain(self) -> None:
        """Wait until everything produced is in the map. Raises what its append raised."""
        self._map_writer.drain()

    def close(self) -> None:
        """Drain, and end the map writer's thread. Raises Fenced where another process has taken
        over, whatever failed before: it failed for that, and who began again would take it back."""
        try:
            try:
                self._map_writer.close()
            finally:
                self._workers.close()
        finally:
            self._store.check_owner()

    def _run(self, plan: BatchPlan, by_files: bool) -> tuple[BatchWay, Done]:
        """Run a batch's tasks, and say where they ran.

        Whatever fails, shards may have been written by then: so no task goes on as before, and the
        next attempt of each begins with a fresh producer, which fences all others and asks the
        target how far the flow is.
        """
        try:
            jobs = self._jobs(plan)
            if by_files:
                return self._workers.files(jobs)
            jobs = self._narrowed(jobs)
            way, done = self._workers.rows(jobs, plan.partitions, self.spec.produce_tasks)
        except BaseException:
            self._owners.clear()
            raise
        return way, done if done.failure is not None else _checked_for_unread(jobs, done)

    def _narrowed(self, jobs: Sequence[ShardJob]) -> list[ShardJob]:
        """The same of rows that Spark reads, which are those of the plans and no others."""
        plans = [plan for job in jobs for plan in job.plan.partitions]
        by_key = {plan.key: plan for plan in narrowed(plans, self._workers.count)}
        return [
            replace(
                job,
                plan=replace(
                    job.plan, partitions=tuple(by_key[plan.key] for plan in job.plan.partitions)
                ),
            )
            for job in jobs
        ]

    def _distrust(self, plan: BatchPlan, reason: BaseException) -> None:
        """Remember why workers could not read the files of a batch."""
        if isinstance(reason, FilesUnreadable):
            self._files_work = False
        elif isinstance(reason, LayoutError):
            self._disordered |= plan.files
        else:
            self._stage.forget()  # they were rewritten, and vacuumed, since the index saw them
        logger.warning(
            "flow %s: workers cannot read the stage's files; Spark reads them: %s",
            self.spec.name,
            reason,
        )

    def _jobs(self, plan: BatchPlan) -> list[ShardJob]:
        return [
            ShardJob(
                self._with_unmapped(shard),
                self._target(shard.shard, self._fencing_token),
                owner=self._owners.get(shard.shard),
                skipped=self._refusals.skipped(shard.partitions, self.spec),
                foreign_from=self._foreign_from(shard),
                parks=self.spec.parks,
            )
            for shard in plan.shards
        ]

    def _with_unmapped(self, shard: ShardPlan) -> ShardPlan:
        """Tell the tasks what is not in the map yet, so that the target keeps it in its metadata;
        and how many records they will read, where that is known."""
        partitions = tuple(
            replace(
                plan,
                unmapped=self._map_writer.unmapped(plan.key),
                spans=plan.spans if self.spec.counted else None,
            )
            for plan in shard.partitions
        )
        return replace(shard, storage=self._stage.storage, partitions=partitions)

    def _foreign_from(self, shard: ShardPlan) -> dict[TopicAndPartition, int]:
        """From which target offset on records may be the flow's own without being mapped, where
        that is known."""
        starts: dict[TopicAndPartition, int] = {}
        for plan in shard.partitions:
            key = plan.key
            began = self.spec.targets.get(plan.target_topic, FIRST).began
            if plan.first <= self.spec.known_foreign.get(plan.place, -1):
                continue
            if plan.floor.target is not None:
                starts[key] = plan.floor.target
            elif began:
                starts[key] = began[plan.partition] if plan.partition < len(began) else 0
        return starts

    def _target(self, shard: int, fencing_token: int = 0) -> Target:
        name = self.spec.name_at_target
        return Target(
            self.spec.client,
            self._codecs.settings(shard),
            group_id=name,
            transactional_id=f"{name}-{shard}",
            produce_tasks=self.spec.produce_tasks,
            transactional=self.spec.transactional,
            provenance=self.spec.provenance,
            mark=self.spec.mark,
            fencing_token=fencing_token,
        )

    def _advance(self, result: pa.Table) -> None:
        reported = result.select([*_PLACE, "shard", "worker", "target_generation", "reached"])
        for row in reported.to_pylist():
            self._owners[row["shard"]] = row["worker"]
            key = (row["topic"], row["partition"])
            known = self._floors.get(key, NOTHING_MAPPED).of_generation(row["generation"])
            self._floors[key] = replace(
                known,
                target_generation=row["target_generation"],
                reached=max(known.reached, row["reached"]),
            )
        rows = map_rows(result)
        # too few rows for threads
        by_partition = rows.group_by(["topic", "partition"], use_threads=False)
        ends = by_partition.aggregate([("source_last", "max"), ("target_last", "max")])
        for row in ends.to_pylist():
            key = (row["topic"], row["partition"])
            self._floors[key] = replace(
                self._floors[key],
                source=row["source_last_max"] + 1,
                target=row["target_last_max"] + 1,
            )
        for row in result.select([*_PLACE, "shard", "recovering"]).to_pylist():
            if row["recovering"]:
                # the target has more than was rebuilt: the next task asks again
                self._owners.pop(row["shard"], None)
            else:
                self._unrestored.discard(PartitionGeneration.from_row(row))

    def _skip_empty(self, plan: BatchPlan, result: pa.Table) -> None:
        """Skip the ranges of shards that reported nothing: Spark runs no task where it finds no
        row, and there is none (`_checked_for_unread`)."""
        reported = set(result["shard"].to_pylist())
        shards = [shard for shard in plan.shards if shard.shard not in reported]
        for partition in (partition for shard in shards for partition in shard.partitions):
            known = self._floors.get(partition.key, partition.floor)
            floor = known.of_generation(partition.generation)
            reached = max(floor.reached, partition.last + 1)
            self._floors[partition.key] = replace(floor, reached=reached)


def _checked_for_unread(jobs: Sequence[ShardJob], done: Done) -> Done:
    """The same, failed where a shard reported nothing that had something to read."""
    reported = set(done.rows["shard"].to_pylist())
    try:
        for job in jobs:
            if job.plan.shard not in reported:
                check_unread(job.plan.partitions, job.skipped)
    except CountDiffers as error:
        return replace(done, failure=error)
    return done


def _latest(result: pa.Table, is_heartbeats: Callable[[str], bool]) -> tuple[int, int, int] | None:
    """The highest percentiles of a batch's partitions, without those of heartbeats, which may
    wait."""
    result = result.filter(
        pa.array([not is_heartbeats(topic) for topic in result["topic"].to_pylist()], pa.bool_())
    )
    percentiles = [
        pc.max(result[f"replication_{name}_ms"]).as_py() for name in ("p50", "p95", "p99")
    ]
    return None if None in percentiles else (percentiles[0], percentiles[1], percentiles[2])
