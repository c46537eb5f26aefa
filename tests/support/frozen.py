"""Processes that stand still: their connections stay, and they say nothing."""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


@contextmanager
def frozen(pids: Iterable[int]) -> Iterator[None]:
    """Processes stand still for the time of the block."""
    stopped = list(pids)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
