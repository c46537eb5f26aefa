"""Reading samples (rows of `positions`) without reading all that there are: they are many, and the newest matter."""

import time
from typing import Any

from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Found

#: How far back the newest sample of a flow is looked for, hours; then in all.
_BACK_HOURS = (1, 24, 24 * 30)
#: A partition that was not sampled for so long, while others were, is not one of the flow any more, seconds.
_GONE_SECONDS = 300.0


def lag_seeds(lake: Lake, flow: str) -> list[dict[str, Any]]:
    """The newest sample of each partition that a flow sampled last: topic, partition, at (seconds since 1970),
    produced, source_end, lag_seconds. Empty for a flow that was never sampled."""
    now = time.time()
    rows = Found()
    for since in (*(now - hours * 3600 for hours in _BACK_HOURS), 0.0):
        rows = lake.ask("lag_seeds", flow=flow, since_ms=int(since * 1000))
        if rows:
            break
    newest = max((row["at"] for row in rows), default=0.0)
    return [row for row in rows if row["at"] > newest - _GONE_SECONDS]
