"""A Spark session that starts in the background."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING

from mirrorlake.threads import in_thread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How often a caller that waits for the session checks whether to stop, seconds.
LOOK_SECONDS = 0.1
_PREPARING = "preparing the session"


class SessionStart:
    """Opens a session in a daemon thread, once `begin` or `session` is called."""

    def __init__(self, opening: Callable[[], "SparkSession"]) -> None:
        self._opening = opening
        self._lock = threading.Lock()
        self._session: Future[SparkSession] | None = None
        self._behind: Callable[[], object] | None = None
        #: When the start began, by time.monotonic(); None before.
        self.began: float | None = None

    def begin(self) -> None:
        """Begin to open the session, unless that has begun."""
        self._begun()

    def run_after_start(self, behind: Callable[[], object]) -> None:
        """Make a call in its own thread once the session has begun to open."""
        with self._lock:
            self._behind, begun = behind, self._session is not None
        if begun:
            in_thread(_PREPARING, behind)

    def session(self) -> "SparkSession":
        """The session, once it is there. Raises what opening it raised."""
        return self._begun().result()

    @property
    def over(self) -> bool:
        """Whether the session is open, or opening it failed."""
        return self._session is not None and self._session.done()

    @property
    def failed(self) -> bool:
        """Whether opening it has failed."""
        return self.over and self._begun().exception() is not None

    def ready(self, stop: threading.Event) -> bool:
        """Wait until the session is open or has failed; False if `stop` was set first."""
        while not wait([self._begun()], LOOK_SECONDS).done:
            if stop.is_set():
                return False
        return True

    def _begun(self) -> "Future[SparkSession]":
        with self._lock:
            if self._session is None:
                self.began = time.monotonic()
                self._session = in_thread("session start", self._opening)
                if self._behind is not None:
                    in_thread(_PREPARING, self._behind)
            return self._session
