"""A thread that takes turns at its work until it is told to stop: what the workers of a run have in common.

It knows neither the work nor the clock. Whatever it waits for, `stop` ends the wait.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mirrorlake.errors import MirrorlakeError, ReplicationError

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Retry:
    """After which failures a worker goes on, and how long it waits before it does.

    Attributes:
        failures: the kinds of errors that a turn may end with without ending the worker. Any other one ends it.
        waits: seconds to wait after the first, second, … failure in a row; the last one is for all that follow.
        ending: told of each such error and of how many went before it in a row; returns what the worker is to end with,
            or None to go on.
    """

    failures: tuple[type[Exception], ...]
    waits: Sequence[float]
    ending: Callable[[Exception, int], MirrorlakeError | None]


def _text(error: BaseException) -> str:
    return str(error)


class Worker:
    """Takes turns in a thread of its own until a turn says that it was the last one, or until `stop`.

    `error` is what it ended with, None while it works and when it ended in order. `ended` is set at the very end.
    """

    def __init__(
        self,
        name: str,
        turn: Callable[[], float | None],
        retry: Retry | None = None,
        at_end: Callable[[], None] = lambda: None,
        cause: Callable[[BaseException], str] = _text,
    ) -> None:
        """Make it; `start` starts it.

        Args:
            name: whose work it is, for the thread and for what is said when it breaks, such as "flow east->west".
            turn: does some work; returns how many seconds to wait before the next turn, None if that was the last.
            retry: after which failures it goes on; None: after none.
            at_end: called in the thread when no turn follows, before `ended` is set. Not after an error that nothing
                was said about in `retry`.
            cause: the part of an error's text that says most.
        """
        self.name = name
        self.error: MirrorlakeError | None = None
        self.ended = threading.Event()
        self.stopping = threading.Event()
        self._turn = turn
        self._retry = retry or Retry((), (0.0,), lambda _error, _attempt: None)
        self._at_end = at_end
        self._cause = cause
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask for the end: the turn in hand is finished, unless it looks at `stopping` itself; none follows."""
        self.stopping.set()

    def join(self, seconds: float | None = None) -> bool:
        """Wait for the end, for so many seconds at most, or for as long as it takes; returns whether it has come."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.error = self._take_turns()
            self._at_end()
        except BaseException as error:  # of whatever kind: nobody else would tell that this thread is gone
            self.error = ReplicationError(f"{self.name} stopped: {self._cause(error)}")
            logger.exception("%s stopped", self.name)
        finally:
            self.ended.set()

    def _take_turns(self) -> MirrorlakeError | None:
        """Returns what ended it, None for an end in order."""
        attempt = 0
        while not self.stopping.is_set():
            try:
                wait = self._turn()
                attempt = 0
            except self._retry.failures as error:
                ending = self._retry.ending(error, attempt)
                if ending is not None:
                    return ending
                wait = self._retry.waits[min(attempt, len(self._retry.waits) - 1)]
                attempt += 1
            if wait is None:
                break
            self.stopping.wait(wait)
        return None
