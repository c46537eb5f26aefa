"""Settings of long-lived clients, whose secrets and certificates are renewed meanwhile."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from mirrorlake.errors import TopologyError

logger = logging.getLogger(__name__)

#: How often secrets and PEM files are read again even if no client was refused, seconds: old ones
#: usually stay valid for longer.
SECRETS_SECONDS = 300.0
Value = TypeVar("Value", bound="str | int | bool")


class LiveSettings(Generic[Value]):
    """Settings of one client, with present values of their references. For one thread at a time.

    `read` resolves them. Both it and the constructor raise TopologyError. `clock` returns seconds.
    """

    def __init__(
        self, read: Callable[[], Mapping[str, Value]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._read_at = clock()
        self.now: Mapping[str, Value] = read()

    def renewed(self, refused: bool = False) -> bool:
        """Whether the settings have changed. They are read again when a client was `refused`, else
        every SECRETS_SECONDS. If that fails they stay as they were."""
        if not refused and self._clock() - self._read_at < SECRETS_SECONDS:
            return False
        self._read_at = self._clock()
        try:
            fresh = self._read()
        except TopologyError as error:
            logger.warning("%s; going on with what it was", error)
            return False
        changed, self.now = fresh != self.now, fresh
        return changed
