"""A thread that takes turns at its work until it is stopped: the one supervisor of all that a
run does.

It knows neither the work nor the clock. Whatever a turn ends with, of whatever kind, is reported
and tried again, or ends the worker with an error that its owner sees: no thread ends in silence
(DESIGN.md, "Nothing silently"). Whatever the worker waits for, `stop` ends the wait.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mirrorlake.errors import MirrorlakeError, ReplicationError, text_of

logger = logging.getLogger(__name__)

#: How long a worker waits after failures in a row, seconds: a cluster, or a disk, that is away is
#: asked less often.
PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)


@dataclass(frozen=True)
class Failure:
    """A turn that failed.

    Attributes:
        error: what it raised.
        problem: the same as a sentence for a person.
        attempt: how many turns failed before this one since one returned, or the work came through.
        ends: whether the worker ends with it; else the turn is tried again.
    """

    error: BaseException
    problem: MirrorlakeError
    attempt: int
    ends: bool


def _never(_error: BaseException, _problem: MirrorlakeError, _attempt: int) -> bool:
    return False


@dataclass(frozen=True)
class Retry:
    """What a worker does about turns that fail. All of them are tried again, unless `ends` says
    otherwise.

    Attributes:
        ends: gets the error, the problem and how many failures went before it in a row; returns
            whether trying again cannot help.
        report: gets each failure, for the log and for operators. What it raises itself is logged,
            and it gets the next failure; it gets one that ends the worker until it comes through.
        pauses: seconds to wait after the first, second, … failure in a row; the last one is for all
            that follow.
    """

    ends: Callable[[BaseException, MirrorlakeError, int], bool] = _never
    report: Callable[[Failure], object] | None = None
    pauses: Sequence[float] = PAUSES


class Worker:
    """Takes turns in a thread of its own until a turn says that it was the last one, or until
    `stop`.

    `error` is what it ended with: what no further turn could help with, or what the last turn
    failed with when `stop` came. None while it works, and when it ended in order. `ended` is set
    when no turn follows any more. `failures` counts the turns that failed.
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
            name: whose work it is, for the thread and for sentences, such as "flow east->west".
            turn: does some work; returns how many seconds to wait before the next turn, None if
                that was the last.
            retry: what is done about turns that fail; None: they are logged, and tried again.
            at_end: called in the thread when no turn follows, before `ended` is set.
            in_words: makes an error and the worker's name a sentence for a person.
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
        self._is_heard = True  # whether the last report came through
        self.failures = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def succeeded(self) -> None:
        """For a turn that lasts for hours: it works, and what fails from here on has not failed
        before."""
        self._failures = 0

    def stop(self) -> None:
        """Ask for the end: the turn in hand is finished, unless it looks at `stopping` itself; none
        follows."""
        self.stopping.set()

    @property
    def state(self) -> str:
        """`working`; `failing` while the last turn failed; `ended`, or `stopped` with an error."""
        if self.ended.is_set():
            return "ended" if self.error is None else "stopped"
        return "failing" if self._failures else "working"

    def join(self, seconds: float | None = None) -> bool:
        """Wait for the end, for so many seconds at most, or for as long as it takes; returns
        whether it has come. One that was never started has."""
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
            # of whatever kind: no other thread would know that this thread is gone
            self.error = self.error or self._problem(error)
            logger.exception("%s stopped", self.name)
        finally:
            self.ended.set()
        if failure is not None and failure.ends:
            self._report_until_heard(failure)

    def _take_turns(self) -> Failure | None:
        """Returns what it ended with, None for an end in order."""
        failure: Failure | None = None
        while not self.stopping.is_set():
            try:
                pause = self._turn()
            except BaseException as error:  # noqa: BLE001 - a library's panic is no Exception
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
        """Report a failure; returns whether that came through."""
        try:
            if self._retry.report is not None:
                self._retry.report(failure)
            else:
                logger.error("%s; trying again", failure.problem, exc_info=failure.error)
        except Exception as error:
            # A lake that is away fails each report alike: the trace of what has no words of ours is
            # worth telling once.
            has_words = isinstance(error, (MirrorlakeError, OSError))
            logger.error(
                "%s: that it failed could not be reported (%s): %s",
                self.name,
                text_of(error),
                failure.problem,
                exc_info=self._is_heard and not has_words,
            )
            self._is_heard = False
            return False
        self._is_heard = True
        return True

    def _report_until_heard(self, failure: Failure) -> None:
        """An operator has to know what ended it, also where the lake takes no news just now."""
        while not self._report(failure) and not self.stopping.wait(self._retry.pauses[-1]):
            pass
