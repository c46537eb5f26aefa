"""How the flows stand, as one document: what `mirrorlake status` shows. Reads the lake only."""

from typing import Any

from mirrorlake.core.topology import Topology
from mirrorlake.lake.lake import Lake


def read_status(lake: Lake, topology: Topology) -> dict[str, Any]:
    """Returns {"healthy", "flows": [a row of `flow_status` each, with enabled], "topics": [...], "incidents": [...],
    "alerts": [rows of the view `alerts`]}.

    A flow that has never run is there with nulls. Not healthy means that an alert is there. What is paused, disabled or
    gone by the file as it is now raises none but for its open incidents, which wait for a decision.
    """
    rows = {row["flow"]: row.asDict() for row in lake.table("flow_status").collect()}
    flows = []
    for name, settings in topology.flows.items():
        known = rows.get(name, {"flow": name, "open_incidents": 0})
        flows.append({**known, "enabled": settings.enabled})
    topics = [row.asDict() for row in lake.query("topic_lag").collect()]
    incidents = [row.asDict() for row in lake.table("open_incidents").collect()]
    running = {flow.name for flow in topology.active_flows() if not flow.paused}
    found = [row.asDict() for row in lake.table("alerts").orderBy("flow", "alert", "topic", "partition").collect()]
    alerts = [row for row in found if row["alert"] == "incident" or row["flow"] in running]
    return {"healthy": not alerts, "flows": flows, "topics": topics, "incidents": incidents, "alerts": alerts}
