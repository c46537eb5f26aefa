"""Detects, without locks, that another process runs a flow: by the samples that it writes.

A lock shows that only where all processes see the same locks: volumes, object stores and mounts of
two hosts may have none, or each its own. Samples are in the lake, which all of them share.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from mirrorlake.attempts import attempts
from mirrorlake.errors import LeaseTaken
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import AnyLease, Lease

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


#: How often to look for new samples, seconds.
LOOK_SECONDS = 2.0


def run_by_other_process(lake: Lake, flows: Sequence[str]) -> str | None:
    """The first of some flows that a process other than this one runs now; None if there is none.

    To be called before this process runs them. Returns at once for flows that ended in order, `run
    --once` ran, or no process has run of late; else once it is clear whether new samples come.
    """
    modes = {row["flow"]: row["mode"] for row in lake.ask_table("objectives")}
    watched: dict[str, Presence] = {}
    for _ in attempts(math.inf, LOOK_SECONDS):
        newest = _newest(lake)
        watched = watched or {flow: _presence(modes.get(flow), newest.get(flow)) for flow in flows}
        for flow, presence in list(watched.items()):
            runs = presence.runs(newest[flow].at if flow in newest else None, time.monotonic())
            if runs:
                return flow
            if runs is False:
                del watched[flow]
        if not watched:
            break
    return None


def runs_elsewhere(lake: Lake, flow: str, lease: AnyLease) -> bool:
    """Whether another process runs a flow whose lease this one has, to be `sure`: a lock says
    nothing about another host. Returns at once if the lease shows that the last process is gone."""
    if lease.stands_by or (isinstance(lease, Lease) and lease.was_left):
        return False
    return run_by_other_process(lake, [flow]) is not None


def check_alone(lake: Lake, flows: Sequence[str]) -> None:
    """Raise LeaseTaken where another process runs one of some flows: where leases are no locks both
    would write, and fence each other for ever."""
    flow = run_by_other_process(lake, flows)
    if flow is not None:
        raise LeaseTaken(
            f"flow {flow} is run by another process: its samples go on coming; stop that process, "
            "or let it do the work"
        )


@dataclass(frozen=True)
class _Sampled:
    """When a flow was last sampled, and the interval of its samples, seconds."""

    at: datetime
    interval: float


def _presence(mode: str | None, sampled: _Sampled | None) -> Presence:
    now, since = datetime.now(timezone.utc), time.monotonic()
    if sampled is None:
        return Presence(mode, None, now, since)
    return Presence(mode, sampled.at, now, since, sampled.interval)


def _newest(lake: Lake) -> dict[str, _Sampled]:
    """The newest sample of each flow with one in the last hours."""
    return {
        row["flow"]: _Sampled(row["newest"].replace(tzinfo=timezone.utc), row["interval_seconds"])
        for row in lake.ask("sampled_of_late")
    }
