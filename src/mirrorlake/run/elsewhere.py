"""Finding out, without locks, that another process runs a flow."""

import time
from collections.abc import Sequence
from datetime import datetime, timezone

from mirrorlake.lake.lake import Lake
from mirrorlake.run.presence import Presence

#: How often samples are looked for, seconds.
LOOK_SECONDS = 2.0


def run_elsewhere(lake: Lake, flows: Sequence[str]) -> str | None:
    """The first of some flows that a process runs now, which is not this one; None if nobody runs any.

    To be asked before this process runs them. Takes no time for flows that ended in order, that `run --once` ran, or
    that nobody has run of late; else as long as it takes to see whether samples go on coming.
    """
    modes = {row["flow"]: row["mode"] for row in lake.ask_table("objectives")}
    newest, now = _newest(lake), datetime.now(timezone.utc)
    watched = {flow: Presence(modes.get(flow), newest.get(flow), now, time.monotonic()) for flow in flows}
    while watched:
        for flow, presence in list(watched.items()):
            runs = presence.runs(newest.get(flow), time.monotonic())
            if runs:
                return flow
            if runs is False:
                del watched[flow]
        if watched:
            time.sleep(LOOK_SECONDS)
            newest = _newest(lake)
    return None


def _newest(lake: Lake) -> dict[str, datetime]:
    """When each flow was sampled last, of those that were within some minutes."""
    return {row["flow"]: row["newest"].replace(tzinfo=timezone.utc) for row in lake.ask("sampled_of_late")}
