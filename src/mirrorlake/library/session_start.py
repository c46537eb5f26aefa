"""A session that starts while other things are asked."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How often a caller that waits for the session looks whether to stop, seconds.
LOOK_SECONDS = 0.1


class SessionStart:
    """Begins to open a session when it is made, in a thread that keeps no process from ending."""

    def __init__(self, opening: Callable[[], "SparkSession"]) -> None:
        self.began = time.monotonic()
        self._opening = opening
        self._found: Future[SparkSession] = Future()
        threading.Thread(target=self._open, name="session start", daemon=True).start()

    def session(self) -> "SparkSession":
        """The session, once it is there. Raises what opening it raised."""
        return self._found.result()

    def ready(self, stop: threading.Event) -> bool:
        """Wait until the session is there, or cannot be; False if `stop` was set before."""
        while not wait([self._found], LOOK_SECONDS).done:
            if stop.is_set():
                return False
        return True

    def _open(self) -> None:
        try:
            self._found.set_result(self._opening())
        except BaseException as error:  # noqa: BLE001 - the caller that asks for the session gets it
            self._found.set_exception(error)
