"""Asking again, until something has come about or for so long: the one way to wait for what gives
no sign of its own."""

import threading
import time
from collections.abc import Iterator, Sized


def attempts(seconds: float, pause: float, come: Sized = ()) -> Iterator[bool]:
    """Yields for each attempt: at once, then after a pause, until so many seconds are over; True
    with the last attempt, which is also the first one where there is no time. Both in seconds;
    `math.inf` where only the caller ends it. Each time that more has come, the seconds begin anew:
    what comes about one by one is waited for while it does."""
    wait, deadline = threading.Event().wait, time.monotonic() + seconds
    known = len(come)
    while time.monotonic() < deadline:
        yield False
        wait(pause)
        if len(come) > known:
            known, deadline = len(come), time.monotonic() + seconds
    yield True
