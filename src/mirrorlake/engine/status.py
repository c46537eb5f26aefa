"""How the flows stand, as one document: what `mirrorlake status` shows. Reads the lake only."""

from typing import Any

from mirrorlake.core.topology import Topology
from mirrorlake.lake.lake import Lake


def read_status(lake: Lake, topology: Topology) -> dict[str, Any]:
    """Returns {"healthy", "flows": [a row of `flow_status` each, with enabled], "topics": [...], "incidents": [...]}.

    A flow that has never run is there with nulls. Not healthy means that an incident is open.
    """
    rows = {row["flow"]: row.asDict() for row in lake.table("flow_status").collect()}
    flows = []
    for name, settings in topology.flows.items():
        known = rows.get(name, {"flow": name, "open_incidents": 0})
        flows.append({**known, "enabled": settings.enabled})
    topics = [row.asDict() for row in lake.query("topic_lag").collect()]
    incidents = [row.asDict() for row in lake.table("open_incidents").collect()]
    return {"healthy": not incidents, "flows": flows, "topics": topics, "incidents": incidents}
