"""Notebook 01: where the flows stand."""

import altair as alt
from pyspark.sql import DataFrame

from mirrorlake.notebook import charts
from mirrorlake.notebook.host import Notebook

#: What of `flow_status` is looked at first, in the order of reading.
_STATUS = (
    "flow",
    "state",
    "topics",
    "partitions",
    "lag_records",
    "lag_seconds",
    "records_per_second",
    "replication_p50_ms",
    "replication_p99_ms",
    "open_incidents",
    "heartbeat_age_seconds",
    "record_count",
    "last_produced_at",
)


def flows(nb: Notebook) -> DataFrame:
    """One row per flow."""
    return nb.lake.table("flow_status").select(*_STATUS).orderBy("flow")


def laggards(nb: Notebook) -> DataFrame:
    """The partitions of the flow that are furthest behind."""
    return nb.query("laggards", flow=nb.flow)


def incidents(nb: Notebook) -> DataFrame:
    """What waits for a decision."""
    return nb.query("incidents_of", flow=nb.flow)


def throughput(nb: Notebook) -> alt.Chart:
    """Records per minute."""
    frame = nb.query("throughput", flow=nb.flow, **nb.span)
    return charts.stacked(frame, "minute", "record_count", "topic", f"{nb.flow}: records per minute")


def lag(nb: Notebook) -> alt.Chart:
    """Lag in records at the end of each minute."""
    frame = nb.query("lag_over_time", flow=nb.flow, **nb.span)
    return charts.stacked(frame, "minute", "lag_records", "topic", f"{nb.flow}: lag in records per minute")
