"""Waiting for what comes about by itself: brokers learn of a change some milliseconds after it was
answered, and a run takes its time."""

import time
from collections.abc import Callable

#: How long something may take until it must have happened, seconds: the machine may be busy.
SECONDS = 90.0
#: How long each pause is at least and at most, seconds: twice as long as what is read takes, so
#: that what is waited for has more of the machine than who waits.
_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_TRUE = object()


def until(
    read: Callable[[], object], what: str = "", seconds: float = SECONDS, gives: object = _TRUE
) -> float:
    """Poll until it gives something true, or just what is wanted; returns after how many seconds it
    did. `what` says for a person what is waited for."""
    started = asked = time.monotonic()
    while not (answer := read()) if gives is _TRUE else (answer := read()) != gives:
        now = time.monotonic()
        wanted = "" if gives is _TRUE else f", and {answer!r} is not {gives!r}"
        assert now - started < seconds, f"not within {seconds:.0f} s: {what}{wanted}"
        time.sleep(min(max(_PAUSE, 2 * (now - asked)), _LONGEST_PAUSE))
        asked = time.monotonic()
    return time.monotonic() - started
