"""Which topics of a flow hold heartbeats, in `objectives`: a regex, which the views use."""

import re
from collections.abc import Callable, Collection

from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Frame
from mirrorlake.naming.policy import HEARTBEATS

_NOTED = "flow STRING, pattern STRING"


def heartbeats_pattern(topics: Collection[str]) -> str:
    """A regex, the same to Java, DuckDB and Python, that finds these topics and no other."""
    return f"^(?:{'|'.join(re.escape(name) for name in sorted(topics))})$" if topics else "^$"


def note_heartbeat_topics(lake: Lake, flow: str, topics: Collection[str]) -> None:
    """Note which topics of a flow's source hold heartbeats; doing it again changes nothing."""
    pattern = heartbeats_pattern(topics)
    if any(
        row["flow"] == flow and row["heartbeat_topics"] == pattern
        for row in lake.ask_table("objectives")
    ):
        return
    lake.change("note_heartbeat_topics", {"noted": Frame(_NOTED, [(flow, pattern)])})


def known_heartbeats(
    lake: Lake, flow: str, unnoted: Collection[str] = (HEARTBEATS,)
) -> Callable[[str], bool]:
    """Whether a topic of a flow's source is noted to hold heartbeats, or `unnoted` if none is."""
    rows = (row["heartbeat_topics"] for row in lake.ask_table("objectives") if row["flow"] == flow)
    pattern = re.compile(next(rows, None) or heartbeats_pattern(unnoted))
    return lambda topic: pattern.search(topic) is not None
