"""Records that are deleted from the stage while a flow that lacks them runs, by a `maintain` that
does not know of it: the flow begins anew before it goes on behind them, and finds the hole."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.forget.forget import _Request, forget
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake import maintain
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.forgotten import forgotten_from
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.offsets.runs import segments_of
from mirrorlake.produce.flow import FlowProducer, RecordsDeleted
from mirrorlake.produce.ports import BatchWay
from mirrorlake.produce.report import Progress, result_of
from mirrorlake.produce.spec import FlowSpec
from mirrorlake.produce.task import ShardJob
from mirrorlake.run.stage_holes import holes_before
from mirrorlake.spark.tasks import Done
from tests.support.lake_rows import FLOW, commit, no_session, opened, staged, write_file

OLD: Any = SimpleNamespace(retention_days=0, disabled_hold_days=0)


class Target:
    """Takes all that it is given, in this process."""

    def at_most(self, records: int) -> int:
        return records

    def can_read_files(self) -> bool:
        return True

    def files(self, jobs: Sequence[ShardJob]) -> tuple[BatchWay, Done[pa.RecordBatch]]:
        results = []
        for job in jobs:
            states = [
                Progress(plan, plan.first, [], [], recovered=[]) for plan in job.plan.partitions
            ]
            for state in states:
                offsets = range(state.plan.first, state.plan.last + 1)
                state.segments = segments_of(offsets, state.plan.first)
            results.append(result_of(job.plan.shard, "worker", states, complete=True))
        return "short", Done(results)

    def close(self) -> None:
        pass


def flow(lake: Lake, stage: StageFiles) -> FlowProducer:
    """As a process has it that has looked for holes."""
    spec = FlowSpec(
        FLOW,
        source_cluster="east",
        name_at_target="flow",
        remote_topic=lambda topic: f"east.{topic}",
        client={},
        producer={},
        produce_tasks=1,
        transactional=False,
        max_records=3,
        forgotten=forgotten_from(lake, "east"),
    )
    target: Any = Target()
    return FlowProducer(stage, LakeMap(lake, FLOW), target, spec, lambda _plans: None)


def test_a_flow_that_runs_does_not_go_on_behind_what_is_deleted(tmp_path: Path) -> None:
    lake, _ = opened(no_session, write_file(tmp_path))
    without = write_file(tmp_path / "other", flows={"east->north": {"topics": "none"}})
    commit(lake, "records", staged(range(10)))
    stage = StageFiles(lake)
    first = flow(lake, stage)
    assert holes_before(lake, stage, first, {}) == {}
    report = first.step()
    assert report is not None and report.record_count == 3
    first.drain()
    maintain._retain_records(lake, load_topology(without), OLD, False, lambda _: ())
    for _ in range(2):
        with pytest.raises(RecordsDeleted):
            first.step()
    first.close()
    second = flow(lake, stage)
    ((place, hole),) = holes_before(lake, stage, second, {}).items()
    assert (place, hole.first_offset, hole.last_offset) == (("orders", 0), 3, 8)
    second.close()
    accepted = flow(lake, stage)
    decided = {PartitionGeneration("orders", 0, 0): OffsetRanges([(3, 8)])}
    assert holes_before(lake, stage, accepted, decided) == {}
    assert accepted.step() is not None and accepted.step() is None
    assert accepted.floors()["orders", 0].next == 10
    accepted.close()


def test_a_flow_that_first_begins_while_records_are_forgotten_goes_on_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another file, and behind the look for flows that need them: it has sent one of them."""
    lake, _ = opened(no_session, write_file(tmp_path))
    without = write_file(tmp_path / "other", flows={"east->north": {"topics": "none"}})
    commit(lake, "records", staged(range(10)))
    stage, note = StageFiles(lake), _Request.note
    begun: list[FlowProducer] = []

    def late(self: _Request, *args: Any) -> None:
        begun.append(flow(lake, stage))
        assert holes_before(lake, stage, begun[0], {}) == {}
        report = begun[0].step()
        assert report is not None and report.record_count == 3
        note(self, *args)

    monkeypatch.setattr(_Request, "note", late)
    deployment = Deployment.opened(lake, Connections(load_topology(without)))
    done = forget(deployment, ["orders"], "offset IN (1, 5)")
    assert (done["records"], done["waiting"]) == (2, 0)
    with pytest.raises(RecordsDeleted):
        begun[0].step()
    begun[0].close()
    again = flow(lake, stage)
    assert holes_before(lake, stage, again, {}) == {}
    assert list(iter(again.step, None))
    assert again.floors()["orders", 0].next == 10
    again.close()


def test_files_that_are_made_one_are_no_less(tmp_path: Path) -> None:
    lake, _ = opened(no_session, write_file(tmp_path))
    for first in range(0, 9, 3):
        commit(lake, "records", staged(range(first, first + 3)))
    stage = StageFiles(lake)
    producer = flow(lake, stage)
    assert holes_before(lake, stage, producer, {}) == {}
    assert producer.step() is not None
    lake.upkeep("records").compact()
    assert [report.record_count for report in iter(producer.step, None)] == [3, 3]
    producer.close()
