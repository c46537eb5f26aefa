"""Whether some process runs a flow, by the samples that it writes. Pure.

A lock shows that only where all processes see the same locks: volumes, object stores and mounts of
two hosts may have none, or each its own. Samples are in the lake, which all of them share.
"""

from datetime import datetime

#: How long no new sample may come until no process counts as running the flow: so many seconds, or
#: intervals of its samples, whichever is longer.
QUIET_SECONDS, QUIET_INTERVALS = 30.0, 3
#: How many times as old the newest sample may be, by two hosts' clocks, to wait for another.
RECENT = 3


class Presence:
    """Watches one flow from `at` on, seconds of any clock. `mode` and `newest` are what the lake
    has of it then, and `interval` is the interval of its samples, seconds."""

    def __init__(
        self,
        mode: str | None,
        newest: datetime | None,
        now: datetime,
        at: float,
        interval: float = 10.0,
    ) -> None:
        self._quiet = max(QUIET_SECONDS, QUIET_INTERVALS * interval)
        self._newest = newest
        self._began = at
        recent = newest is not None and abs((now - newest).total_seconds()) < RECENT * self._quiet
        self._may_run = mode == "continuous" and recent

    def runs(self, newest: datetime | None, at: float) -> bool | None:
        """Whether a process runs the flow, by the newest sample; None while that is unknown."""
        if not self._may_run:
            return False
        if newest != self._newest:
            return True
        return None if at - self._began < self._quiet else False
