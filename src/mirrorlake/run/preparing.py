"""Has the session of a process that stands by ready for a take-over: what a session does for the
first time takes seconds."""

import logging
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from mirrorlake.lake.lake import Lake
from mirrorlake.worker import Failure, Retry, Worker

logger = logging.getLogger(__name__)

#: How long to wait after the first, second, … time that it failed, seconds.
PAUSES = (5.0, 30.0, 120.0)


def preparing(lake: Lake, stands_by: Callable[[], bool]) -> Worker:
    """A thread that prepares the lake's session once, while this process `stands_by`."""

    def prepare() -> None:
        if not stands_by():
            return
        from mirrorlake.spark.rehearsal import rehearse  # a run with an end may have no Spark

        with TemporaryDirectory(prefix="mirrorlake-standby-") as folder:
            rehearse(lake.spark, Path(folder))

    return Worker("preparing the session", prepare, Retry(report=_report, pauses=PAUSES))


def _report(failure: Failure) -> None:
    """A take-over works without, and takes some seconds longer."""
    logger.warning("%s; trying again: until then a take-over takes longer", failure.problem)
