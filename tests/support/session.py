"""The Spark session that tests share, which is started when something is asked of it: of a lake in
a folder few tests do, and a JVM that is there for nothing costs each process of them seconds of
CPU and half a gigabyte."""

from collections.abc import Callable
from threading import RLock
from typing import Any

import pytest
from pyspark.sql import SparkSession


class OnDemand:
    """A session for who asks: itself, or by a call, as `open_lake` takes one. While it is there,
    this process has an active session, started or not."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._session: SparkSession | None = None
        self._lock = RLock()
        self._active = pytest.MonkeyPatch()
        self._active.setattr(SparkSession, "getActiveSession", lambda: self)

    def __call__(self) -> SparkSession:
        """The session, started by the first call."""
        with self._lock:
            if self._session is None:
                self._active.undo()
                self._session = self._start()
            return self._session

    def __getattr__(self, name: str) -> Any:
        return getattr(self(), name)

    def end(self) -> None:
        """Stop it where it was started."""
        self._active.undo()
        if self._session is not None:
            self._session.stop()
