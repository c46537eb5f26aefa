"""The one loop that waits by asking again."""

import ast
import math
from pathlib import Path

import pytest

from mirrorlake.attempts import attempts
from tests.support.attempts_clock import Clock, attempts_go_by
from tests.support.syntax import modules_with, syntax_of

SRC = Path(__file__).parents[2] / "src"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return attempts_go_by(monkeypatch)


def test_attempts_are_made_until_the_time_is_over_and_once_more(clock: Clock) -> None:
    made = [(clock.now, last) for last in attempts(1.0, 0.4)]
    assert made == [(0.0, False), (0.4, False), (0.8, False), (pytest.approx(1.2), True)]


@pytest.mark.parametrize("seconds", [0.0, -3.0])
def test_without_time_there_is_one_attempt(clock: Clock, seconds: float) -> None:
    assert list(attempts(seconds, 5.0)) == [True] and clock.now == 0.0


def test_an_attempt_that_succeeds_waits_for_nothing(clock: Clock) -> None:
    for number, last in enumerate(attempts(math.inf, 2.0)):
        assert not last
        if number == 3:
            break
    assert clock.now == 6.0


def test_the_time_begins_anew_while_things_come_about(clock: Clock) -> None:
    come = list[int]()
    for number, last in enumerate(attempts(1.0, 0.6, come)):
        if last:
            break
        come += [number] if number < 5 else []
    # the fifth thing is seen at 3.0 s; then it is 1 s without
    assert clock.now == pytest.approx(4.2)


def calls_of(tree: ast.AST, *names: str) -> list[str]:
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names
    ]


def test_nothing_sleeps() -> None:
    sleeps = {
        str(path.relative_to(SRC)): calls
        for path, tree in modules_with(SRC, "sleep")
        if (calls := calls_of(tree, "time.sleep", "sleep"))
    }
    assert sleeps == {}, "wait by `attempts`, or for an event that ends the wait"


def test_the_check_sees_a_sleep() -> None:
    assert calls_of(syntax_of("while x:\n    time.sleep(0.5)"), "time.sleep") == ["time.sleep(0.5)"]
