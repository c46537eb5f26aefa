"""How a lake stands by its tables alone, for who has no topology file: no cluster is asked."""

from mirrorlake.lake.reader import Reader
from mirrorlake.library.answers import Rows, Status
from mirrorlake.run.attention import attention, standing

UNASKED = (
    "the clusters were not asked, and laws not checked: the lake was opened without its "
    "topology file"
)


def status_of_tables(tables: Reader) -> Status:
    """The status of all flows that the lake knows; whether they are enabled is not known."""
    flows = sorted(tables.table_rows("flow_status"), key=lambda row: row["flow"])
    alerts, incidents = tables.table_rows("alerts"), tables.table_rows("open_incidents")
    return Status(
        healthy=not alerts,
        flows=Rows({**row, "enabled": None, "standing": standing(row)} for row in flows),
        topics=Rows(tables.query_rows("topic_lag")),
        incidents=Rows(incidents),
        alerts=Rows(
            sorted(alerts, key=lambda row: (row["flow"], row["alert"], row["topic"] or ""))
        ),
        unchecked=[UNASKED],
        proofs=Rows(
            sorted(tables.table_rows("proof_status"), key=lambda row: (row["flow"], row["topic"]))
        ),
        attention=attention(incidents, alerts),
    )
