"""Turns of a flow's groups beside what others do at the target, or at the source."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from mirrorlake.groups import group_sync
from mirrorlake.groups.mover import move_in_steps
from mirrorlake.groups.sync_plan import BEHIND, NOT_THERE, REWOUND, SILENT
from mirrorlake.kafka.groups import GroupPositions
from mirrorlake.offsets.positions import (
    Committed,
    TopicAndPartition,
    TopicPartitionOffset,
    Translated,
)
from mirrorlake.testing import MemoryLake
from tests.support.group_turns import Key, Running, Turn, row

ALICE, BOB = ("alice", "orders", 0), ("bob", "payments", 0)


class Watched(Running):
    """A running flow that learns of what became of target topics when it looks at them."""

    def __init__(self) -> None:
        super().__init__()
        self.over: set[str] = set()
        self.gone: set[str] = set()

    def target_generation(self, topic: str) -> int | None:  # type: ignore[override]
        return None if topic in self.over else 0

    def check_targets(self) -> None:
        self.over |= self.gone


class Watching(Turn):
    """A turn of which the target's groups take what they are moved to."""

    def __init__(self, tmp_path: Path, *keys: Key) -> None:
        self.flow = Watched()
        super().__init__(tmp_path, list(keys), self.flow)
        self.target.move = self._move  # type: ignore[method-assign, assignment]
        self.moved: list[tuple[str, TopicAndPartition, int]] = []

    def _move(self, moves: dict[str, dict[TopicAndPartition, Committed]]) -> dict[object, str]:
        for group, positions in moves.items():
            self.target.at[group].update(positions)
            self.moved += [(group, key, to.offset) for key, to in positions.items()]
        return {}

    def at_target(self, key: Key, position: int | None) -> None:
        at = {} if position is None else {key[1:]: Committed(position)}
        self.target.at[key[0]] = at


def synced(turn: Watching) -> list[tuple[str, bool, str | None]]:
    return sorted((row.group_id, row.synced, row.reason) for row in turn.groups.target.sync())


@pytest.mark.parametrize("gone", [ALICE, BOB])
def test_a_target_topic_that_is_made_again_within_a_turn_holds_up_no_other_group(
    tmp_path: Path, gone: Key
) -> None:
    """Alice is further ahead there, Bob is moved; of one of them the topic is another one now."""
    turn = Watching(tmp_path, ALICE, BOB)
    turn.at_target(ALICE, 15)
    turn.flow.gone = {gone[1]}
    left = [("alice", False, BEHIND)] if gone == BOB else [("bob", True, None)]
    assert synced(turn) == left
    assert turn.moved == ([] if gone == BOB else [("bob", ("payments", 0), 10)])
    turn.flow.over, turn.flow.gone = set(), set()
    turn.groups.source.checkpoint()
    assert {row[0] for row in synced(turn)} == {gone[0]}


def test_where_a_mirrors_log_began_says_nothing_of_one_that_took_its_place(tmp_path: Path) -> None:
    """Within the minute for which starts are known: Alice would be moved past what she has not
    read."""
    turn = Watching(tmp_path, ALICE)
    turn.groups.target._mirror_starts.forget()
    turn.cluster.starts[ALICE[1:]] = 8
    assert synced(turn) == [("alice", True, None)]
    turn.cluster.starts.clear()  # it is made again, and an operator decides how it goes on
    turn.flow.over = {ALICE[1]}
    assert synced(turn) == []
    turn.flow.over = set()
    turn.at_target(ALICE, None)
    turn.all_stand_at(3)
    turn.groups.source.checkpoint()
    synced(turn)
    assert turn.moved[1:] == [("alice", ALICE[1:], 3)]


def test_what_was_moved_before_a_turn_ends_by_an_error_is_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alice is moved, and the answer about Bob is one that no turn knows."""
    monkeypatch.setattr(group_sync, "move_in_steps", partial(move_in_steps, at_once=1))
    turn = Watching(tmp_path, ALICE, BOB)
    reported = turn.target.positions

    def positions(groups: Collection[str]) -> GroupPositions:
        if set(groups) == {"bob"}:
            raise KafkaException("an answer that nobody expected")
        return reported(groups)

    turn.target.positions = positions  # type: ignore[method-assign, assignment]
    with pytest.raises(KafkaException):
        turn.groups.target.sync()
    assert turn.moved == [("alice", ("orders", 0), 10)]
    known = {row.group_id: row.synced for row in turn.groups.source._newest.known().values()}
    assert known == {"alice": True, "bob": False}


def test_who_is_set_back_or_deleted_at_the_target_after_a_turn_that_wrote_nothing(
    tmp_path: Path,
) -> None:
    turn = Watching(tmp_path, ALICE)
    assert synced(turn) == [("alice", True, None)] and turn.moved
    assert turn.groups.source.checkpoint() == [] == turn.groups.target.sync(), "nothing moved"
    turn.at_target(ALICE, 4)  # by its owner
    assert synced(turn) == [("alice", True, REWOUND)] and len(turn.moved) == 1
    assert turn.groups.source.checkpoint() == [] == turn.groups.target.sync()
    turn.at_target(ALICE, None)  # deleted there
    assert synced(turn) == [("alice", True, None)]
    assert turn.moved[1:] == [("alice", ("orders", 0), 10)]


def test_who_is_set_back_at_the_source_is_not_moved_back_at_the_target(tmp_path: Path) -> None:
    turn = Watching(tmp_path, ALICE)
    assert synced(turn) == [("alice", True, None)]
    turn.all_stand_at(3)
    assert [row.source_position for row in turn.groups.source.checkpoint()] == [3]
    assert synced(turn) == [("alice", False, BEHIND)] and len(turn.moved) == 1
    assert turn.groups.source.checkpoint() == [] == turn.groups.target.sync()
    turn.all_stand_at(18)
    turn.groups.source.checkpoint()
    assert synced(turn) == [("alice", True, None)]
    assert turn.moved[1:] == [("alice", ("orders", 0), 18)]


def test_a_position_in_a_topic_that_was_made_again_waits_for_a_decision(tmp_path: Path) -> None:
    """It is of a log of which nothing is mirrored: what was known of the log before stays."""
    turn = Watching(tmp_path, ALICE, BOB)
    turn.flow.again = {ALICE[1]}
    turn.all_stand_at(15)
    assert [row.group_id for row in turn.groups.source.checkpoint()] == ["bob"]
    known = turn.groups.source._newest.known()[ALICE]
    assert (known.source_position, known.is_gone) == (10, False)
    turn.flow.again = set()
    assert [row.group_id for row in turn.groups.source.checkpoint()] == ["alice"]


def test_a_position_behind_where_a_log_went_back_waits_for_a_decision(tmp_path: Path) -> None:
    """The map leads to where records of the log before are."""
    turn = Watching(tmp_path, ALICE, BOB)
    turn.flow.back = {ALICE[1:]: 14}
    turn.all_stand_at(15)
    assert [row.group_id for row in turn.groups.source.checkpoint()] == ["bob"]
    known = turn.groups.source._newest.known()[ALICE]
    assert (known.source_position, known.is_gone) == (10, False)
    assert synced(turn) == [("alice", True, None), ("bob", True, None)]
    assert sorted(turn.moved) == [("alice", ALICE[1:], 10), ("bob", BOB[1:], 15)]
    turn.all_stand_at(14)  # up to there it is the log that was mirrored
    assert len(turn.groups.source.checkpoint()) == 2
    turn.all_stand_at(15)
    turn.flow.back = {}
    assert len(turn.groups.source.checkpoint()) == 2


def test_a_mirror_whose_leader_is_silent_is_not_called_gone(tmp_path: Path) -> None:
    """Alice's is silent, and Bob's is not there: neither group is moved, and each is moved once its
    mirror is there and answers."""
    turn = Watching(tmp_path, ALICE, BOB)
    turn.groups.target._mirror_starts.forget()
    turn.cluster.silent = {ALICE[1:]}
    turn.cluster.delete(BOB[1])
    assert synced(turn) == [("alice", False, SILENT), ("bob", False, NOT_THERE)]
    assert not turn.moved and turn.groups.target.sync() == []
    turn.cluster.silent = set()
    turn.cluster.make(BOB[1], 100)
    assert synced(turn) == [("alice", True, None), ("bob", True, None)]
    turn.groups.target._mirror_starts.forget()
    turn.cluster.silent = {ALICE[1:]}
    assert turn.groups.target.sync() == [], "what was moved stays so"


@pytest.mark.parametrize("in_store", [False, True])
def test_a_turn_that_moves_no_group_takes_no_lease_where_it_is_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_store: bool
) -> None:
    taken: list[str] = []

    @contextmanager
    def lease(*_: object) -> Iterator[None]:
        taken.append("lease")
        yield

    monkeypatch.setattr(group_sync, "sole_mover", lease)
    monkeypatch.setattr(MemoryLake, "in_store", in_store)
    turn = Watching(tmp_path, ALICE)
    assert synced(turn) == [("alice", True, None)] and taken == ["lease"]
    assert turn.groups.target.sync() == []
    assert len(taken) == (1 if in_store else 2)
    turn.at_target(ALICE, 4)  # by its owner: that is to be written down
    assert len(synced(turn)) == 1 and len(taken) == (2 if in_store else 3)


def test_what_was_moved_while_the_lake_took_no_news_is_recorded_by_the_next_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is moved a second time."""
    turn = Watching(tmp_path, ALICE, BOB)
    recorded: list[str] = []

    def away(*_: object) -> None:
        raise OSError("the store is away")

    log = turn.groups.target._changes._log
    monkeypatch.setattr(log, "record", away)
    with pytest.raises(OSError, match="away"):
        turn.groups.target.sync()
    monkeypatch.setattr(log, "record", lambda _, rows: recorded.extend(r.resource for r in rows))
    turn.groups.target.sync()
    assert len(turn.moved) == len(recorded) == 2


def test_where_the_map_ended_says_nothing_of_a_mirror_that_is_over(tmp_path: Path) -> None:
    turn = Watching(tmp_path, ALICE, BOB)
    translator = turn.groups.source._translator
    assert translator._ends is not None and translator._ends.keys() == {ALICE[1:], BOB[1:]}
    turn.flow.over = {ALICE[1]}
    turn.groups.source.checkpoint()
    assert translator._ends.keys() == {BOB[1:]}


@pytest.mark.parametrize("again", [True, False])
def test_no_group_is_moved_by_a_checkpoint_in_a_log_that_another_one_has_replaced(
    tmp_path: Path, again: bool
) -> None:
    """The topic was made again at the source, or its log went back in front of the position, after
    the checkpoint was written: in the log of now the position is of other records."""
    turn = Watching(tmp_path, ALICE, BOB)
    if again:
        turn.flow.again = {ALICE[1]}
    else:
        turn.flow.back = {ALICE[1:]: 9}
    assert synced(turn) == [("bob", True, None)]
    turn.flow.again, turn.flow.back = set(), {ALICE[1:]: 10}
    assert synced(turn) == [("alice", True, None)]


def test_a_position_in_the_topic_of_an_earlier_policy_is_translated_anew(tmp_path: Path) -> None:
    """Alice had read all of it: what comes next goes to another topic, and she never moves at the
    source. As long as the flow does not say how far it is, she is asked about again."""
    turn = Watching(tmp_path, ALICE)
    before = replace(row(ALICE, synced=True), target_topic="east.orders")
    noted = {**vars(before), "checkpointed_at": datetime(2026, 11, 21)}
    turn.lake.answers["newest_checkpoints"] = [noted]
    turn.groups = turn.begin()
    source, asked = turn.groups.source, list[object]()
    translate = source._translator.translate

    def counted(*given: Any) -> dict[TopicPartitionOffset, Translated]:
        asked.append(given[1])
        return translate(*given)

    source._translator.translate = counted  # type: ignore[method-assign]
    (now,) = source.checkpoint()
    assert (now.target_topic, now.target_position, now.synced) == ("orders", 10, False)
    assert synced(turn) == [("alice", True, None)] and turn.moved == [("alice", ALICE[1:], 10)]
    assert source.checkpoint() == [] and len(asked) == 2
    turn.flow.reached = lambda _: {}  # type: ignore[method-assign]
    for _ in range(3):
        assert source.checkpoint() == []
    assert len(asked) == 3
