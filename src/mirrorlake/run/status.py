"""How the flows stand, as one document: what `mirrorlake status` shows."""

from typing import Any

from mirrorlake.checks.broken_laws import broken_laws
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.reader import Reader
from mirrorlake.run.attention import attention, standing


def read_status(lake: Reader, connections: Connections) -> dict[str, Any]:
    """Returns {"healthy", "flows": [a row of `flow_status` each], "topics": [...], "incidents":
    [...], "alerts": [rows of the view `alerts`, and of laws that are broken], "unchecked":
    [sentences], "proofs": [rows of the view `proof_status`], "attention": [a sentence for each
    thing that needs attention]}. Flows have `enabled`, `paused` (as a whole) and `standing`, how
    they stand in words.

    A flow that has never run is there with nulls. Not healthy means that an alert is there. What is
    paused, disabled or gone by the file as it is now raises none except for its open incidents,
    which wait for a decision.
    """
    topology = connections.topology
    rows = {row["flow"]: row for row in lake.table_rows("flow_status")}
    flows = []
    for name, settings in topology.flows.items():
        known = rows.get(name, {"flow": name, "open_incidents": 0})
        row = {**known, "enabled": settings.enabled, "paused": settings.paused is True}
        quiet_seconds = max(60, 3 * settings.sample_positions_interval_seconds)
        flows.append({**row, "standing": standing(row, quiet_seconds)})
    topics = lake.query_rows("topic_lag")
    incidents = lake.table_rows("open_incidents")
    running = [flow for flow in topology.active_flows() if not flow.paused]
    alert_rows = lake.table_rows("alerts")
    alerts = [
        row
        for row in alert_rows
        if row["alert"] == "incident" or row["flow"] in {flow.name for flow in running}
    ]
    broken, unchecked = broken_laws(lake, connections, running)
    alerted = {_place(row) for row in alerts}
    alerts += [row for row in broken if _place(row) not in alerted]
    alerts.sort(
        key=lambda row: (row["flow"], row["alert"], row["topic"] or "", row["partition"] or 0)
    )
    return {
        "healthy": not alerts,
        "flows": flows,
        "topics": topics,
        "incidents": incidents,
        "alerts": alerts,
        "unchecked": unchecked,
        "proofs": sorted(
            lake.table_rows("proof_status"), key=lambda row: (row["flow"], row["topic"])
        ),
        "attention": attention(incidents, alerts),
    }


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["flow"], row["alert"], row["topic"], row["partition"]
