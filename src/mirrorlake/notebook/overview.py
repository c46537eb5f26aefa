"""Notebook 01: where the flows stand."""

import altair as alt
import pyarrow as pa

from mirrorlake.notebook import charts
from mirrorlake.notebook.host import Notebook


def flows(nb: Notebook) -> pa.Table:
    """One row per flow."""
    return nb.query("flow_overview")


def laggards(nb: Notebook) -> pa.Table:
    """The partitions of the flow that are furthest behind."""
    return nb.query("laggards", flow=nb.flow)


def incidents(nb: Notebook) -> pa.Table:
    """What waits for a decision."""
    return nb.query("incidents_of", flow=nb.flow)


def throughput(nb: Notebook) -> alt.Chart:
    """Records per minute."""
    table = nb.query("throughput", flow=nb.flow, **nb.span)
    return charts.stacked(
        table, "minute", "record_count", "topic", f"{nb.flow}: records per minute"
    )


def lag(nb: Notebook) -> alt.Chart:
    """Lag in records at the end of each minute."""
    table = nb.query("lag_over_time", flow=nb.flow, **nb.span)
    return charts.stacked(
        table, "minute", "lag_records", "topic", f"{nb.flow}: lag in records per minute"
    )
