"""The one loop that waits by asking again."""

import ast
import math
from pathlib import Path

import pytest

from mirrorlake import attempts as module
from mirrorlake.attempts import attempts
from tests.support.syntax import modules_with, syntax_of

SRC = Path(__file__).parents[2] / "src"


class Clock:
    """Time goes on where somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def Event(self) -> "Clock":
        return self

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "threading", clock)
    return clock


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
