"""A session that starts while other things are asked."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from typing import TYPE_CHECKING

from mirrorlake.threads import in_thread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How often a caller that waits for the session looks whether to stop, seconds.
LOOK_SECONDS = 0.1


class SessionStart:
    """Begins to open a session when it is made, in a thread that keeps no process from ending."""

    def __init__(self, opening: Callable[[], "SparkSession"]) -> None:
        self.began = time.monotonic()
        self._session = in_thread("session start", opening)

    def session(self) -> "SparkSession":
        """The session, once it is there. Raises what opening it raised."""
        return self._session.result()

    @property
    def over(self) -> bool:
        """Whether it is there, or cannot be."""
        return self._session.done()

    @property
    def failed(self) -> bool:
        """Whether it cannot be, as is known by now."""
        return self.over and self._session.exception() is not None

    def ready(self, stop: threading.Event) -> bool:
        """Wait until the session is there, or cannot be; False if `stop` was set before."""
        while not wait([self._session], LOOK_SECONDS).done:
            if stop.is_set():
                return False
        return True
