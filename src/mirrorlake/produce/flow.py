"""The driver's side of producing: one flow, batch after batch, with no state but the tables and the target's positions.

A batch is what new commits of `records` brought (`core.batch`). The order of events is what makes it exactly once:
transactions in Kafka, then the rows of `offset_map`, then those of `latency`. Whatever dies in between is found out
from the tables (how far the map goes) and from the target (how far the flow goes), see `produce/task.py`.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake import crash
from mirrorlake.core.batch import (
    NOTHING_MAPPED,
    BatchPlan,
    FileRange,
    Floor,
    PartitionPlan,
    ShardPlan,
    cut_by_generations,
    cut_by_versions,
    plan_batch,
)
from mirrorlake.errors import TargetRefused
from mirrorlake.lake import stage
from mirrorlake.lake.lake import Lake
from mirrorlake.produce.backfill import Backfill
from mirrorlake.produce.commit_log import CommitLog
from mirrorlake.produce.ledger import Ledger, map_rows
from mirrorlake.produce.report import RESULT_DDL
from mirrorlake.produce.spec import FlowSpec, name_at_target
from mirrorlake.produce.task import ReadFiles, ReadRows, ShardJob
from mirrorlake.produce.writer import Target

logger = logging.getLogger(__name__)

#: Commits of `records` that one look at the change feed takes in.
COMMITS_AT_ONCE = 64


@dataclass(frozen=True)
class BatchReport:
    """What a batch did. `reader` is `files`, or `rows` where Spark fed the workers. `replication_ms` are p50, p95 and
    p99 of replication latency, each of the latest partition; None where no record was acknowledged.
    """

    batch_id: int
    stage_version: int
    record_count: int
    reader: str
    complete: bool
    replication_ms: tuple[int, int, int] | None = None


class FlowProducer:
    """Produces one flow. `ensure_targets` is called with the partition plans of a batch before its first record."""

    def __init__(self, lake: Lake, spec: FlowSpec, ensure_targets: Callable[[Sequence[PartitionPlan]], None]) -> None:
        self.lake = lake
        self.spec = spec
        self._ensure_targets = ensure_targets
        self._ledger = Ledger(lake, spec.name)
        self._owners: dict[int, str] = {}
        self._floors: dict[tuple[str, int], Floor] = {}
        self._backfill: Backfill | None = None
        self._files_work = spec.reader != "rows" and stage.readable_by_files(lake)
        self._log = None if lake.directory is None else CommitLog(lake.directory / "records")
        self.stage_version = -1
        self.batch_id = 0
        self._load_progress()

    def floor(self, topic: str, partition: int) -> Floor:
        """Where the map ends for a source partition."""
        return self._floors.get((topic, partition), NOTHING_MAPPED)

    def floors(self) -> dict[tuple[str, int], Floor]:
        """Where the map ends, of every source partition that has an end."""
        return dict(self._floors)

    def _load_progress(self) -> None:
        row = self.lake.query("flow_progress", flow=self.spec.name).collect()[0]
        for item in self.lake.query("floors", flow=self.spec.name).collect():
            key = (item["topic"], item["partition"])
            self._floors[key] = Floor(item["source_position"], item["target_position"], item["generation"])
        self.batch_id = (row["batch_id"] or 0) + 1
        same = row["selection"] == self.spec.fingerprint()
        self.stage_version = row["stage_version"] if same and row["stage_version"] is not None else -1
        if not stage.follows_commits(self.lake, self.stage_version):
            self._backfill = Backfill(self.lake, self.spec, self._floors)

    def step(self, up_to_version: int | None = None) -> BatchReport | None:
        """Produce the next batch; None when there is nothing new up to version `up_to_version` of `records`."""
        if self._backfill is not None:
            report = self._backfill_step(self._backfill)
            if report is not None:
                return report
        before = self.stage_version
        try:
            found, version = self._look(before, up_to_version)
        except FileNotFoundError:
            # The flow is later than maintenance keeps files, or commits: what it lacks is in the table all the same.
            logger.warning("flow %s: files of the stage that it has to read are gone; going by offsets", self.spec.name)
            self._backfill = Backfill(self.lake, self.spec, self._floors)
            return self.step(up_to_version)
        kept, cut = cut_by_generations(found)
        version = version if cut is None else cut
        plan = plan_batch(kept, self._floors, self.spec.remote_topic, self.spec.shard_count, self.spec.held)
        if plan.shards:
            return self._produce(plan, version, (before, version))
        self.stage_version = version
        return self.step(up_to_version) if version > before else None

    def _look(self, after: int, up_to_version: int | None) -> tuple[list[FileRange], int]:
        """What the next commits hold of this flow, and the version up to which that is all."""
        if self._log is not None and self._files_work:
            return self._log.new_ranges(self.spec.selected, after, up_to_version, self.spec.max_records)
        newest = up_to_version if up_to_version is not None else self.lake.version_of("records")
        end = min(newest, after + COMMITS_AT_ONCE)
        if end <= after:
            return [], after
        found = stage.new_ranges(self.lake, self.spec.selected, after, end)
        kept, cut = cut_by_versions(found, self.spec.max_records)
        return kept, end if cut is None or len(kept) == len(found) else cut

    def _backfill_step(self, backfill: Backfill) -> BatchReport | None:
        """The next piece of a backfill; None at its end, from where on commits are followed."""
        if backfill.finished:
            self._backfill = None
            self.stage_version = max(self.stage_version, backfill.version)
            return None
        plan, last = backfill.next(self._floors)
        report = self._produce(plan, backfill.version if last else self.stage_version, None)
        backfill.done(self._floors, report.complete)
        return report

    def _produce(self, plan: BatchPlan, version: int, versions: tuple[int, int] | None) -> BatchReport:
        partitions = [partition for shard in plan.shards for partition in shard.partitions]
        self._ensure_targets(partitions)
        if any(item.generation > self.floor(item.topic, item.partition).generation for item in partitions):
            self._ledger.drain()  # the metadata of a newer life can no longer tell of an elder one
        crash.reached("planned")
        jobs = [
            ShardJob(self._with_unmapped(shard), self._target(shard), self._owners.get(shard.shard), self.spec.skipped)
            for shard in plan.shards
        ]
        reader, result = self._run(jobs, plan, versions)
        crash.reached("produced")
        complete = bool(pc.all(result["complete"]).as_py())
        stage_version = version if complete else self.stage_version
        self._advance(result)
        self._hold_refused(result)
        self._ledger.add(result, self.batch_id, stage_version, self.spec.fingerprint())
        count = int(pc.sum(result["record_count"]).as_py() or 0)
        report = BatchReport(self.batch_id, stage_version, count, reader, complete, _latest(result))
        self.stage_version = stage_version
        self.batch_id += 1
        return report

    def _hold_refused(self, result: pa.Table) -> None:
        """Leave alone, from now on, the partitions of which the target refused a record (DESIGN 2, law 4)."""
        for row in result.filter(pc.is_valid(result["refused_first"])).to_pylist():
            refusal = TargetRefused(
                row["refused_reason"],
                topic=row["topic"],
                partition=row["partition"],
                first_offset=row["refused_first"],
                last_offset=row["refused_last"],
            )
            if self.spec.on_refused is None:
                raise refusal
            self.spec.on_refused(refusal)
            self.spec = replace(self.spec, held=self.spec.held | {(row["topic"], row["partition"])})
            if self._backfill is not None:
                self._backfill.spec = self.spec

    def _with_unmapped(self, shard: ShardPlan) -> ShardPlan:
        """Tell the tasks what is not in the map yet, so that the target keeps it in its metadata."""
        return replace(
            shard,
            partitions=tuple(
                replace(plan, unmapped=self._ledger.unmapped(plan.topic, plan.partition)) for plan in shard.partitions
            ),
        )

    def drain(self) -> None:
        """Wait until everything produced is in the map. Raises what its append raised."""
        self._ledger.drain()

    def close(self) -> None:
        """Drain, and end the ledger's thread."""
        self._ledger.close()

    def _run(self, jobs: Sequence[ShardJob], plan: BatchPlan, versions: tuple[int, int] | None) -> tuple[str, pa.Table]:
        spark = self.lake.spark
        if plan.ordered and self._files_work:
            try:
                frame = spark.range(0, len(jobs), 1, len(jobs)).mapInArrow(ReadFiles(jobs), RESULT_DDL)
                return "files", frame.toArrow()
            except Exception as error:
                if self.spec.reader == "files" or not _reader_failed(error):
                    raise
                logger.warning("flow %s: workers cannot read the stage's files; Spark reads them", self.spec.name)
                self._files_work = "LayoutError" in str(error)
        rows = stage.sorted_rows(
            self.lake,
            self.spec.selected.source_cluster,
            [partition for shard in plan.shards for partition in shard.partitions],
            self.spec.shard_count,
            versions,
            self.stage_version if self._backfill is None else self._backfill.version,
        )
        return "rows", rows.mapInArrow(ReadRows(jobs), RESULT_DDL).toArrow()

    def _target(self, shard: ShardPlan) -> Target:
        name = name_at_target(self.lake, self.spec.name)
        return Target(
            self.spec.client,
            self.spec.producer,
            group_id=name,
            transactional_id=f"{name}-{shard.shard}",
            shard_count=self.spec.shard_count,
            transactional=self.spec.transactional,
            provenance=self.spec.provenance,
        )

    def _advance(self, result: pa.Table) -> None:
        for row in result.select(["shard", "worker"]).to_pylist():
            self._owners[row["shard"]] = row["worker"]
        rows = map_rows(result)
        ends = rows.group_by(["topic", "partition", "generation"]).aggregate(
            [("source_last", "max"), ("target_last", "max")]
        )
        for row in ends.to_pylist():
            key = (row["topic"], row["partition"])
            self._floors[key] = Floor(row["source_last_max"] + 1, row["target_last_max"] + 1, row["generation"])


def _latest(result: pa.Table) -> tuple[int, int, int] | None:
    """The highest percentiles of a batch's partitions."""
    found = [pc.max(result[f"replication_{name}_ms"]).as_py() for name in ("p50", "p95", "p99")]
    return None if None in found else (found[0], found[1], found[2])


def _reader_failed(error: Exception) -> bool:
    """Whether a task failed because it could not open, or not trust, the stage's files."""
    text = str(error)
    return any(
        name in text for name in ("LayoutError", "FileNotFoundError", "PermissionError", "ArrowNotImplementedError")
    )
