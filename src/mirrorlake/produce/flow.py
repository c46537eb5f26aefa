"""The driver's side of producing: one flow, batch after batch, with no state but the tables and the target's positions.

A batch is what new commits of `records` brought (`core.batch`). The order of events is what makes it exactly once:
transactions in Kafka, then the rows of `offset_map`, then those of `latency`. Whatever dies in between is found out
from the tables (how far the map goes) and from the target (how far the flow goes), see `produce/task.py`.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
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
    cut_by_versions,
    plan_batch,
)
from mirrorlake.lake import stage
from mirrorlake.lake.lake import Lake
from mirrorlake.produce.commit_log import CommitLog
from mirrorlake.produce.ledger import Ledger, map_rows
from mirrorlake.produce.task import RESULT_DDL, ReadFiles, ReadRows, ShardJob
from mirrorlake.produce.writer import Target

logger = logging.getLogger(__name__)

#: Commits of `records` that one look at the change feed takes in.
COMMITS_AT_ONCE = 64


@dataclass(frozen=True)
class FlowSpec:
    """What producing a flow needs to know. `client` and `producer` are rendered librdkafka settings with secrets."""

    name: str
    selected: stage.Selected
    remote_topic: Callable[[str], str | None]
    client: Mapping[str, str | int | bool]
    producer: Mapping[str, str | int | bool]
    shard_count: int
    transactional: bool
    max_records: int = 2_000_000
    reader: str = "auto"


@dataclass(frozen=True)
class BatchReport:
    """What a batch did. `reader` is `files`, or `rows` where Spark fed the workers."""

    batch_id: int
    stage_version: int
    record_count: int
    reader: str
    complete: bool


class FlowProducer:
    """Produces one flow. `ensure_targets` is called with the partition plans of a batch before its first record."""

    def __init__(self, lake: Lake, spec: FlowSpec, ensure_targets: Callable[[Sequence[PartitionPlan]], None]) -> None:
        self.lake = lake
        self.spec = spec
        self._ensure_targets = ensure_targets
        self._ledger = Ledger(lake, spec.name, self._fingerprint())
        self._owners: dict[int, str] = {}
        self._floors: dict[tuple[str, int], Floor] = {}
        self._backfill: list[PartitionPlan] = []
        self._backfill_version = -1
        self._files_work = spec.reader != "rows" and stage.readable_by_files(lake)
        self._log = None if lake.directory is None else CommitLog(lake.directory / "records")
        self.stage_version = -1
        self.batch_id = 0
        self.last: BatchReport | None = None
        self._load_progress()

    @property
    def reader(self) -> str:
        """Which reader is in use: `files` or `rows`."""
        return "files" if self._files_work else "rows"

    def floor(self, topic: str, partition: int) -> Floor:
        """Where the map ends for a source partition."""
        return self._floors.get((topic, partition), NOTHING_MAPPED)

    def _load_progress(self) -> None:
        row = self.lake.query("flow_progress", flow=self.spec.name).collect()[0]
        for item in self.lake.query("floors", flow=self.spec.name).collect():
            key = (item["topic"], item["partition"])
            self._floors[key] = Floor(item["source_position"], item["target_position"])
        self.batch_id = (row["batch_id"] or 0) + 1
        same = row["selection"] == self._fingerprint()
        self.stage_version = row["stage_version"] if same and row["stage_version"] is not None else -1
        if not stage.follows_commits(self.lake, self.stage_version):
            self._plan_backfill()

    def _fingerprint(self) -> str:
        return hashlib.sha256(self.spec.selected.pattern.encode()).hexdigest()[:12]

    def _plan_backfill(self) -> None:
        """Work off the stage as it is now by offsets, since its commits do not tell the order any more."""
        self._backfill_version = self.lake.version_of("records")
        ranges = stage.staged_ranges(self.lake, self.spec.selected, self._backfill_version)
        plan = plan_batch(ranges, self._floors, self.spec.remote_topic, self.spec.shard_count)
        self._backfill = [partition for shard in plan.shards for partition in shard.partitions]
        logger.info(
            "flow %s: backfill of %d partitions up to version %d",
            self.spec.name,
            len(self._backfill),
            self._backfill_version,
        )
        if not self._backfill:
            self.stage_version = self._backfill_version

    def step(self, up_to_version: int | None = None) -> BatchReport | None:
        """Produce the next batch; None when there is nothing new up to version `up_to_version` of `records`."""
        if self._backfill:
            return self._backfill_step()
        before = self.stage_version
        kept, version = self._look(before, up_to_version)
        plan = plan_batch(kept, self._floors, self.spec.remote_topic, self.spec.shard_count)
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

    def _backfill_step(self) -> BatchReport:
        plans = [replace(plan, floor=self.floor(plan.topic, plan.partition)) for plan in self._backfill]
        pieces = stage.cut_windows(plans, self.spec.max_records)
        ranges = [
            FileRange("", self._backfill_version, piece.topic, piece.partition, piece.first, piece.last, 1)
            for piece in pieces
        ]
        plan = replace(plan_batch(ranges, self._floors, self.spec.remote_topic, self.spec.shard_count), ordered=False)
        last = all(piece.last == whole.last for piece, whole in zip(pieces, plans, strict=False)) and len(
            pieces
        ) <= len(plans)
        version = self._backfill_version if last else self.stage_version
        report = self._produce(plan, version, None)
        for piece in pieces:
            # A window of offsets may hold no record at all (compaction): step over it.
            known = self.floor(piece.topic, piece.partition)
            if report.complete and known.source <= piece.last:
                self._floors[piece.topic, piece.partition] = Floor(piece.last + 1, known.target)
        self._backfill = [
            whole for whole in self._backfill if self.floor(whole.topic, whole.partition).source <= whole.last
        ]
        if not self._backfill:
            self.stage_version = self._backfill_version
        return report

    def _produce(self, plan: BatchPlan, version: int, versions: tuple[int, int] | None) -> BatchReport:
        self._ensure_targets([partition for shard in plan.shards for partition in shard.partitions])
        crash.reached("planned")
        jobs = [
            ShardJob(self._with_unmapped(shard), self._target(shard), self._owners.get(shard.shard))
            for shard in plan.shards
        ]
        reader, result = self._run(jobs, plan, versions)
        crash.reached("produced")
        complete = bool(pc.all(result["complete"]).as_py())
        stage_version = version if complete else self.stage_version
        self._advance(result)
        self._ledger.add(result, self.batch_id, stage_version)
        count = int(pc.sum(result["record_count"]).as_py() or 0)
        self.last = BatchReport(self.batch_id, stage_version, count, reader, complete)
        self.stage_version = stage_version
        self.batch_id += 1
        return self.last

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
            self._backfill_version,
        )
        return "rows", rows.mapInArrow(ReadRows(jobs), RESULT_DDL).toArrow()

    def _target(self, shard: ShardPlan) -> Target:
        name = f"mirrorlake-{self.lake.lake_id}-{self.spec.name}"
        return Target(
            self.spec.client,
            self.spec.producer,
            group_id=name,
            transactional_id=f"{name}-{shard.shard}",
            shard_count=self.spec.shard_count,
            transactional=self.spec.transactional,
        )

    def _advance(self, result: pa.Table) -> None:
        for row in result.select(["shard", "worker"]).to_pylist():
            self._owners[row["shard"]] = row["worker"]
        rows = map_rows(result)
        ends = rows.group_by(["topic", "partition"]).aggregate([("source_last", "max"), ("target_last", "max")])
        for row in ends.to_pylist():
            key = (row["topic"], row["partition"])
            self._floors[key] = Floor(row["source_last_max"] + 1, row["target_last_max"] + 1)


def _reader_failed(error: Exception) -> bool:
    """Whether a task failed because it could not open, or not trust, the stage's files."""
    text = str(error)
    return any(
        name in text for name in ("LayoutError", "FileNotFoundError", "PermissionError", "ArrowNotImplementedError")
    )
