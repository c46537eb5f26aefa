"""Options of an object store that are valid for a time, and asked for again before it is over.
Pure: the function that asks, and the clock, are given."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mirrorlake.errors import LakeError

logger = logging.getLogger(__name__)

#: New options are asked for while the current ones are valid for this long yet, seconds: a task
#: that gets those has that time, and so has a workspace that does not answer.
LEFT_SECONDS = 1_200.0
#: How long after an answer, or a failure, to ask for them again, s, while they are valid.
_AGAIN_SECONDS = 120.0


@dataclass(frozen=True)
class Lent:
    """Options that are valid until a time, epoch seconds. They are secrets."""

    options: Mapping[str, str] = field(repr=False)
    until: float


class NotLent(LakeError, OSError):
    """Raised when credentials for a store are not lent now. To what reads and writes there it is an
    error of the store, which passes as others do."""


class RenewedOptions:
    """Options of which some are lent. For all threads of a process. Pickled, it becomes the current
    options: a task cannot ask for others.

    Args:
        fixed: options that are always valid; lent ones replace them.
        ask: lends some. Raises NotLent, which is passed on where none are valid.
        clock: epoch seconds.
    """

    def __init__(
        self, fixed: Mapping[str, str], ask: Callable[[], Lent], clock: Callable[[], float]
    ) -> None:
        self._fixed, self._ask, self._clock = dict(fixed), ask, clock
        self._lent: Lent | None = None
        self._next = 0.0
        self._use = threading.Lock()

    def now(self) -> dict[str, str]:
        """All options that are valid now. Raises NotLent."""
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
        """New options, or the current ones where none are lent."""
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
