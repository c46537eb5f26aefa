"""Detects, without locks, that another process runs a flow."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from mirrorlake.attempts import attempts
from mirrorlake.errors import LeaseTaken
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import AnyLease, Lease
from mirrorlake.run.presence import Presence

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
    """Whether another process runs a flow whose lease this one has taken, to be `sure`: a lock on
    this host says nothing about another host. Returns at once if the lease shows that the process
    that ran it last is gone."""
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
