"""The simulation is able to fail: with a known bug planted it does, within some schedules."""

import contextlib
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaError
from deltalake.exceptions import DeltaError

from mirrorlake.groups import moves, readable
from mirrorlake.kafka.error_classes import ErrorClass, class_of
from mirrorlake.landing import checkpoints, worker
from mirrorlake.landing import plan as landing_plan
from mirrorlake.landing.worker import LandingWorker
from mirrorlake.offsets.generations import SourceGenerations
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.offsets.runs import Segment, Written, rebuild
from mirrorlake.produce import (
    culprit,
    delivery,
    report,
    shard_jobs,
    shard_writing,
    stage_files,
    task,
)
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.flow import FlowProducer
from mirrorlake.produce.map_writer import MapWriter
from mirrorlake.produce.writer import ShardWriter
from tests.simulation import landing as simulated
from tests.simulation import test_found as found
from tests.simulation import test_two_processes as two_processes
from tests.simulation.kafka import Cluster
from tests.simulation.machine import EVENTS
from tests.simulation.run import simulate
from tests.simulation.schedule import Schedule
from tests.simulation.stage import Tables
from tests.simulation.steps import FULL, KINDS
from tests.simulation.test_before_the_session import BeforeTheSession

Patch = pytest.MonkeyPatch


class Unforgetting(dict[int, str]):
    """Owners of shards that are still believed in after a failure."""

    def clear(self) -> None:
        pass


def owners_are_not_forgotten(patch: Patch) -> None:
    begin = FlowProducer.__init__

    def begin_unforgetting(self: FlowProducer, *args: Any) -> None:
        begin(self, *args)
        self._state.owners = Unforgetting()

    patch.setattr(FlowProducer, "__init__", begin_unforgetting)


def positions_are_not_asked_for(patch: Patch) -> None:
    patch.setattr(ShardWriter, "positions", lambda self, keys: {})
    patch.setattr(task, "_refuse_unknown", lambda job, writer, state: None)


def lost_positions_are_taken_for_none(patch: Patch) -> None:
    patch.setattr(task, "_refuse_unknown", lambda job, writer, state: None)


def lost_map_rows_are_not_rebuilt(patch: Patch) -> None:
    patch.setattr(shard_writing, "rebuild", lambda offsets, written: [])


def what_the_map_has_is_rebuilt(patch: Patch) -> None:
    patch.setattr(task, "trim_written", lambda written, target, source: list(written))


def unmapped_rows_are_left_out_of_the_metadata(patch: Patch) -> None:
    """And what it does not cover is taken for nothing: else it would be found by its content."""

    def rebuilt(offsets: Sequence[int], written: Sequence[Written]) -> list[Segment]:
        covered = sum(one.record_count for one in written)
        return rebuild(offsets[len(offsets) - covered :], written)

    patch.setattr(MapWriter, "unmapped", lambda self, key: ())
    patch.setattr(shard_writing, "rebuild", rebuilt)


def older_producers_are_not_fenced(patch: Patch) -> None:
    patch.setattr(Cluster, "is_current", lambda self, name, epoch: True)
    patch.setattr(Cluster, "begin", lambda self, name: 0)


def tokens_are_not_asked_for(patch: Patch) -> None:
    patch.setattr(task, "check_token", lambda target, topics: None)


def appends_are_not_idempotent(patch: Patch) -> None:
    append = Tables.append
    patch.setattr(
        Tables,
        "append",
        lambda self, table, rows, application=None, version=0: append(self, table, rows),
    )


def what_found_no_room_is_taken_for_written(patch: Patch) -> None:
    append = Tables.append

    def append_or_not(
        self: Tables, table: str, rows: Any, application: str | None = None, version: int = 0
    ) -> None:
        with contextlib.suppress(OSError, DeltaError):
            append(self, table, rows, application, version)

    patch.setattr(Tables, "append", append_or_not)


def a_range_is_skipped_that_was_not_produced(patch: Patch) -> None:
    patch.setattr(
        report, "_reached", lambda state, segments, recovering, complete: state.plan.last + 1
    )


def progress_is_a_version(patch: Patch) -> None:
    """A flow that begins takes what is staged for produced up to the version of the newest row of
    its map, whatever it selected then: the bug by which a changed selection and a crash lost most
    of a backlog."""
    begin = FlowProducer.__init__

    def begin_at_version(self: FlowProducer, *args: Any) -> None:
        begin(self, *args)
        rows = args[1]._tables.of("offset_map")
        self._produced_version = max((row["stage_version"] for row in rows), default=None)

    patch.setattr(FlowProducer, "__init__", begin_at_version)


def readers_are_not_counted(patch: Patch) -> None:
    for module in (task, stage_files):
        patch.setattr(module, "counted", lambda rows, plans, skipped: rows)
    patch.setattr(shard_jobs, "check_unread", lambda plans, skipped: None)


def failures_of_tasks_are_not_heard(patch: Patch) -> None:
    """A shard that failed is taken for one that had nothing to do."""
    run = FlowProducer._run

    def run_all(self: FlowProducer, *args: Any) -> Any:
        way, done = run(self, *args)
        return way, replace(done, failure=None)

    patch.setattr(FlowProducer, "_run", run_all)


def what_was_done_beside_a_failure_is_rebuilt(patch: Patch) -> None:
    """What is left after a failure is planned from where the batch began."""
    book = FlowProducer._book

    def book_and_go_back(self: FlowProducer, *args: Any) -> Any:
        before = dict(self._state.floors)
        report = book(self, *args)
        if args[-1].failure is not None:
            self._state.floors = before
        return report

    patch.setattr(FlowProducer, "_book", book_and_go_back)


def decisions_are_of_no_generation(patch: Patch) -> None:
    """What was given up or forgotten of a topic is left out of the one that took its name."""
    first = property(lambda self: PartitionGeneration(self.topic, self.partition, 0))
    patch.setattr(PartitionPlan, "place", first)


def groups_go_where_their_records_were(patch: Patch) -> None:
    patch.setattr(SourceGenerations, "living", lambda self, place, offset: offset)


def groups_go_where_the_map_leads(patch: Patch) -> None:
    """Whether or not the record is still there."""
    for module in (readable, moves):
        patch.setattr(module, "within", lambda item, log: item)


def queries_are_marked_behind_their_plans(patch: Patch) -> None:
    """Who is overtaken between the two is fenced by none."""
    names, made = map("late{}".format, itertools.count()), simulated._made

    def begin(lake: Any, alias: str) -> Any:
        checkpoints.end_queries(lake, alias)
        return lake.checkpoints / "land" / alias / next(names)

    def marked(world: Any, job: Any, application: str) -> Any:
        world.marks[application.rpartition(" ")[2]] = b""
        return made(world, job, application)

    patch.setattr(worker, "begin_query", begin)
    patch.setattr(simulated, "_made", marked)


def queries_begin_where_the_ones_before_ended(patch: Patch) -> None:
    """And not where the stage does."""
    plan = LandingWorker._plan

    def planned(self: LandingWorker, checkpoint: Any) -> Any:
        covered = dict(self._covered)
        found = plan(self, checkpoint)
        starts = {key: covered.get(key, start) for key, start in found.plan.starts.items()}
        return replace(found, plan=replace(found.plan, starts=starts))

    patch.setattr(LandingWorker, "_plan", planned)


def queries_begin_a_record_early(patch: Patch) -> None:
    position_of = landing_plan.position_of

    def before(*args: Any) -> int | None:
        return (position_of(*args) or 1) - 1

    patch.setattr(landing_plan, "position_of", before)


#: Bugs of landing, and schedules that meet them more often.
OF_LANDING = (queries_begin_where_the_ones_before_ended, queries_begin_a_record_early)


def faults_of_the_cluster_are_taken_for_refusals(patch: Patch) -> None:
    def taken(error: KafkaError | int) -> ErrorClass:
        kind = class_of(error)
        return ErrorClass.RECORD if kind is ErrorClass.CLUSTER else kind

    for module in (culprit, delivery):
        patch.setattr(module, "class_of", taken)


BUGS: Sequence[Callable[[Patch], None]] = (
    progress_is_a_version,
    positions_are_not_asked_for,
    lost_positions_are_taken_for_none,
    lost_map_rows_are_not_rebuilt,
    what_the_map_has_is_rebuilt,
    unmapped_rows_are_left_out_of_the_metadata,
    older_producers_are_not_fenced,
    appends_are_not_idempotent,
    what_found_no_room_is_taken_for_written,
    a_range_is_skipped_that_was_not_produced,
    faults_of_the_cluster_are_taken_for_refusals,
    readers_are_not_counted,
    failures_of_tasks_are_not_heard,
    what_was_done_beside_a_failure_is_rebuilt,
    groups_go_where_their_records_were,
    groups_go_where_the_map_leads,
)


#: Of bugs that a schedule with everything in it hardly ever meets: what theirs are drawn without.
_RARE = {name for name, times in EVENTS.items() if times < 4}
WITHOUT: Mapping[Callable[[Patch], None], Collection[str]] = {
    what_found_no_room_is_taken_for_written: (),
    faults_of_the_cluster_are_taken_for_refusals: {*KINDS, FULL, *EVENTS} - {"answer_otherwise"},
    lost_positions_are_taken_for_none: {*KINDS, FULL, *_RARE} - {"driver", "error", "expire"},
}


@pytest.mark.parametrize("plant", BUGS, ids=lambda plant: plant.__name__)
@pytest.mark.slow
def test_a_planted_bug_is_found(plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    plant(monkeypatch)
    without = WITHOUT.get(plant, (FULL,))
    with pytest.raises(AssertionError):
        for seed in (3, 4, 8):
            simulate(400, seed, without, shrink=False)


@pytest.mark.parametrize("plant", OF_LANDING, ids=lambda plant: plant.__name__)
@pytest.mark.slow
def test_a_planted_bug_of_landing_is_found(
    plant: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        for seed in (5, 6):
            simulate(100, seed, shrink=False, kind=BeforeTheSession)


def what_an_overtaken_process_takes_for_lost_is_told(patch: Patch) -> None:
    patch.setattr(worker, "is_fenced", lambda *_: False)


@pytest.mark.parametrize(
    "plant",
    [queries_are_marked_behind_their_plans, what_an_overtaken_process_takes_for_lost_is_told],
    ids=lambda plant: plant.__name__,
)
def test_a_planted_bug_of_two_processes_is_found(
    plant: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        for steps in two_processes.STEPS:
            two_processes.test_what_another_process_has_staged_is_staged_by_no_other_one(100, steps)


#: Bugs that drawn schedules meet once in thousands or never, since something else keeps most of
#: them from harm, and the schedules that were written down for them.
WRITTEN: Mapping[Callable[[Patch], None], Callable[[Schedule], None]] = {
    owners_are_not_forgotten: partial(
        found.test_what_a_task_wrote_whose_answer_was_lost_with_another_one_is_not_written_again,
        steps=14,
    ),
    tokens_are_not_asked_for: partial(
        found.test_a_task_that_begins_behind_a_forget_writes_nothing_of_what_goes, steps=1
    ),
    decisions_are_of_no_generation: (
        found.test_what_was_given_up_of_a_topic_is_not_given_up_of_the_one_that_took_its_name
    ),
}


@pytest.mark.parametrize("plant", WRITTEN, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found_by_a_written_schedule(
    plant: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    schedule = Schedule()
    schedule.begin(number=0)
    with closing(schedule), pytest.raises(AssertionError):
        WRITTEN[plant](schedule)
