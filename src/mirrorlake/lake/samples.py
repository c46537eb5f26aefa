"""Reads samples (rows of `positions`), but not all: they are many, and the newest matter."""

import time
from typing import Any

from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import QueryRows
from mirrorlake.offsets.samples import HELD_SECONDS

#: How far back the newest samples of a flow are looked for, hours, before all are read.
_BACK_HOURS = (2, 24, 24 * 30)
#: A partition with a newest sample older than the flow's by more is no longer the flow's.
_GONE_SECONDS = HELD_SECONDS + 300


def newest_samples(lake: Lake, flow: str) -> list[dict[str, Any]]:
    """The newest sample of each partition that a flow sampled last: its row of `positions`, with
    `at`, when taken, and `held_at`, until when it held, epoch seconds. Empty without a sample."""
    now = time.time()
    rows, newest = QueryRows(), 0.0
    for since in (*(now - hours * 3600 for hours in _BACK_HOURS), 0.0):
        rows = lake.ask("newest_samples", flow=flow, since_ms=int(since * 1000))
        newest = max((row["at"] for row in rows), default=0.0)
        if newest - _GONE_SECONDS >= since:
            break
    return [{**row, "held_at": newest} for row in rows if row["at"] > newest - _GONE_SECONDS]
