"""What of a flow's source never reached its target, as after an unclean failover. Reads only the
lake."""

from typing import Any

from mirrorlake.lake.reader import Reader


def divergence_of(lake: Reader, flow: str) -> dict[str, Any]:
    """Returns {"staged_only": [...], "never_staged": [...]}, offsets inclusive.

    `staged_only` are records that the lake has and the target has not: the rows of the view
    `divergence`. `never_staged` are offsets that the source had at the newest sample and the lake
    has not; of what the source got after that sample is not known.
    """
    staged, unknown = (
        lake.query_rows(name, flow=flow) for name in ("divergence_of", "never_staged")
    )
    return {"staged_only": staged, "never_staged": unknown}
