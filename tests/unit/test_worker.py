"""A worker: how it ends, what it tries again, and for how long it waits in between. Events, no clock, no sleep."""

import threading
from collections.abc import Callable

import pytest

from mirrorlake.errors import ClusterUnreachable, MirrorlakeError, ReplicationError
from mirrorlake.worker import Retry, Worker

SECONDS = 20.0


class Turns:
    """Turns that do, one after another, what they were given: end with an error, or return. The last one goes on for
    ever; `waits` is what the worker was asked to wait, and nothing waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *given: Exception | float | None) -> None:
        self.given = list(given)
        self.taken = 0
        self.attempts: list[int] = []
        self.waits: list[float] = []
        self.said: MirrorlakeError | None = None
        self.patch = monkeypatch

    def turn(self) -> float | None:
        """The next one."""
        item = self.given[min(self.taken, len(self.given) - 1)]
        self.taken += 1
        if isinstance(item, Exception):
            raise item
        return item

    def ending(self, _error: Exception, attempt: int) -> MirrorlakeError | None:
        """Goes on until something is to be said."""
        self.attempts.append(attempt)
        return self.said

    def worker(self, at_end: Callable[[], None] = lambda: None) -> Worker:
        """One that tries again after a cluster was away."""
        made = Worker("work", self.turn, Retry((ClusterUnreachable,), (1.0, 5.0), self.ending), at_end)

        def wait(seconds: float) -> bool:
            self.waits.append(seconds)
            return made.stopping.is_set()

        self.patch.setattr(made.stopping, "wait", wait)
        return made


def ended(worker: Worker) -> Worker:
    """The same, when it has come to its end."""
    worker.start()
    assert worker.join(SECONDS) and worker.ended.is_set()
    return worker


def test_it_takes_turns_until_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch, 0.0, 2.5, None)
    assert ended(turns.worker()).error is None
    assert turns.taken == 3 and turns.waits == [0.0, 2.5]


def test_failures_in_a_row_wait_longer_and_a_turn_that_goes_well_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    away = ClusterUnreachable("no answer", alias="west")
    turns = Turns(monkeypatch, away, away, away, 0.0, away, None)
    assert ended(turns.worker()).error is None
    assert turns.attempts == [0, 1, 2, 0]
    assert turns.waits == [1.0, 5.0, 5.0, 0.0, 1.0]


def test_it_ends_with_what_a_failure_was_said_to_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch, ClusterUnreachable("no answer", alias="west"))
    turns.said = ReplicationError("the cluster is gone")
    assert ended(turns.worker()).error is turns.said
    assert turns.taken == 1 and not turns.waits


def test_any_other_error_ends_it_and_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    turns = Turns(monkeypatch, KeyError("x"))
    worker = ended(turns.worker())
    assert str(worker.error) == "work stopped: 'x'" and not turns.attempts
    assert "work stopped" in caplog.text and "KeyError" in caplog.text, "with its traceback"


def test_what_breaks_while_a_failure_is_told_ends_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch, ClusterUnreachable("no answer", alias="west"))

    def breaks(_error: Exception, _attempt: int) -> MirrorlakeError | None:
        raise ClusterUnreachable("nor does the lake", alias="west")

    worker = ended(Worker("work", turns.turn, Retry((ClusterUnreachable,), (1.0,), breaks)))
    assert str(worker.error) == "work stopped: nor does the lake"


def test_the_end_is_told_before_anybody_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    worker = Turns(monkeypatch, None).worker(lambda: seen.append(worker.ended.is_set()))
    ended(worker)
    assert seen == [False]


def test_without_patience_every_error_ends_it() -> None:
    def turn() -> None:
        raise ClusterUnreachable("no answer", alias="west")

    assert "no answer" in str(ended(Worker("work", turn)).error)


def test_stop_ends_a_wait_at_once() -> None:
    turned = threading.Event()

    def turn() -> float:
        turned.set()
        return 3600.0

    worker = Worker("work", turn)
    worker.start()
    assert turned.wait(SECONDS) and not worker.join(0)
    worker.stop()
    assert worker.join(SECONDS) and worker.error is None


def test_stop_waits_for_the_turn_in_hand_and_no_other_follows() -> None:
    begun, go_on, taken = threading.Event(), threading.Event(), list[int]()

    def turn() -> float:
        begun.set()
        go_on.wait(SECONDS)
        taken.append(1)
        return 0.0

    worker = Worker("work", turn)
    worker.start()
    assert begun.wait(SECONDS)
    worker.stop()
    assert not worker.ended.is_set()
    go_on.set()
    assert worker.join(SECONDS) and taken == [1]


def test_one_that_was_stopped_before_its_start_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch, 0.0)
    worker = turns.worker()
    worker.stop()
    assert ended(worker).error is None and turns.taken == 0
