"""Asking again, until something has come about or for so long: the one way to wait for what gives
no sign of its own."""

import threading
import time
from collections.abc import Iterator


def attempts(seconds: float, pause: float) -> Iterator[bool]:
    """Yields for each attempt: at once, then after a pause, until so many seconds are over; True
    with the last attempt, which is also the first one where there is no time. Both in seconds;
    `math.inf` where only the caller ends it."""
    wait, deadline = threading.Event().wait, time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield False
        wait(pause)
    yield True
