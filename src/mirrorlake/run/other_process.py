"""Finding out, without locks, that another process runs a flow."""

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

#: How often samples are looked for, seconds.
LOOK_SECONDS = 2.0


def run_by_other_process(lake: Lake, flows: Sequence[str]) -> str | None:
    """The first of some flows that a process runs now, which is not this one; None if no process
    runs any.

    To be asked before this process runs them. Takes no time for flows that ended in order, that
    `run --once` ran, or that no process has run of late; else as long as it takes to see whether
    samples go on coming.
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
    """Whether another process runs a flow of which this one has taken the lease, and is `sure` of
    it: a lock of this host says nothing of another one. Takes no time where the process that ran it
    last is gone, as the lease says."""
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
    """When a flow was sampled last, and how often that is done, seconds."""

    at: datetime
    interval: float


def _presence(mode: str | None, sampled: _Sampled | None) -> Presence:
    now, since = datetime.now(timezone.utc), time.monotonic()
    if sampled is None:
        return Presence(mode, None, now, since)
    return Presence(mode, sampled.at, now, since, sampled.interval)


def _newest(lake: Lake) -> dict[str, _Sampled]:
    """The newest sample of each flow that was sampled within some hours."""
    return {
        row["flow"]: _Sampled(row["newest"].replace(tzinfo=timezone.utc), row["interval_seconds"])
        for row in lake.ask("sampled_of_late")
    }
