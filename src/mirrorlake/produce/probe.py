"""Whether workers can open the stage's files, tried in a process of its own: some schemes crash the
process from C++.

It is tried once per place (scheme and host, as `abfss://container@account`) and driver, in a
worker: what workers may reach, and with which credentials, differs from the driver.
"""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from mirrorlake.spark.tasks import Work, run_by_spark

if TYPE_CHECKING:  # a path of this host is not tried, and needs no session
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

#: How long opening one file may take, seconds.
PROBE_SECONDS = 30.0
#: The exit code if the file is gone; Python itself exits with 1 or 2, a signal below 0.
_GONE = 3
_OPEN = f"""
import sys
from mirrorlake.lake.parquet import open_parquet
try:
    open_parquet(sys.argv[1]).close()
except FileNotFoundError:
    sys.exit({_GONE})
"""
_known: dict[str, bool] = {}
_lock = Lock()


def files_readable(spark: "SparkSession", uri: str) -> bool:
    """Whether the session's workers can open a file of the stage, and so all; logs why not.

    A local path is not tried: opening it can fail, but kills no process.
    """
    parsed = urlparse(uri)
    if parsed.scheme in ("", "file"):
        return True
    place = f"{parsed.scheme}://{parsed.netloc}"
    with _lock:
        if place not in _known:
            (reason,) = run_by_spark(spark, _reasons, [uri], 1).checked()
            _known[place] = not reason
            if reason:
                logger.warning(
                    "workers cannot open the stage's files in %s (%s): Spark reads them",
                    place,
                    reason,
                )
        return _known[place]


def _reasons(work: Work[str]) -> Iterator[str]:
    """For each file the reason why this worker cannot open it; empty if it can."""
    return (why_unreadable(uri) or "" for uri, _ in work)


def why_unreadable(uri: str, seconds: float = PROBE_SECONDS) -> str | None:
    """Why a process with this one's interpreter and paths cannot open a file; None when it can."""
    command = [sys.executable, "-c", _OPEN, uri]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:.0f} s"
    if done.returncode in (0, _GONE):  # a file that is gone says nothing about the others
        return None
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    ended = f"ended by {signal.Signals(-done.returncode).name}: " if done.returncode < 0 else ""
    return f"{ended}{lines[-1] if lines else 'no message'}"[:500]
