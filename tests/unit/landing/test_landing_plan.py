"""The planner of landing over a source and a stage in memory: rewound logs, refused partitions,
when a plan is over."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.lake.retention import Removal
from mirrorlake.landing.excluded import WAIT_SECONDS
from mirrorlake.landing.plan import ALL_SECONDS, MANY, SILENT_SECONDS, LandingPlanner
from mirrorlake.landing.rewound import MOST_LEADERS
from mirrorlake.landing.source_comparison import Branch, CurrentGenerations, Loss, TopicGeneration
from mirrorlake.offsets import known_offsets
from mirrorlake.offsets.positions import LogEnd, TopicAndPartition
from tests.support.landing_model import T0, T1, Log, Model


def staged_once(tag: str = "a", count: int = 50) -> tuple[Model, LandingPlanner]:
    model = Model()
    for log in model.logs.values():
        log.write(tag, count)
    planner = model.planner()
    model.land(planner)
    return model, planner


@pytest.mark.parametrize("written", [0, 10, 20, 40])
@pytest.mark.parametrize("remembered", [True, False])
def test_a_log_that_went_back_is_found_whatever_was_written_since(
    written: int, remembered: bool
) -> None:
    model, _ = staged_once()
    model.logs[T0].rewind(30)
    model.logs[T0].write("b", written)
    if not remembered:
        model.leaders = {}
    planned = model.planner().plan({})
    assert planned.losses == (Loss("source_rewound", "t", 0, 30, 49),)
    assert planned.plan.starts == {T1: 50}


def test_a_process_that_read_on_behind_a_new_leader_finds_where_it_began() -> None:
    """Offsets 30 to 49 were staged of the leader before, 50 to 59 of the new one."""
    model, planner = staged_once()
    model.logs[T0].rewind(30)
    model.logs[T0].write("b", 30)
    model.stage(T0, 50)
    assert planner.plan({}).losses == (Loss("source_rewound", "t", 0, 30, 59),)


def test_of_two_leaders_since_the_second_ones_records_are_looked_at_too() -> None:
    """Offsets 50 to 69 were staged of a leader that was new, before the process died, and 60 to 69
    are of the next one by now: what is new at 50 is as it was staged."""
    model, _ = staged_once()
    log = model.logs[T0]
    log.epoch += 1
    log.write("b", 20)
    model.stage(T0, 50)
    assert model.planner().plan({}).losses == ()
    model.leaders = {T0: 0, T1: 0}
    log.rewind(60)
    log.write("c", 10)
    assert model.planner().plan({}).losses == (Loss("source_rewound", "t", 0, 60, 69),)


def test_what_a_leader_wrote_in_front_of_where_landing_read_on_is_found_without_its_epoch() -> None:
    """Offsets 30 to 49 were staged of the leader before, 50 on of the new ones: these are the same
    at the end of what is staged, and no leader is known any more."""
    model, _ = staged_once()
    log = model.logs[T0]
    log.rewind(30)
    log.write("b", 30)
    log.epoch += 1
    log.write("c", 10)
    model.stage(T0, 50)
    model.leaders = {}
    assert model.planner().plan({}).losses == (Loss("source_rewound", "t", 0, 30, 69),)


@pytest.mark.parametrize("elections", [0, 40])
def test_of_three_leaders_since_the_middle_one_is_looked_at_too(elections: int) -> None:
    """Offsets 50 to 59 were staged of the second one, and 60 on of the third, which has others from
    55 on."""
    model, _ = staged_once()
    log = model.logs[T0]
    log.epoch += 1 + elections
    log.write("b", 10)
    model.stage(T0, 50)
    log.rewind(55)
    log.write("c", 15)
    model.stage(T0, 60)
    for model.leaders in ({T0: 0, T1: 0}, {}):
        assert model.planner().plan({}).losses == (Loss("source_rewound", "t", 0, 55, 69),)


def test_leaders_without_number_cost_a_bounded_search_each() -> None:
    """Of a log as it was staged, whose leaders are not known any more."""
    model = Model()
    log = model.logs[T0]
    for _ in range(3 * MOST_LEADERS):
        log.epoch += 1
        log.write("a", 20)
    model.stage(T0, 0)
    model.leaders = {}
    assert model.planner().plan({}).losses == ()
    assert model.reads < MOST_LEADERS * 14
    model.leaders, model.reads, log.rows = {}, 0, [replace(row, epoch=None) for row in log.rows]
    assert model.planner().plan({}).losses == ()
    assert model.reads <= 3, "of records without an epoch, the last one"


def test_what_the_stage_keeps_no_more_is_not_taken_for_what_a_new_leader_wrote() -> None:
    """As where a host takes over that noted leaders weeks ago: retention has taken from the stage
    what was written since then, and the source has it still."""
    model, planner = staged_once()
    noted = dict(model.leaders)
    for log in model.logs.values():
        log.epoch += 1
        log.write("b", 50)
    model.land(planner)
    for place, rows in model.staged.items():
        model.staged[place] = {at: row for at, row in rows.items() if at >= 80}
    model.leaders = noted
    assert model.planner().plan({}).losses == ()
    for key, end in ((T0, 90), (T1, 40)):
        model.logs[key].rewind(end)
        model.logs[key].write("c", 70)
    assert model.planner().plan({}).losses == (
        Loss("source_rewound", "t", 0, 90, 99),
        Loss("source_rewound", "t", 1, 40, 99),
    ), "of what was written since, all is new, in front of what the stage has as well"


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("deleted", [range(30, 40), range(29, 50), range(30, 60)])
def test_what_was_deleted_by_predicate_is_not_taken_for_what_a_new_leader_wrote(
    deleted: range, same: bool
) -> None:
    """The first record that was not deleted tells; where there is none, it counts as lost: else a
    record of the new leader would never be read, and nobody would know."""
    model, planner = staged_once()
    log = model.logs[T0]
    kept = [replace(row, epoch=1) for row in log.rows[30:]]
    log.rewind(30)
    log.write("b", 20)
    if same:
        log.rows[30:] = kept
    model.deleted = set(deleted)
    lost = not same or deleted.stop >= 50
    assert [loss.first for loss in planner.plan({}).losses] == ([30] if lost else [])


def test_an_election_that_lost_nothing_costs_one_read_and_says_nothing() -> None:
    model, planner = staged_once()
    for log in model.logs.values():
        log.epoch += 1
    model.reads = 0
    assert planner.plan({}).losses == ()
    assert model.reads == 2
    for log in model.logs.values():
        log.write("b", 50)
        log.epoch += 1
    model.land(planner)
    model.reads = 0
    assert planner.plan({}).losses == ()
    assert model.reads == 0


def test_a_new_generation_of_one_partition_goes_on_where_its_log_differs() -> None:
    model, planner = staged_once()
    model.logs[T0].rewind(30)
    model.logs[T0].write("b", 40)
    model.land(planner)
    assert model.land(planner) == {T1: 50}, "it waits, and is told once"
    model.told[0] = replace(model.told[0], open=False, resolution="new-generation")
    model.known = replace(model.known, branches={T0: Branch(1, 30)})
    assert model.land(planner) == {T0: 30, T1: 50}
    assert set(model.staged["t", 0, 1]) == set(range(30, 70))
    assert model.land(planner) == {T0: 70, T1: 50}
    model.logs[T0].rewind(35)
    assert planner.plan({}).losses == (Loss("source_rewound", "t", 0, 35, 69, generation=1),)


def test_a_log_that_went_back_before_anything_of_its_generation_was_staged() -> None:
    model, planner = staged_once()
    model.known = replace(model.known, branches={T0: Branch(1, 30)})
    model.logs[T0].rewind(20)
    assert planner.plan({}).losses == (Loss("source_rewound", "t", 0, 20, 29, generation=1),)


@given(
    st.integers(0, 60),
    st.integers(0, 60),
    st.integers(0, 60),
    st.sets(st.integers(0, 60)),
    st.booleans(),
)
def test_the_place_where_a_log_went_another_way_is_found(
    end: int, went_back: int, written: int, compacted: set[int], remembered: bool
) -> None:
    """Whatever compaction took away before and behind it."""
    model = Model()
    model.logs[T0].write("a", end)
    planner = model.planner()
    model.land(planner)
    if not remembered:
        model.leaders = {}
    log = model.logs[T0]
    log.rewind(min(end, went_back))
    log.write("b", written)
    log.rows = [row for row in log.rows if row.offset not in compacted or row.offset >= end]
    found = {loss.partition: loss.first for loss in planner.plan({}).losses}
    others = [
        row.offset for row in log.rows if row.offset < end and (row.value or b"").startswith(b"b")
    ]
    same = [row.offset for row in log.rows if (row.value or b"").startswith(b"a")]
    assert found == ({0: max(same, default=-1) + 1} if others or log.end < end else {})


def test_what_landing_passes_over_is_told_until_something_is_staged() -> None:
    model = Model()
    for key in (T0, T1):
        model.logs[key].write("a", 10)
    model.logs[T0].truncate(4)
    planner = LandingPlanner("east", model, model, begins=lambda _: {T0: 8, T1: 0})
    for _ in range(2):
        planned = planner.plan({})
        assert planned.plan.starts == {T0: 8, T1: 0}
        assert planned.passed_over == (Removal("east", *T0, 0, 4, 8),)
    model.staged["t", 0, 0] = {8: model.logs[T0].rows[-2]}
    assert planner.plan({}).passed_over == (), "landing goes on behind the stage"


def test_a_query_numbers_its_batches_behind_all_that_are_staged() -> None:
    model, planner = staged_once()
    model.newest = 5_000
    assert planner.plan({}).plan.newest_batch == 5_000


def test_a_refused_partition_is_left_out_for_longer_each_time() -> None:
    model, planner = staged_once()
    for wait in WAIT_SECONDS:
        planner.refuse({T0: "it is damaged"})
        planned = planner.plan({})
        assert (set(planned.plan.starts), planned.refused) == ({T1}, {T0: "it is damaged"})
        model.now += wait - 1
        assert not planner.differs(planned, {})
        model.now += 1
        assert planner.differs(planned, {})
        assert set(planner.plan({}).plan.starts) == {T0, T1}
    planner.succeeded([T0])
    planner.refuse({T0: "it is damaged"})
    model.now += WAIT_SECONDS[0]
    assert set(planner.plan({}).plan.starts) == {T0, T1}


def test_what_makes_a_plan_another_one() -> None:
    model, planner = staged_once()
    planned = planner.plan({})
    assert not planner.differs(planned, {T0: 50})
    assert planner.differs(planned, {T0: 51}), "the log's end is below what was covered"
    model.leaderless = {T0}
    assert planner.differs(planned, {})
    assert planner.plan({}).plan.starts == {T1: 50}
    model.leaderless = set()
    model.logs[T1].epoch += 1
    assert planner.differs(planned, {})
    model.logs["t", 2] = Log()
    assert planner.plan({}).plan.starts == {T0: 50, T1: 50, ("t", 2): 0}


def test_of_many_partitions_those_that_move_are_asked_for_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And those that did not answer; all of them now and then."""
    model = Model(logs={("t", number): Log() for number in range(MANY)})
    planner, asked = model.planner(), list[int]()
    answer = model.high_watermarks

    def counted(keys: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, LogEnd]:
        asked.append(len(keys))
        return answer(keys)

    monkeypatch.setattr(model, "high_watermarks", counted)
    planned, covered = planner.plan({}), dict.fromkeys(model.logs, 0)
    for _ in range(2):
        assert not planner.differs(planned, covered)
    model.logs[T0].write("a", 5)
    assert not planner.differs(planned, covered := {**covered, T0: 5})
    assert asked == [MANY, 0, 1]
    model.logs[T0].rewind(3)
    covered = {**covered, T0: 6}
    assert planner.differs(planned, covered), "what moves is compared at once"
    model.logs[T0].epoch = 0
    model.logs[T0].write("a", 3)
    model.logs[T1].epoch = 1
    assert not planner.differs(planned, covered)
    model.now += ALL_SECONDS
    assert planner.differs(planned, covered), "another leader of one that does not move"
    model.logs[T1].epoch, model.silent = 0, {T1}
    monkeypatch.setattr(known_offsets, "SPREAD_FROM", MANY // 2)
    model.now += ALL_SECONDS
    del asked[:]
    assert not planner.differs(planned, covered)
    assert asked == [0], "of so many all are asked for half as often"
    model.now += ALL_SECONDS
    del asked[:]
    for _ in range(2):
        assert not planner.differs(planned, covered)
    assert asked == [MANY, 1]


@pytest.mark.parametrize("silent", [{T0}, {T0, T1}])
def test_a_partition_that_did_not_answer_is_read_when_it_does(
    silent: set[TopicAndPartition],
) -> None:
    model, planner = staged_once()
    model.silent = silent
    planned = planner.plan({})
    assert (
        planned.refused.keys() == silent == planned.unanswered
        and not silent & planned.plan.starts.keys()
    )
    assert not planner.differs(planned, {})
    model.silent = set()
    assert planner.differs(planned, {})
    assert planner.plan({}).plan.starts == {T0: 50, T1: 50}


def test_a_leader_that_does_not_answer_while_a_query_runs_is_told_of() -> None:
    """One that is cut off from us alone is named by metadata all the time: the query waited for it,
    and nothing said so."""
    model, planner = staged_once()
    planned = planner.plan({})
    model.silent = {T0}
    for _ in range(3):
        assert not planner.differs(planned, {}), "it may be elected just now"
        model.now += SILENT_SECONDS / 3
    assert planner.differs(planned, {})
    planned = planner.plan({})
    assert planned.refused.keys() == {T0} == planned.unanswered
    assert planned.plan.starts == {T1: 50}
    model.now += 10 * SILENT_SECONDS
    assert not planner.differs(planned, {})
    model.silent = set()
    assert planner.differs(planned, {}) and planner.plan({}).refused == {}


def test_a_leader_that_does_not_answer_now_and_then_stays() -> None:
    model, planner = staged_once()
    planned = planner.plan({})
    for _ in range(3):
        for silent in ({T0}, set[TopicAndPartition]()):
            model.silent = silent
            assert not planner.differs(planned, {})
            model.now += SILENT_SECONDS - 1


def test_a_right_that_lacks_is_told_of_whether_or_not_the_topic_was_read() -> None:
    """Who checks rights before the first record does not see topics that are made later."""
    model, planner = staged_once()
    model.unreadable = {"t"}
    planned = planner.plan({})
    assert planned.refused.keys() == {T0, T1} and not planned.plan.starts
    model.staged.clear()
    assert planner.plan({}).refused.keys() == {T0, T1}


def test_a_topic_that_is_not_shown_any_more_is_denied_or_gone() -> None:
    model, planner = staged_once()
    assert planner.plan({}).denied == {}
    for why in (None, "Disk error"):
        model.hidden = {"t": why}
        planned = planner.plan({})
        assert planned.denied == {"t": why} and not planned.plan.starts
    model.ids, model.hidden = {}, {}
    assert planner.plan({}).denied == {}, "it was deleted"


def test_a_topic_that_is_shown_and_not_described_is_named_also_where_it_was_never_read() -> None:
    """A run with an end would else be done without it. What was read of others goes on, and is not
    begun anew for each thing that a cluster says of it."""
    model, planner = staged_once()
    model.undescribed = {"t": "Disk error", "u": "Disk error"}
    planned = planner.plan({})
    assert planned.denied == {"t": "Disk error", "u": "Disk error"} and not planned.plan.starts
    assert planned.losses == () and model.known.topics.keys() == {"t"}
    model.undescribed = {"u": "Disk error"}
    assert planner.differs(planned, {})
    planned = planner.plan({})
    assert planned.denied == {"u": "Disk error"} and planned.plan.starts == {T0: 50, T1: 50}
    model.undescribed = {"u": "Unknown error"}
    assert not planner.differs(planned, {})
    model.undescribed, model.ids = {}, {**model.ids, "u": "other"}
    model.logs["u", 0] = Log()
    assert planner.differs(planned, {})
    assert planner.plan({}).plan.starts == {T0: 50, T1: 50, ("u", 0): 0}


def test_what_queries_covered_counts_for_their_generation_only() -> None:
    model, planner = staged_once()
    planner.plan({})
    model.logs[T0].truncate(53)
    assert planner.plan({T0: 53}).losses == ()
    model.ids, model.known = {"t": "new"}, CurrentGenerations({"t": TopicGeneration(1, "new")})
    model.logs[T0] = Log()
    planned = planner.plan({T0: 53, T1: 50})
    assert planned.covered == {} and planned.plan.starts == {T0: 0, T1: 0}
    assert planned.plan.generations == {T0: 1, T1: 1}


def test_what_was_covered_of_a_topic_before_it_was_made_again_is_nothing_of_the_new_one() -> None:
    """A topic that waits for a decision is asked for nothing meanwhile. What was covered of the old
    one would count for the new one, of which nothing is landed yet: what retention deletes of it
    would be passed in silence."""
    model, planner = staged_once()
    first = planner.plan({})
    model.ids, model.logs = {"t": "new"}, {T0: Log(), T1: Log()}
    model.logs[T0].write("n", 70)
    waiting = planner.plan({T0: 50, T1: 50}, first.current_generations)
    assert [loss.kind for loss in waiting.losses] == ["topic_recreated"]
    assert waiting.covered == {T0: 50, T1: 50} and waiting.plan.starts == {}
    model.known = CurrentGenerations({"t": TopicGeneration(1, "new")})
    for _ in range(2):  # as where a partition without a leader has it planned again
        planned = planner.plan(waiting.covered, waiting.current_generations)
        assert planned.covered == {} and planned.plan.starts == {T0: 0, T1: 0}
    model.stage(T0, 0, generation=1)
    model.staged["t", 0, 1] = {at: row for at, row in model.staged["t", 0, 1].items() if at < 9}
    model.logs[T0].truncate(30)
    lost = planner.plan(planned.covered, planned.current_generations).losses
    assert [(loss.kind, loss.first, loss.last) for loss in lost] == [("source_truncated", 9, 29)]
