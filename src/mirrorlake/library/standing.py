"""How a lake stands by its tables alone, for who has no topology file: no cluster is asked."""

from mirrorlake.lake.lake import Lake
from mirrorlake.library.answers import Rows, Status

UNASKED = "the clusters were not asked, and laws not checked: the lake was opened without its topology file"


def status_of_tables(tables: Lake) -> Status:
    """The status of all flows that the lake knows; whether they are enabled nobody says."""
    flows = tables.table("flow_status").orderBy("flow").collect()
    alerts = Rows(row.asDict() for row in tables.table("alerts").collect())
    return Status(
        healthy=not alerts,
        flows=Rows({**row.asDict(), "enabled": None} for row in flows),
        topics=Rows(row.asDict() for row in tables.query("topic_lag").collect()),
        incidents=Rows(row.asDict() for row in tables.table("open_incidents").collect()),
        alerts=Rows(sorted(alerts, key=lambda row: (row["flow"], row["alert"], row["topic"] or ""))),
        unchecked=[UNASKED],
    )
