"""The table `starts`: where flows began (`mirrorlake.offsets.starts`)."""

from collections import defaultdict
from datetime import datetime, timezone

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Reader
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.offsets.starts import Starts


def starts_from(lake: Reader, source: str) -> dict[str, Starts]:
    """The starts of each flow from a cluster that began; empty for one that mirrors all."""
    starts: dict[str, dict[PartitionGeneration, int]] = defaultdict(dict)
    for row in lake.query_rows("starts_of", prefix=f"{source}->"):
        known = starts[row["flow"]]
        if row["topic"] is not None:
            known[PartitionGeneration.from_row(row)] = row["first_offset"]
    return dict(starts)


def starts_of(lake: Reader, flow: str) -> Starts:
    """The starts of one flow."""
    return starts_from(lake, flow.partition("->")[0]).get(flow, {})


def has_started(lake: Reader, flow: str) -> bool:
    """Whether a flow has started before, under any version."""
    known = starts_from(lake, flow.partition("->")[0])
    return flow in known or bool(lake.query_rows("flow_begun", flow=flow))


def note_start(lake: Lake, flow: str, asked: str, starts: Starts) -> None:
    """Note that a flow starts, and where it begins, in one commit."""
    now = datetime.now(timezone.utc)
    started = {"flow": flow, "asked": asked, "noted_at": now}
    rows = [
        {**started, **place._asdict(), "first_offset": first} for place, first in starts.items()
    ]
    lake.append("starts", rows_of("starts", [*rows, started]))
