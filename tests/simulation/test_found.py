"""Schedules that the simulation found, step by step, so that they are tried whatever the seeds."""

from copy import deepcopy

import pytest

from mirrorlake.produce.batch import shard_of
from tests.simulation.driver import Driver
from tests.simulation.kafka import ODD
from tests.simulation.schedule import Schedule
from tests.simulation.steps import Fault, TaskFailed


def test_a_producer_asks_for_the_position_of_a_partition_that_it_meets_in_a_later_batch(
    schedule: Schedule,
) -> None:
    """Records at the target whose map rows were lost are not written again because the first batch
    after a restart held another partition of their shard."""
    world = schedule.world
    world.write("t0", 0, 2)
    schedule.do("land", "produce")
    schedule.killed()
    world.write("t1", 0, 2)
    schedule.do("land")
    world.stage.optimize(per_file=1, reverse=True)
    schedule.do("produce", "produce")
    schedule.check()


def test_an_append_of_a_dead_process_that_arrives_late_adds_nothing(schedule: Schedule) -> None:
    """A commit to the map that was on its way when its process died may come when the next process
    has read the map's ends, and has rebuilt the same rows."""
    schedule.world.write("t0", 0, 2)
    schedule.do("land", "produce")
    schedule.killed(salt=1)  # the append goes on
    schedule.do("produce")
    schedule.world.wake()
    schedule.do("append_map")
    schedule.check()


@pytest.mark.parametrize("most", [1, 2, 3, 4, 100])
def test_a_lake_that_is_older_than_the_target_gets_its_map_back(
    schedule: Schedule, most: int
) -> None:
    """A lake is a copy from before, as of a backup: what the target has since is in no map, and its
    position tells of the newest part alone. However small batches are, what the target took is
    taken at once."""
    world = schedule.world
    world.write("t0", 0, 2)
    schedule.do("land", "produce", "append_map")
    stage, tables = deepcopy(world.stage), deepcopy(world.tables)
    for _ in range(2):
        world.write("t0", 0, 4)
        schedule.do("land", "produce", "append_map")
    schedule.killed()
    world.stage.__dict__.update(stage.__dict__, steps=world.steps)
    world.tables.__dict__.update(tables.__dict__, steps=world.steps)
    world.settings.max_records = most
    schedule.do("land", *["produce"] * 10, "append_map")
    rows = [row for row in world.tables.of("offset_map") if row["topic"] == "t0"]
    mapped = sum(row["record_count"] for row in rows)
    assert (mapped, rows[-1]["source_last"]) == (10, 9)
    schedule.check()


def test_a_range_without_a_row_is_skipped_where_spark_reads_the_stage(schedule: Schedule) -> None:
    """A batch's range may lie in a gap between two records of a file: no task runs, so none says
    that it is done."""
    world = schedule.world
    world.settings.reader = "rows"
    world.write("t0", 0, 1)
    world.write("t0", 0, 40, "aborted")
    world.write("t0", 0, 7)
    schedule.do("land", "produce")
    schedule.check()


@pytest.mark.parametrize("reader", ["auto", "rows"])
@pytest.mark.parametrize("more", [0, 5])
def test_the_map_of_a_stopped_partition_has_all_that_was_produced(
    schedule: Schedule, reader: str, more: int
) -> None:
    """The process dies before the map has what was committed, and the partition is stopped for the
    record behind it: its position is asked for once more, and nothing of what follows goes to the
    target."""
    world = schedule.world
    world.settings.reader, world.settings.parks = reader, False
    world.settings.max_records = 100
    world.write("t0", 0, 3, refused=ODD)
    world.write("t0", 0, more)
    schedule.do("land", "produce")
    assert [refusal.kind for refusal in world.open_incidents()] == ["target_refused"]
    assert not world.tables.of("offset_map")
    schedule.killed()
    world.open_incidents()[0].resolution = "stop"
    schedule.do("produce", "append_map")
    assert sum(run["record_count"] for run in world.tables.of("offset_map")) == 2
    there = world.target.log("t0", 0)
    assert there is not None and len(list(there.read(0, there.end))) == 2
    schedule.check()


@pytest.mark.parametrize("steps", range(1, 30))
def test_a_task_of_another_number_of_shards_writes_no_more(schedule: Schedule, steps: int) -> None:
    """A partition's transactional id is another one when a flow comes back with another number of
    shards: whatever a task of before is about to do, nobody who initialises the new id fences
    it."""
    world = schedule.world
    world.settings.produce_tasks = 2
    schedule.do("land", "produce")
    for partition in (0, 1):
        world.write("t0", partition, 3)
    schedule.do("land")
    schedule._do("produce", 0, Fault("zombie", steps))
    schedule.killed()
    world.settings.produce_tasks = 1
    schedule.do("produce")
    world.wake()
    schedule.check()


@pytest.mark.parametrize("steps", range(1, 12))
def test_a_task_of_another_number_of_shards_that_begins_between_two_batches_writes_nothing(
    schedule: Schedule, steps: int
) -> None:
    """It initialises its id behind all who could fence it, while the new ones are in the middle of
    what it has."""
    world = schedule.world
    partition = next(number for number in (0, 1) if shard_of("t0", number, 2) == 1)
    world.write("t0", partition, 1)
    schedule.do("land", "produce", "append_map")
    world.write("t0", partition, 6)
    schedule.do("land")
    world.settings.max_records = 100
    schedule.killed()  # so that the task has a fresh producer
    schedule._do("produce", 0, Fault("zombie", steps))
    schedule.killed()
    world.settings.produce_tasks, world.settings.max_records = 2, 2
    schedule.do("produce")
    world.wake()
    schedule.do("produce", "produce")
    schedule.check()


@pytest.mark.parametrize("steps", range(1, 12))
def test_a_task_that_begins_behind_a_forget_writes_nothing_of_what_goes(
    schedule: Schedule, steps: int
) -> None:
    """Nobody runs the flow while `forget` notes what it deletes, but a task of a dead process has
    the records."""
    world = schedule.world
    world.settings.max_records = 100
    world.write("t0", 0, 9)
    schedule.do("land")
    schedule._do("produce", 0, Fault("zombie", steps))
    schedule.killed()
    assert world.forget("t0", 1, schedule.driver.still_needed("t0"), finishes=False)
    world.wake()
    schedule.check()


def test_rows_that_a_compaction_turned_round_are_not_written_in_that_order(
    schedule: Schedule,
) -> None:
    """A file holds a partition in two ranges, the later one first, and a transaction ends in
    between."""
    world = schedule.world
    world.settings.max_records = 100
    for partition, count in ((1, 2), (0, 2), (1, 4)):
        world.write("t0", partition, count)
        schedule.do("land")
    world.stage.optimize(per_file=3, reverse=True)
    schedule.do("produce")
    schedule.check()


@pytest.mark.parametrize("ahead", [3_600_000, -3_600_000])
def test_a_clock_that_was_wrong_at_the_last_start_drops_nothing(
    schedule: Schedule, ahead: int
) -> None:
    """A start by a clock that is an hour ahead fenced the map in the future: what was appended
    after it was set right did not get there, and nobody heard of it."""
    world = schedule.world
    world.settings.max_records = 100
    world.write("t0", 0, 3)
    schedule.do("land", "produce", "append_map")
    world.clock_ahead = ahead
    schedule.killed()
    schedule.do("produce")  # it begins, and has nothing to do
    world.clock_ahead = 0
    schedule.killed()
    world.write("t0", 0, 3)
    schedule.do("land", "produce", "append_map")
    assert sum(row["record_count"] for row in world.tables.of("offset_map")) == 6
    world.clock_ahead = -ahead  # while it runs
    world.write("t0", 0, 3)
    schedule.do("land", "produce", "append_map", "stop")
    schedule.killed()
    schedule.check()


@pytest.mark.parametrize("caught", ["in a batch", "idle"])
def test_a_suspended_process_that_wakes_is_told_that_it_was_fenced(
    schedule: Schedule, caught: str
) -> None:
    """It would go on for ever, into nothing, with a lag of 0; or take back what another process
    has."""
    world = schedule.world
    world.write("t0", 0, 2)
    schedule.do("land", "produce", *(() if caught == "in a batch" else ("append_map",)))
    schedule._suspend()
    world.write("t0", 0, 2)
    schedule.do("land", "produce", "append_map")
    before = len(world.steps.taken)
    schedule._wake()
    assert any("Fenced" in line and "offset_map" in line for line in world.steps.taken[before:])
    asleep = len(world.steps.taken)
    world.write("t0", 0, 2)
    schedule.do("land", "produce", "append_map")
    assert not any("Fenced" in line for line in world.steps.taken[asleep:]), "the other one goes on"
    schedule.check()


@pytest.mark.parametrize("noticed", ["by its ends", "by a task"])
@pytest.mark.parametrize("again", [True, False], ids=["produce-again", "accept"])
def test_what_a_target_lost_is_out_of_the_map_until_it_is_produced_again(
    schedule: Schedule, noticed: str, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = schedule.world
    world.settings.max_records = 100
    world.write("t0", 0, 6)
    schedule.do("land", "produce", "append_map")
    world.rewind_target("t0", 0, 5)  # the marker too
    if noticed == "by a task":
        monkeypatch.setattr(Driver, "_targets_differ", lambda _self: False)
    world.write("t0", 0, 3)
    schedule.do("land", "produce", "produce", "produce")
    (lost,) = world.open_incidents()
    assert (lost.kind, lost.first, lost.last) == ("target_lost", 2, 5)
    assert [(run["source_last"], run["target_last"]) for run in world.tables.of("offset_map")] == [
        (1, 1)
    ]
    there = world.target.log("t0", 0)
    assert there is not None and len(list(there.read(0, there.end))) == 2
    monkeypatch.undo()
    lost.resolution = "produce-again" if again else "accept"
    schedule.do("produce", "append_map")
    assert len(list(there.read(0, there.end))) == (9 if again else 5)
    schedule.check()


def test_what_a_target_lost_before_the_map_had_it_is_out_of_the_map(schedule: Schedule) -> None:
    """The process died before the map had its records, and the target lost them: what follows gets
    their offsets, while their rows are restored."""
    world = schedule.world
    world.settings.max_records = 100
    world.write("t0", 0, 2)
    schedule.do("land", "produce")
    assert not world.tables.of("offset_map")
    schedule.killed()
    world.rewind_target("t0", 0, 3)  # the marker too
    world.write("t0", 0, 3)
    schedule.do("land", "produce")
    (lost,) = world.open_incidents()
    assert (lost.kind, lost.first, lost.last) == ("target_lost", 0, 1)
    schedule.check()


def test_what_a_flow_has_just_produced_stays_in_the_stage_though_its_topic_is_no_longer_selected(
    schedule: Schedule,
) -> None:
    """Its rows of the map are counted in the stage, and none is there yet: nothing of it is
    forgotten before."""
    world = schedule.world
    world.write("t0", 0, 2)
    schedule.do("land", "produce")
    world.selected = set()
    assert world.forget("t0", 7, schedule.driver.still_needed("t0"), finishes=True) == 0
    schedule.check()


@pytest.mark.parametrize("reader", ["auto", "rows"])
@pytest.mark.parametrize("salt", [0, 8], ids=["long", "short"])
def test_a_reader_that_gives_less_of_a_range_with_gaps_that_a_batch_cuts_is_noticed(
    schedule: Schedule, reader: str, salt: int
) -> None:
    """The gaps are on one side of the cut, and what a reader leaves out on the other, whether it
    reads, reads for the first time, or counts what is outside."""
    world = schedule.world
    world.settings.max_records, world.settings.reader = 3, reader
    schedule.killed()
    missed = 0
    for batch in range(6):
        for count in (2, 1, 2):
            world.write("t0", 0, count, "committed")
        schedule.do("land")
        for _ in range(3):
            schedule._do("produce", salt, Fault("less", 1 + batch % 3))
            world.steps.fault = None
            missed += "less at" in " ".join(world.steps.taken[-3:])
            schedule.do("produce", salt=salt)
    assert missed >= 3
    schedule.check()


def test_what_was_given_up_of_a_topic_is_not_given_up_of_the_one_that_took_its_name(
    schedule: Schedule,
) -> None:
    world = schedule.world
    world.settings.parks = False
    world.write("t0", 0, 1, refused=ODD)
    schedule.do("land", "produce")
    (refused,) = world.open_incidents()
    refused.resolution = "skip"
    world.write("t0", 0, 2)
    schedule.do("land", "produce", "produce", "append_map")
    world.source.delete("t0")
    world.create("t0", 2)
    world.unseen = True
    world.write("t0", 0, 3)
    schedule.check()


@pytest.mark.parametrize("steps", range(8, 17, 2))
def test_what_a_task_wrote_whose_answer_was_lost_with_another_one_is_not_written_again(
    schedule: Schedule, steps: int
) -> None:
    """Spark gives no rows of a job in which a worker died. Those of the other shards live on, with
    producers that asked for their positions long ago. A replicator begins its flow anew then; one
    that goes on is as exact."""
    world = schedule.world
    world.settings.produce_tasks, world.settings.max_records = 2, 100
    schedule.killed()
    _write_to_both_shards(schedule)
    schedule.do("produce", salt=3)  # which has each shard in a worker of its own
    flow = schedule.driver._flow
    assert flow is not None
    _write_to_both_shards(schedule)
    # the first shard ends before that
    world.salt, world.steps.fault = 3, Fault("worker", steps)
    with pytest.raises(TaskFailed):
        flow.step()
    flow.step()
    schedule.check()


def test_what_landing_looks_for_after_a_time_it_looks_for_whatever_the_clock_was(
    schedule: Schedule,
) -> None:
    """10.7 - 7.2 is less than 3.5: a log that had gone back was read on before it was compared."""
    world = schedule.world
    world.seconds = 7.2
    world.write("t0", 0, 2)
    schedule.do("land")
    world.rewind("t0", 0, 5, 3)
    schedule.check()


def _write_to_both_shards(schedule: Schedule) -> None:
    for partition in (0, 1):
        schedule.world.write("t0", partition, 2)
    schedule.do("land")
