"""Prepares a standby's session for a take-over: what it does for the first time takes seconds."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from mirrorlake.lake.lake import Lake
from mirrorlake.run.leases import Leases
from mirrorlake.worker import Failure, Retry, Worker

logger = logging.getLogger(__name__)

#: How long to wait after the first, second, … failure, seconds.
PAUSES = (5.0, 30.0, 120.0)


class TakeOver:
    """Prepares a session once this process stands by. For one thread; `unsettled` for any."""

    def __init__(self, lake: Lake, leases: Leases, stopping: threading.Event) -> None:
        self._lake, self._leases, self._stopping = lake, leases, stopping
        self._preparing: Worker | None = None

    def follow(self) -> None:
        """Start preparing, if this process stands by."""
        if self._leases.stands_by and self._preparing is None and self._needs_session:
            self._preparing = preparing(self._lake, self._stands_by)
            self._preparing.start()

    @property
    def unsettled(self) -> str | None:
        """Why another process should not yet end and leave its work to this one. None if it may,
        also if preparing failed: a take-over then only takes longer."""
        if not self._leases.are_settled:
            return "whether this process works, or stands by, is not known yet"
        unprepared = self._preparing is None or self._preparing.state == "working"
        if self._stands_by() and self._needs_session and unprepared:
            return "the session is being prepared for a take-over"
        return None

    @property
    def _needs_session(self) -> bool:
        """Whether a take-over needs a session, or this process has one."""
        return self._lake.later_session is None

    def _stands_by(self) -> bool:
        return self._leases.stands_by and not self._stopping.is_set()


def preparing(lake: Lake, stands_by: Callable[[], bool]) -> Worker:
    """A thread that prepares the lake's session once, while this process `stands_by`."""

    def prepare() -> None:
        if not stands_by():
            return
        from mirrorlake.lake.warmup import rehearse  # a run with `--once` may have no Spark

        with TemporaryDirectory(prefix="mirrorlake-standby-") as folder:
            rehearse(lake.spark, Path(folder))

    return Worker("preparing the session", prepare, Retry(report=_report, pauses=PAUSES))


def _report(failure: Failure) -> None:
    """Log it: a take-over works without, and takes some seconds longer."""
    logger.warning("%s; trying again: until then a take-over takes longer", failure.problem)
