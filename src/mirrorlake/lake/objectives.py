"""The table `objectives`, for the view `alerts`: the objectives that the topology file sets for
flows, how these run, and which of their topics hold heartbeats."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal

from mirrorlake.config.objectives import paused_pattern
from mirrorlake.config.topology import ResolvedFlow, Topology
from mirrorlake.lake.definitions import definition
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Frame
from mirrorlake.naming.policy import HEARTBEATS

#: How a flow is run: until it is stopped, up to an end, or no longer, since it was stopped.
Mode = Literal["continuous", "once", "stopped"]

#: Columns that are not objectives from the file.
_NOTED_APART = frozenset({"since", "noted_at", "heartbeat_topics"})
_NOTED = "flow STRING, pattern STRING"


def brings_heartbeats(flow: ResolvedFlow) -> bool:
    """Whether heartbeats that are written to a flow's source have to come through."""
    mirrored = flow.selection.selects(HEARTBEATS) and not flow.pauses(HEARTBEATS)
    return flow.settings.emit_heartbeats_enabled and mirrored


def note_objectives(
    lake: Lake, topology: Topology, modes: Mapping[str, Mode], gone: Iterable[str] = ()
) -> None:
    """Write the objectives of a file's flows, and how those in `modes` run; idempotent.

    Flows in `gone` were taken out of the file: they have no objectives any more.
    """
    rows: list[dict[str, object]] = [
        {"flow": name, "enabled": False} for name in gone if name not in topology.flows
    ]
    for name in topology.flows:
        flow = topology.flow(name)
        settings = flow.settings
        rows.append(
            {
                "flow": name,
                **topology.objectives_of(name),
                "enabled": settings.enabled and not flow.paused,
                "paused": paused_pattern(settings.paused),
                "heartbeats": brings_heartbeats(flow),
                "gaps": settings.provenance == "none",
                "mode": modes.get(name),
            }
        )
    known = {row["flow"]: row for row in lake.ask_table("objectives")}
    changed = [row for row in rows if _says_more(row, known.get(str(row["flow"])))]
    if changed:  # a MERGE that changes nothing takes longer than a short run
        columns = [
            column for column in definition("objectives").columns if column.name not in _NOTED_APART
        ]
        values = [tuple(row.get(column.name) for column in columns) for row in changed]
        layout = ", ".join(f"{column.name} {column.spark_type}" for column in columns)
        lake.change("note_objectives", {"objectives_now": Frame(layout, values)})


def _says_more(row: Mapping[str, object], known: Mapping[str, object] | None) -> bool:
    """Whether a row differs from the noted one; without a mode it does not differ in that."""
    if known is None:
        return True
    kept = _NOTED_APART | (set() if row.get("mode") else {"mode"})
    return any(row.get(name) != value for name, value in known.items() if name not in kept)


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
