"""Settings of clients that live long: secrets are rotated while they do, and certificates
renewed."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from mirrorlake.errors import TopologyError

logger = logging.getLogger(__name__)

#: How often secrets and PEM files are read again though no client was refused, seconds: who rotates
#: them mostly lets the old ones be good for longer.
SECRETS_SECONDS = 300.0
Value = TypeVar("Value", bound="str | int | bool")


class LiveSettings(Generic[Value]):
    """Settings of one client, with what its references stand for now. For one thread at a time.

    `read` resolves them and raises TopologyError where it cannot; the first time that is raised
    here too. `clock` gives seconds.
    """

    def __init__(
        self, read: Callable[[], Mapping[str, Value]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._read_at = clock()
        self.now: Mapping[str, Value] = read()

    def renewed(self, refused: bool = False) -> bool:
        """Whether they are other ones than they were. They are read again when a client was
        `refused`, else every SECRETS_SECONDS. What cannot be read stays as it was."""
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
