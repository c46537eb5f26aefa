"""What of a flow's source never reached its target, as after an unclean failover. Reads only the
lake."""

from datetime import datetime, timezone
from typing import Any

from mirrorlake.lake.reader import Reader


def divergence_of(lake: Reader, flow: str) -> dict[str, Any]:
    """Returns {"staged_only": [...], "never_staged": [...], "sampled_at": ...}, offsets inclusive.

    `staged_only` are records that the lake has and the target has not: the rows of the view
    `divergence`. `never_staged` are offsets that the source had at the newest sample and the lake
    has not. `sampled_at` is the time of that sample: what the source got after it is not known, and
    without one, None, nothing is.
    """
    staged, unknown, (newest,) = (
        lake.query_rows(name, flow=flow)
        for name in ("divergence_of", "never_staged", "newest_sample_at")
    )
    ms = newest["at"]
    sampled_at = None if ms is None else datetime.fromtimestamp(ms / 1000, timezone.utc)
    return {"staged_only": staged, "never_staged": unknown, "sampled_at": sampled_at}
