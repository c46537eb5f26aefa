"""Polling with a time limit: the one way to wait for a condition that sends no signal."""

import threading
import time
from collections.abc import Iterator, Sized


def attempts(seconds: float, pause: float, come: Sized = ()) -> Iterator[bool]:
    """Yield once per attempt: at once, then after each `pause`, until `seconds` have passed. The
    last attempt yields True, the others False; with no time the first is the last. Both are in
    seconds; with `math.inf` only the caller ends the loop. Whenever `come` has grown, the time
    starts anew: arrivals that come one by one are waited for as long as they keep coming."""
    wait, deadline = threading.Event().wait, time.monotonic() + seconds
    known = len(come)
    while time.monotonic() < deadline:
        yield False
        wait(pause)
        if len(come) > known:
            known, deadline = len(come), time.monotonic() + seconds
    yield True
