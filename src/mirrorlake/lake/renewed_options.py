"""Options of an object store that hold for a time, and are asked for again before it is over.
Pure: who asks, and the clock, are given."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mirrorlake.errors import LakeError

logger = logging.getLogger(__name__)

#: Others are asked for while those in hand are good for so long yet, seconds: a task that gets them
#: has that time, and a workspace that does not answer has it too.
LEFT_SECONDS = 1_200.0
#: How long after an answer, or after none, they are asked for again, seconds, as long as those in
#: hand are good.
_AGAIN_SECONDS = 120.0


@dataclass(frozen=True)
class Lent:
    """Options that are good until a time, epoch seconds. They are secrets."""

    options: Mapping[str, str] = field(repr=False)
    until: float


class NotLent(LakeError, OSError):
    """Raised when credentials for a store are not lent now: to what reads and writes there an error
    of the store's, which passes as others do."""


class RenewedOptions:
    """Options of which some are lent. For all threads of a process; pickled, it is what is good
    now: a task has no one to ask.

    Args:
        fixed: those that hold for ever; what is lent goes before them.
        ask: lends some. Raises NotLent, which is passed on where none are good.
        clock: epoch seconds.
    """

    def __init__(
        self,
        fixed: Mapping[str, str],
        ask: Callable[[], Lent],
        clock: Callable[[], float],
    ) -> None:
        self._fixed, self._ask, self._clock = dict(fixed), ask, clock
        self._lent: Lent | None = None
        self._next = 0.0
        self._use = threading.Lock()

    def now(self) -> dict[str, str]:
        """All of them, as they are good now. Raises NotLent."""
        with self._use:
            lent, now = self._lent, self._clock()
            if lent is None or lent.until <= now:
                lent = self._lent = self._ask()
            due = lent.until - now < LEFT_SECONDS and now >= self._next
            if due:  # this thread asks, and no other one waits for that
                self._next = lent.until
        if due:
            lent = self._renewed(lent)
        return {**self._fixed, **lent.options}

    def _renewed(self, lent: Lent) -> Lent:
        """Others, or else those in hand."""
        known = lent
        try:
            lent = self._ask()
        except NotLent as error:
            left = known.until - self._clock()
            logger.warning("%s; those in hand are good for %.0f s", error, left)
        with self._use:
            self._next = self._clock() + _AGAIN_SECONDS
            if lent is not known:
                self._lent = lent
        return lent

    def __reduce__(self) -> tuple[type[dict[str, str]], tuple[dict[str, str]]]:
        return dict, (self.now(),)

    def __repr__(self) -> str:
        return "RenewedOptions()"
