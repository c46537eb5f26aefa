"""Logs a JVM's stderr by line: it looks like other output, and `--log json` holds only JSON."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)

#: A line of every Spark JVM at its start, which is no news.
_NO_NEWS = "WARNING: Using incubator modules:"


@contextmanager
def logged_stderr() -> Iterator[int]:
    """A descriptor for stderr of a process that the block starts; its lines are logged."""
    reading, writing = os.pipe()
    threading.Thread(target=_log, args=(reading,), name="output of the JVM", daemon=True).start()
    try:
        yield writing
    finally:
        os.close(writing)  # the process has its own copy by now; the pipe ends with the process


def _log(reading: int) -> None:
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.strip() and not line.startswith(_NO_NEWS):
                logger.warning("%s", line.rstrip())
