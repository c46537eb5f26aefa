"""A test that hangs ends its process, with the stacks of all threads, and is red; the others go on.

pytest-timeout raises an exception in the test. That ends no wait in C, such as for a client that
closes, and no second wait in a `finally`: a run of all tests would never end. And pytest-xdist
hands a test that ended its process to the next process.
"""

import faulthandler
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

#: How long a test has for its `finally` and its fixtures behind that exception, seconds.
GRACE_SECONDS = 60.0
_STDERR = pytest.StashKey[int]()
_ENDED_A_PROCESS = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep this process's standard error, which is another file while a test is captured."""
    config.stash[_STDERR] = os.dup(2)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest-timeout, and all that a test leaves
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Watch a test, and note that it runs for as long as it does."""
    running = _folder() / hashlib.sha1(item.nodeid.encode()).hexdigest()
    item.stash[_ENDED_A_PROCESS] = running.exists()
    running.parent.mkdir(exist_ok=True)
    running.touch()
    seconds = _seconds(item) + GRACE_SECONDS
    faulthandler.dump_traceback_later(seconds, exit=True, file=item.config.stash[_STDERR])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        running.unlink(missing_ok=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail what has ended a process of this run already."""
    if item.stash[_ENDED_A_PROCESS]:
        pytest.fail("a process ended while it ran this test: its stacks are among what was printed")


def pytest_sessionfinish() -> None:
    """Leave no folder behind where no test ended its process."""
    with suppress(OSError):
        _folder().rmdir()


def _folder() -> Path:
    """Where the processes of a run note which tests they run."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    return Path(tempfile.gettempdir()) / f"mirrorlake-running-{run}"


def _seconds(item: pytest.Item) -> float:
    """How long pytest-timeout lets a test run."""
    marker = item.get_closest_marker("timeout")
    if marker is not None and marker.args:
        return float(marker.args[0])
    return float(item.config.getoption("timeout") or item.config.getini("timeout"))
