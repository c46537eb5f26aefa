"""A thread that repeats a turn of work until it is stopped: the supervisor of everything in a run.

It knows neither the work nor the clock. Any exception of a turn is reported and the turn retried,
or it ends the worker with an error that its owner sees: no thread ends in silence (DESIGN.md,
"Nothing silently"). `stop` ends every wait of the worker.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mirrorlake.errors import MirrorlakeError, ReplicationError, text_of

logger = logging.getLogger(__name__)

#: How long a worker waits after the first, second, … failure in a row, seconds: it asks a cluster
#: or a disk that stays away less often.
PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)


@dataclass(frozen=True)
class Failure:
    """A turn that failed.

    Attributes:
        error: the exception that it raised.
        problem: the same as one of our exceptions, whose message is a sentence for a person.
        attempt: how many turns failed before this one since the last success.
        ends: whether the worker ends with it; else it retries the turn.
    """

    error: BaseException
    problem: MirrorlakeError
    attempt: int
    ends: bool


@dataclass(frozen=True)
class Retry:
    """What a worker does about failed turns. It retries all of them, unless `ends` says otherwise.

    Attributes:
        ends: whether retrying cannot help, by the error, the problem and how many failed before.
        report: gets each failure, for the log and for operators. An exception of its own is logged;
            a failure that ends the worker is reported again until that succeeds.
        pauses: seconds after the first, second, … failure in a row; the last one holds on.
    """

    ends: Callable[[BaseException, MirrorlakeError, int], bool] = lambda *_: False
    report: Callable[[Failure], object] | None = None
    pauses: Sequence[float] = PAUSES


class Worker:
    """Repeats turns in its own thread until a turn returns None or until `stop`.

    `error` is what it ended with: an error that no retry could help with, or the failure of the
    last turn before `stop`. None while it works and after an orderly end. `ended` is set when no
    turn follows. `failures` counts the failed turns.
    """

    def __init__(
        self,
        name: str,
        turn: Callable[[], float | None],
        retry: Retry | None = None,
        at_end: Callable[[], None] = lambda: None,
        in_words: Callable[[BaseException, str], MirrorlakeError] | None = None,
    ) -> None:
        """Make it; `start` starts it.

        Args:
            name: names the thread, and the work in sentences, such as "flow east->west".
            turn: does some work; returns seconds until the next turn, None if this was the last.
            retry: what to do about failed turns; None: log and retry them.
            at_end: called in the thread when no turn follows, before `ended` is set.
            in_words: turns an error and the worker's name into a sentence for a person.
        """
        self.name = name
        self.error: MirrorlakeError | None = None
        self.ended = threading.Event()
        self.stopping = threading.Event()
        self._turn = turn
        self._retry = retry or Retry()
        self._at_end = at_end
        self._in_words = in_words
        self._failures = 0  # in a row
        self._last_report_succeeded = True  # whether the last report succeeded
        self.failures = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def succeeded(self) -> None:
        """For a turn that lasts for hours: it works, so a failure from now on is the first."""
        self._failures = 0

    def stop(self) -> None:
        """Ask the worker to end after this turn, or within one that checks `stopping`."""
        self.stopping.set()

    @property
    def state(self) -> str:
        """`working`; `failing` while the last turn failed; `ended`, or `stopped` with an error."""
        if self.ended.is_set():
            return "ended" if self.error is None else "stopped"
        return "failing" if self._failures else "working"

    def join(self, seconds: float | None = None) -> bool:
        """Wait until the thread has ended, for `seconds` at most if given; return whether it has. A
        worker that was never started has ended."""
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        failure: Failure | None = None
        try:
            failure = self._take_turns()
            self.error = None if failure is None else failure.problem
            self._at_end()
        except BaseException as error:
            # of any kind: no other thread would notice that this one is gone
            self.error = self.error or self._problem(error)
            logger.exception("%s stopped", self.name)
        finally:
            self.ended.set()
        if failure is not None and failure.ends:
            self._report_until_heard(failure)

    def _take_turns(self) -> Failure | None:
        """Return the failure that it ended with, None after an orderly end."""
        failure: Failure | None = None
        while not self.stopping.is_set():
            try:
                pause = self._turn()
            except BaseException as error:  # noqa: BLE001 - a Rust library's panic is no Exception
                failure = self._failed(error, self._failures)
                self._failures += 1
                self.failures += 1
                if failure.ends:
                    return failure
                self._report(failure)
                pause = self._retry.pauses[min(failure.attempt, len(self._retry.pauses) - 1)]
            else:
                failure = None
                self.succeeded()
            if pause is None:
                return None
            self.stopping.wait(pause)
        return failure

    def _failed(self, error: BaseException, attempt: int) -> Failure:
        problem = self._problem(error)
        return Failure(error, problem, attempt, self._retry.ends(error, problem, attempt))

    def _problem(self, error: BaseException) -> MirrorlakeError:
        if isinstance(error, MirrorlakeError):
            return error
        if self._in_words is not None:
            try:
                return self._in_words(error, self.name)
            except Exception:
                logger.exception("%s: its failure has no words of ours", self.name)
        return ReplicationError(f"{self.name} stopped: {text_of(error)}")

    def _report(self, failure: Failure) -> bool:
        """Report a failure; return whether that succeeded."""
        try:
            if self._retry.report is not None:
                self._retry.report(failure)
            else:
                logger.error("%s; trying again", failure.problem, exc_info=failure.error)
        except Exception as error:
            # While the lake is away reports fail alike: log an unknown error's traceback only once.
            has_words = isinstance(error, (MirrorlakeError, OSError))
            logger.error(
                "%s: that it failed could not be reported (%s): %s",
                self.name,
                text_of(error),
                failure.problem,
                exc_info=self._last_report_succeeded and not has_words,
            )
            self._last_report_succeeded = False
            return False
        self._last_report_succeeded = True
        return True

    def _report_until_heard(self, failure: Failure) -> None:
        """An operator must learn what ended the worker, even if the lake cannot be written now."""
        while not self._report(failure) and not self.stopping.wait(self._retry.pauses[-1]):
            pass
