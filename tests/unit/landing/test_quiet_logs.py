"""Which logs of many are asked for their ends: nothing is missed, whatever the watch tells, and
what is quiet is asked for seldom."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.landing.quiet_logs import ALL_SECONDS, QUIET_SECONDS, SOON_SECONDS, QuietLogs
from mirrorlake.offsets import known_offsets
from mirrorlake.offsets.positions import TopicAndPartition
from tests.support.growth import LINEAR, SAME, Name, growth

TURN, TAKEN = 0.35, 10.0
KEYS = [("t", number) for number in range(6)]


@dataclass
class Source:
    """Logs, a watch of them, and a query that reads up to where the logs are known to end."""

    ends: dict[TopicAndPartition, int]
    tells: bool = True
    now: float = 0.0
    watched: dict[TopicAndPartition, int] = field(default_factory=dict)
    silent: set[TopicAndPartition] = field(default_factory=set)
    asked: list[list[TopicAndPartition]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.quiet, self.reached = QuietLogs(TAKEN), dict(self.ends)

    def turn(self) -> None:
        """Ask, and read what there is."""
        told = {key for key, end in self.watched.items() if self.tells and self.ends[key] > end}
        for key in told:
            del self.watched[key]
        asked = list(self.quiet.due(self.now, self.reached, told))
        self.asked.append(asked)
        ends = {key: self.ends[key] for key in asked if key not in self.silent}
        self.watched |= self.quiet.answered(self.now, asked, ends, self.reached)
        self.reached |= self.quiet.ends
        self.now += TURN

    def turns(self, seconds: float) -> list[list[TopicAndPartition]]:
        """Go on for so long; what was asked for in each turn."""
        before = len(self.asked)
        for _ in range(round(seconds / TURN)):
            self.turn()
        return self.asked[before:]


def idle(tells: bool = True, keys: Collection[TopicAndPartition] = KEYS) -> Source:
    """One of which all logs are left to the watch, and were just asked for."""
    source = Source(dict.fromkeys(keys, 5), tells)
    source.turns(60)
    while not source.asked[-1]:
        source.turn()
    assert source.watched.keys() == set(keys)
    return source


def test_what_is_quiet_is_asked_for_every_ten_seconds() -> None:
    asked = [turn for turn in idle().turns(60) if turn]
    assert len(asked) <= 60 / ALL_SECONDS and all(set(turn) == set(KEYS) for turn in asked)


def test_of_more_than_two_thousand_as_many_are_asked_for_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_offsets, "SPREAD_FROM", len(KEYS) // 3)
    source = idle()
    asked = [turn for turn in source.turns(120) if turn]
    assert 0 < len(asked) <= 120 / ALL_SECONDS / 3
    source.ends["t", 3] += 1
    source.turn()
    assert source.reached["t", 3] == 6, "the watch tells of it as soon as of any"


def test_the_first_record_is_asked_for_in_the_next_turn() -> None:
    source = idle()
    source.turns(SOON_SECONDS + 1)
    source.ends["t", 3] += 1
    source.turn()
    assert source.reached["t", 3] == 6
    source.ends["t", 3] += 1
    source.turn()
    assert source.asked[-1] == [("t", 3)] and source.reached["t", 3] == 7


def test_where_one_begins_to_move_all_are_asked_for_but_not_each_time() -> None:
    """Others may have begun with it, of which the watch hears only with its next fetch."""
    source = idle()
    asked = []
    for number in range(6):
        source.ends["t", number] += 1
        asked += source.turns(TURN)
    assert sum(len(turn) == len(KEYS) for turn in asked[:-1]) <= 1 + 6 * TURN / SOON_SECONDS
    assert source.reached == source.ends


def test_what_begins_with_one_that_is_told_just_behind_a_question_for_all_is_found_soon() -> None:
    """A broker leaves out large batches behind the first one of an answer."""
    source = idle()
    source.ends["t", 0] += 1
    source.turn()
    source.ends["t", 1] += 1
    source.turn()
    source.tells = False
    source.ends["t", 2] += 1
    source.turns(SOON_SECONDS + 2 * TURN)
    assert source.reached == source.ends


def test_a_log_that_the_watch_was_just_given_is_asked_for_until_it_has_it() -> None:
    source = Source(dict.fromkeys(KEYS, 5))
    source.turn()
    assert source.watched == source.ends
    source.tells = False
    source.turns(TAKEN - 2 * TURN)
    source.ends["t", 1] += 1
    source.turn()
    assert source.reached["t", 1] == 6


def test_a_log_that_moves_is_not_left_to_the_watch() -> None:
    source = idle()
    for _ in range(100):
        source.ends["t", 2] += 1
        source.turn()
    assert ("t", 2) not in source.watched and source.asked[-1] == [("t", 2)]
    assert ("t", 2) in {key for turn in source.turns(QUIET_SECONDS - 1) for key in turn}
    source.turns(2)
    assert source.watched["t", 2] == source.ends["t", 2]


def test_a_log_that_is_not_read_to_its_end_is_not_left_to_the_watch() -> None:
    """The watch begins at the end, and what a batch had no room for waits in front of it."""
    source = Source(dict.fromkeys(KEYS, 5))
    source.reached["t", 0] = 3
    source.quiet.due(0.0, source.reached, ())
    to_watch = source.quiet.answered(0.0, KEYS, source.ends, source.reached)
    assert to_watch.keys() == {*KEYS} - {("t", 0)}
    for now in (5.0, 15.0, 25.0):
        asked = source.quiet.due(now, source.reached, ())
        assert ("t", 0) in asked
        assert ("t", 0) not in source.quiet.answered(now, asked, source.ends, source.reached)


def test_a_log_that_does_not_answer_has_no_end_and_is_asked_for_each_time() -> None:
    source = idle()
    source.silent.add(("t", 4))
    source.turns(ALL_SECONDS + 1)
    assert ("t", 4) not in source.quiet.ends and source.asked[-1] == [("t", 4)]
    source.ends["t", 4] += 1
    source.silent.clear()
    source.turn()
    assert source.reached["t", 4] == 6


MOVES = st.lists(st.tuples(st.integers(0, 40), st.sampled_from(KEYS), st.booleans()), max_size=30)


@given(moves=MOVES, tells=st.booleans())
def test_nothing_is_missed_whatever_the_watch_tells(
    moves: list[tuple[int, TopicAndPartition, bool]], tells: bool
) -> None:
    """With a watch that tells, a move is known a turn later; without one, when all are asked."""
    source = Source(dict.fromkeys(KEYS, 0), tells)
    for turns, key, away in moves:
        source.turns(turns * TURN)
        (source.silent.add if away else source.silent.discard)(key)
        source.ends[key] += 1
    assert all(source.reached[key] <= end for key, end in source.ends.items())
    source.silent.clear()
    source.turns(2 * TURN if tells else ALL_SECONDS + TURN)
    if tells:
        # what is silent when all are asked is asked for again, and what was given is still asked
        source.turns(0 if source.reached == source.ends else ALL_SECONDS + TURN)
    assert source.reached == source.ends


def turn_of(moving: Callable[[int], int]) -> Callable[[int], Callable[[], object]]:
    """A turn of so many quiet partitions, of which some move."""

    def made(size: int) -> Callable[[], object]:
        keys = [(Name("t"), number) for number in range(size)]
        source = idle(keys=keys)
        moves = keys[: moving(size)]
        for key in moves:
            source.ends[key] += 1
        told = {key for key in moves if source.watched.pop(key)}

        def turn() -> None:
            asked = source.quiet.due(source.now, source.reached, told)
            ends = {key: source.ends[key] for key in asked}
            source.quiet.answered(source.now, asked, ends, source.reached)

        source.quiet.due(source.now, source.reached, ())
        return turn

    return made


def test_a_turn_grows_as_what_moves() -> None:
    assert growth(turn_of(lambda _: 3)) < SAME
    assert growth(turn_of(lambda size: size)) < LINEAR
