"""A worker: how it ends, what it tries again, and for how long it waits in between. Events, no
clock, no sleep."""

import threading
from collections.abc import Callable

import pytest

from mirrorlake.errors import ClusterUnreachable, LakeError, MirrorlakeError
from mirrorlake.worker import Failure, Retry, Worker

SECONDS = 20.0


class Turns:
    """Turns that do, one after another, what they were given: end with an error, or return. The
    last one goes on for ever; `waits` is what the worker was asked to wait, and nothing waits."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *given: BaseException | float | None
    ) -> None:
        self.given = list(given)
        self.taken = 0
        self.reported: list[Failure] = []
        self.waits: list[float] = []
        self.last: int | None = None  # the attempt after which trying again cannot help
        self.patch = monkeypatch

    def turn(self) -> float | None:
        """The next one."""
        item = self.given[min(self.taken, len(self.given) - 1)]
        self.taken += 1
        if isinstance(item, BaseException):
            raise item
        return item

    def ends(self, _error: BaseException, _problem: MirrorlakeError, attempt: int) -> bool:
        """Whether it was the last attempt."""
        return attempt == self.last

    def worker(self, at_end: Callable[[], None] = lambda: None) -> Worker:
        """One that tries again, and reports to the list."""
        made = Worker("work", self.turn, Retry(self.ends, self.reported.append, (1.0, 5.0)), at_end)
        self.at_once(made)
        return made

    def at_once(self, worker: Worker) -> None:
        """Let its waits pass at once."""

        def wait(seconds: float) -> bool:
            self.waits.append(seconds)
            return worker.stopping.is_set()

        self.patch.setattr(worker.stopping, "wait", wait)


class Mute(Exception):
    """One whose text is no text."""

    def __str__(self) -> str:
        return None  # type: ignore[return-value]


class Breaks(Exception):
    """One whose text cannot be asked for."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def ended(worker: Worker) -> Worker:
    """The same, when it has come to its end."""
    worker.start()
    assert worker.join(SECONDS) and worker.ended.is_set()
    return worker


def test_it_takes_turns_until_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch, 0.0, 2.5, None)
    assert ended(turns.worker()).error is None
    assert turns.taken == 3 and turns.waits == [0.0, 2.5]


def test_it_says_how_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[str] = []
    turns = Turns(monkeypatch, ValueError("no"), ValueError("no"), None)
    worker = turns.worker(lambda: states.append(worker.state))
    assert worker.state == "working"
    monkeypatch.setattr(worker.stopping, "wait", lambda _seconds: states.append(worker.state))
    assert ended(worker).state == "ended" and worker.failures == 2
    assert states == ["failing", "failing", "working"]
    turns = Turns(monkeypatch, ValueError("no"))
    turns.last = 0
    assert ended(turns.worker()).state == "stopped"


def test_failures_in_a_row_wait_longer_and_a_turn_that_goes_well_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away = ClusterUnreachable("no answer", alias="west")
    turns = Turns(monkeypatch, away, away, away, 0.0, away, None)
    assert ended(turns.worker()).error is None
    assert [(failure.attempt, failure.ends) for failure in turns.reported] == [
        (0, False),
        (1, False),
        (2, False),
        (0, False),
    ]
    assert turns.waits == [1.0, 5.0, 5.0, 0.0, 1.0]


def test_a_turn_of_hours_that_says_that_it_works_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away = ClusterUnreachable("no answer", alias="west")
    turns = Turns(monkeypatch, away, away)
    turns.last = 2
    worker = turns.worker()
    work = turns.turn

    def works_then_fails() -> float | None:
        if turns.taken in (2, 3):
            worker.succeeded()
        return work()

    worker._turn = works_then_fails
    assert ended(worker).error is away
    assert [failure.attempt for failure in turns.reported] == [0, 1, 0, 0, 1, 2]
    assert turns.waits == [1.0, 5.0, 1.0, 1.0, 5.0]


@pytest.mark.parametrize(
    "error",
    [
        AssertionError(),
        OSError(28, "No space left on device"),
        Mute(),
        Breaks(),
        KeyError("x"),
        SystemExit(3),
        GeneratorExit(),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_turn_ends_with_is_tried_again(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The panic of a library in Rust is no Exception either."""
    turns = Turns(monkeypatch, error, 0.0, None)
    assert ended(turns.worker()).error is None
    assert turns.taken == 3 and turns.waits == [1.0, 0.0]
    assert [failure.error for failure in turns.reported] == [error]
    assert str(turns.reported[0].problem).startswith("work stopped: ")


def test_an_error_that_is_raised_while_another_is_handled_is_one_like_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = Turns(monkeypatch, 0.0)

    def turn() -> float | None:
        turns.taken += 1
        if turns.taken > 1:
            return None
        try:
            raise Breaks
        except Breaks:
            raise IndexError("in its error path") from None

    worker = Worker("work", turn, Retry(report=turns.reported.append, pauses=(1.0,)))
    turns.at_once(worker)
    assert ended(worker).error is None and turns.taken == 2
    assert str(turns.reported[0].problem) == "work stopped: in its error path"


def test_it_ends_with_what_a_failure_was_said_to_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch, ClusterUnreachable("no answer", alias="west"))
    turns.last = 1
    assert ended(turns.worker()).error is turns.given[0]
    assert turns.taken == 2 and turns.waits == [1.0]
    assert [failure.ends for failure in turns.reported] == [False, True]


def test_what_the_last_turn_failed_with_is_what_a_stop_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody may take it for the end of a worker that is well."""
    turns = Turns(monkeypatch, OSError("disk full"))
    worker = turns.worker()

    def wait(_seconds: float) -> bool:
        worker.stopping.set()
        return True

    monkeypatch.setattr(worker.stopping, "wait", wait)
    assert str(ended(worker).error) == "work stopped: disk full" and turns.taken == 1


@pytest.mark.parametrize(
    ("broken", "traces"),
    [
        (RuntimeError("nor does the lake take it"), [True, False]),
        (OSError("nor does the lake take it"), [False, False]),
        (LakeError("nor does the lake take it"), [False, False]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_report_that_breaks_does_not_stop_the_work(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    broken: Exception,
    traces: list[bool],
) -> None:
    turns = Turns(monkeypatch, *[OSError("disk full")] * 3, 0.0, None)
    reports: list[Failure] = []

    def report(failure: Failure) -> None:
        reports.append(failure)
        if len(reports) < 3:
            raise broken

    worker = Worker("work", turns.turn, Retry(report=report, pauses=(1.0,)))
    turns.at_once(worker)
    assert ended(worker).error is None and turns.taken == 5
    assert [failure.attempt for failure in reports] == [0, 1, 2], "the next one is reported again"
    unheard = [each for each in caplog.records if "could not be reported" in each.getMessage()]
    assert "(nor does the lake take it): work stopped: disk full" in unheard[0].getMessage()
    assert [bool(each.exc_info) for each in unheard] == traces, "where a sentence says it, none"


def test_what_ended_it_is_reported_until_that_comes_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = Turns(monkeypatch, OSError("disk full"))
    turns.last = 0
    reports: list[bool] = []

    def report(_failure: Failure) -> None:
        reports.append(worker.ended.is_set())
        if len(reports) < 3:
            raise OSError("nor does the lake take it")

    worker = Worker("work", turns.turn, Retry(turns.ends, report, (1.0, 7.0)))
    turns.at_once(worker)
    assert str(ended(worker).error) == "work stopped: disk full"
    assert reports == [True] * 3, "others see the end meanwhile"
    assert turns.waits == [7.0, 7.0]


@pytest.mark.parametrize(
    "error", [Mute(), Breaks(), AssertionError()], ids=lambda error: type(error).__name__
)
def test_words_that_break_are_done_without(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = Turns(monkeypatch, error, None)

    def in_words(_error: BaseException, _what: str) -> MirrorlakeError:
        raise IndexError

    worker = Worker(
        "work", turns.turn, Retry(report=turns.reported.append, pauses=(1.0,)), in_words=in_words
    )
    turns.at_once(worker)
    assert ended(worker).error is None
    assert str(turns.reported[0].problem) == f"work stopped: {type(error).__name__}"


def test_without_a_report_a_failure_is_logged_with_its_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    turns = Turns(monkeypatch, KeyError("x"), None)
    worker = Worker("work", turns.turn)
    turns.at_once(worker)
    assert ended(worker).error is None
    (record,) = [record for record in caplog.records if record.name == "mirrorlake.worker"]
    assert record.getMessage() == "work stopped: 'x'; trying again" and record.exc_info is not None


def test_an_end_that_breaks_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks() -> None:
        raise AssertionError

    assert (
        str(ended(Turns(monkeypatch, None).worker(breaks)).error) == "work stopped: AssertionError"
    )


def test_the_end_is_told_before_anybody_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    worker = Turns(monkeypatch, None).worker(lambda: seen.append(worker.ended.is_set()))
    ended(worker)
    assert seen == [False]


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


def test_one_that_was_stopped_before_its_start_does_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = Turns(monkeypatch, 0.0)
    worker = turns.worker()
    worker.stop()
    assert ended(worker).error is None and turns.taken == 0
