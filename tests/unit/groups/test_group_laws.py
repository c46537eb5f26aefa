"""Consumer groups: what gets a checkpoint, what is moved at the target, and what a command says of
it."""

from dataclasses import replace
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.cli.groups import checked_groups
from mirrorlake.config.flow import Flow
from mirrorlake.errors import InputError
from mirrorlake.groups.checkpoint_plan import (
    GONE,
    HELD_BACK,
    NO_MIRROR,
    PAST_END,
    REWOUND,
    TRIMMED,
    Checkpoint,
    plan_checkpoints,
    selects_group,
    to_translate,
    trimmed_reason,
    with_outcome,
)
from mirrorlake.groups.group_sync import as_set
from mirrorlake.groups.mover import Sent
from mirrorlake.groups.moves import (
    MoveResult,
    Standing,
    flipped,
    mark_synced,
    plan_moves,
    standing_by_checkpoint,
    standing_of,
    verified,
)
from mirrorlake.groups.shared_topics import SharedPosition
from mirrorlake.groups.sync_plan import ACTIVE, BEHIND, HAS_READ_ON, Keep, Move, TargetGroup, decide
from mirrorlake.offsets.positions import Committed, TopicAndPartition, Translated

PLACE = ("app", "orders", 0)
KNOWN = Checkpoint(
    "app", "orders", 0, 10, target_topic="east.orders", target_position=7, metadata="m", synced=True
)
STATES = st.sampled_from([None, "EMPTY", "DEAD", "STABLE", "PREPARING_REBALANCING", "UNKNOWN"])
OFFSETS = st.integers(0, 20)


@pytest.mark.parametrize(
    ("group", "wanted"),
    [
        ("app", True),
        ("console-consumer-7", False),
        ("connect-sink", False),
        ("__internal", False),
        ("mirrorlake-0a1b2c3d-east->west", False),
        ("mirrorlake-dashboard", True),
        ("", False),
    ],
)
def test_groups_are_selected_by_whole_names_and_never_our_own(group: str, wanted: bool) -> None:
    assert selects_group(Flow(), group) is wanted
    assert not selects_group(Flow(groups=("ap",)), group)


def test_only_positions_whose_translation_is_not_known_are_asked_for() -> None:
    committed = {
        PLACE: Committed(10),
        ("b", "orders", 0): Committed(10),
        ("b", "orders", 1): Committed(3),
    }
    assert to_translate(committed, {}) == {("orders", 0, 10), ("orders", 1, 3)}
    newest = {
        PLACE: KNOWN,
        ("b", "orders", 0): replace(KNOWN, group_id="b", reason=f"{HELD_BACK}; {ACTIVE}"),
    }
    assert to_translate(committed, newest) == {("orders", 0, 10), ("orders", 1, 3)}
    assert to_translate({PLACE: Committed(10)}, newest) == frozenset()


def planned(
    position: Committed, found: Translated | None, known: Checkpoint | None
) -> list[Checkpoint]:
    translated = {} if found is None else {("orders", 0, position.offset): found}
    return plan_checkpoints(
        {PLACE: position}, translated, {} if known is None else {PLACE: known}, ["app"]
    )


def test_what_changed_is_written_and_nothing_else() -> None:
    found = Translated("east.orders", 0, 7, True)
    assert planned(Committed(10, "m"), found, None) == [replace(KNOWN, synced=False)]
    assert planned(Committed(10, "m"), None, KNOWN) == []
    assert planned(Committed(10, "n"), None, KNOWN) == [replace(KNOWN, metadata="n", synced=False)]
    assert planned(Committed(10, "m"), None, replace(KNOWN, reason=BEHIND)) == []


def test_new_metadata_alone_leaves_what_is_known_of_the_position() -> None:
    lacks = replace(KNOWN, reason=trimmed_reason(7), synced=False)
    for known in (lacks, with_outcome(lacks, True, BEHIND)):
        assert planned(Committed(10, "n"), None, known) == [replace(lacks, metadata="n")]


def test_a_rewound_group_is_followed() -> None:
    (row,) = planned(Committed(4, "m"), Translated("east.orders", 0, 2, True), KNOWN)
    assert (row.source_position, row.target_position, row.synced) == (4, 2, False)


def test_what_its_owner_set_back_at_the_target_stays_until_the_source_moves_on() -> None:
    goal = TargetGroup("EMPTY", {KNOWN.target: Committed(2)})
    assert decide(KNOWN, goal) == Keep(REWOUND, there=True)
    assert isinstance(decide(KNOWN, goal, force=True), Move)
    assert isinstance(decide(KNOWN, TargetGroup(None, {})), Move), (
        "positions that the target forgot are set again"
    )
    rewound = with_outcome(KNOWN, True, REWOUND)
    assert planned(Committed(10, "m"), None, rewound) == []
    (row,) = planned(Committed(10, "n"), None, rewound)
    assert decide(row, goal) == Keep(REWOUND, there=True), (
        "the source has not moved, only its metadata"
    )
    (past,) = planned(Committed(12, "m"), Translated("east.orders", 0, 9, True), rewound)
    assert isinstance(decide(past, goal), Move)
    held_back = with_outcome(replace(KNOWN, reason=HELD_BACK), True, REWOUND)
    (later,) = planned(Committed(10, "m"), Translated("east.orders", 0, 9, False), held_back)
    assert decide(later, goal) == Keep(REWOUND, there=True), (
        "the mirror came nearer, the source did not move"
    )
    assert not later.is_exact


def test_a_position_ahead_of_the_mirror_is_held_until_the_mirror_is_there() -> None:
    held_back = Translated("east.orders", 0, 7, False)
    (row,) = planned(Committed(99), held_back, None)
    assert (row.target_position, row.reason) == (7, HELD_BACK)
    synced = with_outcome(row, True, None)
    assert synced.reason == HELD_BACK
    assert planned(Committed(99), held_back, synced) == []
    (arrived,) = planned(Committed(99), Translated("east.orders", 0, 60, True), synced)
    assert (arrived.target_position, arrived.reason, arrived.synced) == (60, None, False)


def test_a_topic_without_a_mapped_record_has_a_position_too() -> None:
    (row,) = planned(Committed(0), Translated("east.orders", 0, 0, True, False, mapped=False), None)
    assert (row.target_position, row.reason, row.has_counterpart) == (0, None, True)


def test_a_position_that_leads_nowhere_is_noted_until_it_leads_somewhere() -> None:
    (row,) = planned(Committed(5), None, None)
    assert (row.source_position, row.reason, row.has_counterpart, row.is_exact) == (
        5,
        NO_MIRROR,
        False,
        False,
    )
    assert planned(Committed(5), None, row) == []
    assert to_translate({PLACE: Committed(5)}, {PLACE: row}) == {("orders", 0, 5)}
    (found,) = planned(Committed(5), Translated("east.orders", 0, 3, True), row)
    assert (found.target_position, found.reason) == (3, None)


def test_a_position_that_is_not_looked_at_now_is_not_gone() -> None:
    assert plan_checkpoints({}, {}, {PLACE: KNOWN}, ["app"], elsewhere={PLACE}) == []


def test_what_is_said_of_a_position_stays_beside_what_became_of_it() -> None:
    (row,) = planned(Committed(10, "m"), Translated("east.orders", 0, 40, True, gone=12), None)
    assert (row.target_position, row.reason, row.is_exact) == (40, f"{TRIMMED}: up to 12", True)
    assert (
        with_outcome(with_outcome(row, False, ACTIVE), True, None).reason == f"{TRIMMED}: up to 12"
    )
    (past,) = planned(Committed(99), Translated("east.orders", 0, 40, True, past=50), None)
    assert (past.reason, past.is_exact) == (f"{PAST_END} (it ends at 50)", False)


def test_a_group_that_is_gone_keeps_its_last_checkpoint_and_comes_back() -> None:
    (gone,) = plan_checkpoints({}, {}, {PLACE: KNOWN}, ["app"])
    assert (gone.target_position, gone.reason, gone.is_gone) == (7, GONE, True)
    assert plan_checkpoints({}, {}, {PLACE: gone}, ["app"]) == []
    assert plan_checkpoints({}, {}, {PLACE: KNOWN}, []) == [], (
        "a group that was not told is not gone"
    )
    exact = Translated("east.orders", 0, 7, True)
    (back,) = planned(Committed(10, "m"), exact, gone)
    assert (back.reason, back.synced) == (None, False)


@pytest.mark.parametrize("reason", [HELD_BACK, NO_MIRROR])
def test_one_that_comes_back_to_the_same_position_is_translated_again(reason: str) -> None:
    """What it led to when it went may not have been exact, or nothing: the reason for that has
    given way to that it was gone."""
    held = replace(KNOWN, target_position=3, reason=reason)
    (gone,) = plan_checkpoints({}, {}, {PLACE: held}, ["app"])
    assert not gone.is_exact
    assert to_translate({PLACE: Committed(10)}, {PLACE: gone}) == {("orders", 0, 10)}
    (back,) = planned(Committed(10, "m"), Translated("east.orders", 0, 7, True), gone)
    assert (back.target_position, back.reason) == (7, None)


def test_a_position_in_front_of_the_log_is_none_of_its_owners() -> None:
    """The broker would reset a consumer from there."""
    starts = {KNOWN.target: 5}
    unread = replace(KNOWN, target_position=3, synced=False)
    assert decide(unread, TargetGroup("EMPTY", {}, starts)) == Move(Committed(5, "m"))
    assert decide(unread, TargetGroup("EMPTY", {KNOWN.target: Committed(3)}, starts)) == Move(
        Committed(5, "m")
    )
    set_back = TargetGroup("EMPTY", {KNOWN.target: Committed(2, "o")}, starts)
    assert decide(KNOWN, set_back) == Move(Committed(5, "o")), "as far back as there is anything"
    assert decide(KNOWN, set_back, force=True) == Move(Committed(7, "m"))
    assert decide(KNOWN, TargetGroup("STABLE", {}, starts)) == Keep(HAS_READ_ON, there=True)
    ahead = TargetGroup("EMPTY", {KNOWN.target: Committed(6)}, starts)
    assert decide(replace(unread, synced=True), ahead) == Keep(HAS_READ_ON, there=True)


def test_a_position_behind_the_end_of_the_log_is_none_of_its_owners() -> None:
    """The cluster has lost what was there; what it gets again takes its place, and a consumer that
    stayed would skip that."""
    lost = TargetGroup("EMPTY", {KNOWN.target: Committed(9, "o")}, ends={KNOWN.target: 8})
    unread = replace(KNOWN, synced=False)
    assert decide(unread, lost) == Move(Committed(7, "m"), backwards=True)
    assert decide(KNOWN, lost) == Move(Committed(8, "o"), backwards=True)
    assert decide(unread, replace(lost, ends={KNOWN.target: 9})) == Keep(BEHIND)
    assert decide(unread, replace(lost, ends={KNOWN.target: 6})) == Keep(BEHIND), (
        "the map does not know yet"
    )
    assert decide(unread, replace(lost, state="STABLE")) == Keep(ACTIVE)


def test_what_is_set_where_the_log_begins_by_now_is_still_held_back() -> None:
    held = replace(KNOWN, target_position=3, synced=False, reason=HELD_BACK)
    assert as_set(Sent(held, None, to=Committed(3))) == held
    moved = as_set(Sent(held, None, to=Committed(5)))
    assert (moved.target_position, moved.is_exact) == (5, False)
    assert moved.reason == f"{HELD_BACK}; {TRIMMED}: up to 2"
    assert as_set(Sent(replace(KNOWN, target_position=3), None, to=Committed(5))).is_exact


@given(OFFSETS, st.none() | OFFSETS, STATES, st.booleans(), st.booleans())
def test_never_backwards_and_never_an_active_group(
    wanted: int, current: int | None, state: str | None, force: bool, synced: bool
) -> None:
    item = replace(KNOWN, target_position=wanted, synced=synced)
    positions = {} if current is None else {("east.orders", 0): Committed(current)}
    decision = decide(item, TargetGroup(state, positions), force)
    if isinstance(decision, Move):
        assert state in (None, "EMPTY", "DEAD")
        assert decision.to == Committed(wanted, "m")
        assert current is None or current != wanted
        assert force or current is None or (current < wanted and not synced)
        assert decision.backwards is (current is not None and current > wanted)
        after = decide(item, TargetGroup("EMPTY", {("east.orders", 0): decision.to}), force)
        assert isinstance(after, Keep) and after.there, "a second time changes nothing"
    else:
        assert decision.there is (current == wanted or synced)
        assert decision.there or decision.reason in (ACTIVE, BEHIND)
        assert current == wanted or decision.there is (decision.reason in (HAS_READ_ON, REWOUND))
        assert (decision.reason == REWOUND) <= (
            synced and not force and current is not None and current < wanted
        )


@given(st.lists(st.tuples(OFFSETS, st.booleans()), max_size=12))
def test_positions_never_go_back_whatever_the_source_does(rounds: list[tuple[int, bool]]) -> None:
    """Turns of a replicator that dies now and then: it has no memory but the group itself."""
    positions: dict[TopicAndPartition, Committed] = {}
    seen = [-1]
    for wanted, dies in rounds:
        item = replace(KNOWN, target_position=wanted, synced=False)
        decision = decide(item, TargetGroup("EMPTY", dict(positions)))
        if isinstance(decision, Move) and not dies:
            positions["east.orders", 0] = decision.to
        seen.append(positions[("east.orders", 0)].offset if positions else -1)
    assert seen == sorted(seen)


def test_what_a_live_group_reads_again() -> None:
    exact = standing_of(PLACE, Committed(10, "m"), Translated("east.orders", 0, 7, True, end=50))
    assert (exact.again, exact.exact, exact.checkpoint.metadata) == (0, True, "m")
    held_back = standing_of(
        PLACE, Committed(60), Translated("east.orders", 0, 40, False, ahead=False, end=50)
    )
    assert (held_back.again, held_back.exact) == (10, False)


def test_what_a_group_of_a_lost_cluster_reads_again_at_most() -> None:
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    standing = standing_by_checkpoint(KNOWN, Translated("east.orders", 0, 8, True, end=50), at)
    assert (standing.again, standing.since, standing.checkpoint.target_position) == (40, at, 8)
    assert (standing.checkpoint.synced, standing.checkpoint.reason) == (False, None)


def test_moves_are_verified_by_what_was_read_back() -> None:
    standing = standing_of(PLACE, Committed(10), Translated("east.orders", 0, 7, True))
    (outcome,) = plan_moves([standing], {"app": TargetGroup(None, {})}, {}, False)
    assert outcome.done == "would move" and not outcome.is_left
    assert verified(outcome, None, Committed(7)).done == "moved"
    assert verified(outcome, "UNKNOWN_MEMBER_ID", None).detail == "UNKNOWN_MEMBER_ID"
    lost = verified(outcome, None, Committed(3))
    assert (lost.done, lost.detail, lost.is_left) == ("failed", "read back 3", True)


def test_what_is_left_is_told() -> None:
    standing = standing_of(PLACE, Committed(10), Translated("east.orders", 0, 7, True))
    ahead = TargetGroup("EMPTY", {("east.orders", 0): Committed(9)})
    (kept,) = plan_moves([standing], {"app": ahead}, {}, False)
    assert (kept.done, kept.detail, kept.is_left) == ("kept", BEHIND, True)
    (forced,) = plan_moves([standing], {"app": ahead}, {}, True)
    assert (forced.done, forced.detail) == ("would move", "backwards")
    (silent,) = plan_moves([standing], {}, {"app": "timed out"}, True)
    assert silent.done == "failed" and "timed out" in str(silent.detail)
    assert replace(kept, done="there").is_left is False
    assert replace(kept, standing=replace(standing, exact=False), done="there").is_left


@pytest.mark.parametrize("state", ["EMPTY", "STABLE"])
def test_a_group_that_was_moved_and_has_read_on_is_not_left(state: str) -> None:
    standing = standing_of(PLACE, Committed(10), Translated("east.orders", 0, 7, True))
    goal = {"app": TargetGroup(state, {("east.orders", 0): Committed(9)})}

    def left(known: Checkpoint, reverse: bool = False) -> bool:
        way = replace(standing, checkpoint=flipped(standing.checkpoint)) if reverse else standing
        goals = {"app": TargetGroup(state, {("orders", 0): Committed(12)})} if reverse else goal
        (outcome,) = plan_moves(mark_synced([way], {PLACE: known}, reverse), goals, {}, False)
        assert (outcome.done, outcome.detail == HAS_READ_ON) == (
            ("kept", False) if outcome.is_left else ("there", True)
        )
        return outcome.is_left

    moved, home = replace(KNOWN, reason="failover"), replace(KNOWN, reason="failback")
    assert not left(moved) and not left(home, reverse=True)
    assert left(home) and left(moved, reverse=True), "each tells of its own way only"
    assert left(replace(moved, synced=False)) and left(replace(moved, source_position=11))
    assert left(replace(moved, target_position=6)), "the map says something else by now"


def test_rows_of_a_move() -> None:
    standing = Standing(KNOWN, True, 0)
    outcome = MoveResult(standing, "moved", Committed(3))
    change = outcome.change()
    assert (change.kind, change.resource, change.before, change.after, change.outcome) == (
        "group",
        "app east.orders-0",
        "3",
        "7",
        "done",
    )
    assert outcome.checkpoint(False, "failover") == replace(KNOWN, reason="failover")
    back = outcome.checkpoint(True, "failback")
    assert (back.topic, back.source_position, back.target_topic, back.target_position) == (
        "east.orders",
        7,
        "orders",
        10,
    )
    assert flipped(flipped(KNOWN)) == KNOWN


@st.composite
def shared_topics(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """A topic that two opposite flows share, as both clusters hold it: `g` born at the goal, `o` at
    the origin."""
    born_there = [f"g{n}" for n in range(draw(st.integers(0, 5)))]
    born_here = [f"o{n}" for n in range(draw(st.integers(0, 5)))]
    return tuple(_interleaved(draw, born_there, born_here) for _ in range(2))  # type: ignore[return-value]


def _interleaved(draw: st.DrawFn, some: list[str], others: list[str]) -> list[str]:
    places = draw(st.permutations([True] * len(some) + [False] * len(others)))
    one, other = iter(some), iter(others)
    return [next(one) if key else next(other) for key in places]


def _way(origin: list[str], goal: list[str], kind: str, position: int) -> Translated:
    """The law over the records of one kind."""
    there = [index for index, name in enumerate(origin) if name.startswith(kind)]
    unread = [index for index in there if index >= position]
    if unread:
        return Translated("orders", 0, goal.index(origin[unread[0]]), True, True)
    end = goal.index(origin[there[-1]]) + 1 if there else 0
    return Translated("orders", 0, end, True, False, mapped=bool(there))


def _check_joined(origin: list[str], goal: list[str], position: int, found: Translated) -> None:
    unread = set(goal) - set(origin[:position])
    assert unread <= set(goal[found.offset :]), "nothing is skipped"
    assert len(set(goal[found.offset :]) & set(origin[:position])) <= found.again
    if found.exact:
        assert not unread or goal[found.offset] in unread, (
            "it begins with a record that was not read"
        )
        assert unread or found.offset == len(goal)


@given(shared_topics(), st.booleans(), st.data())
def test_two_ways_skip_nothing(
    topics: tuple[list[str], list[str]], reverse: bool, data: st.DataObject
) -> None:
    """Both flows are at their ends: all is on both sides."""
    origin, goal = topics
    position = data.draw(st.integers(0, len(origin)))
    _check_joined(origin, goal, position, _joined(origin, goal, position, reverse, True))


@given(shared_topics(), st.booleans(), st.data())
def test_two_ways_skip_nothing_of_what_never_came_to_the_origin(
    topics: tuple[list[str], list[str]], reverse: bool, data: st.DataObject
) -> None:
    origin, goal = topics
    late = data.draw(st.integers(0, 3))
    places = sorted(data.draw(st.lists(st.integers(0, len(goal)), min_size=late, max_size=late)))
    first = max((index + 1 for index, name in enumerate(goal) if name.startswith("g")), default=0)
    for number, key in enumerate(places):
        goal = [
            *goal[: max(first, key) + number],
            f"late{number}",
            *goal[max(first, key) + number :],
        ]
    position = data.draw(st.integers(0, len(origin)))
    _check_joined(origin, goal, position, _joined(origin, goal, position, reverse, late == 0))


def _joined(
    origin: list[str], goal: list[str], position: int, reverse: bool, is_clear: bool
) -> Translated:
    onward, back = (_way(origin, goal, kind, position) for kind in "og")
    return SharedPosition(onward, back).joined(back if reverse else onward, is_clear)


def test_either_groups_are_named_or_all_are_meant() -> None:
    assert checked_groups(["a", "b", "a"], False) == ("a", "b")
    assert checked_groups([], True) is None
    for names, everything in (([], False), (["a"], True)):
        with pytest.raises(InputError, match="--all-groups"):
            checked_groups(names, everything)
