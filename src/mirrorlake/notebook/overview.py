"""Notebook 01: the state of the flows."""

import altair as alt

from mirrorlake.notebook import charts
from mirrorlake.notebook.host import Notebook


def throughput(nb: Notebook) -> alt.Chart:
    """Records per minute."""
    table = nb.query("throughput", flow=nb.flow, **nb.span)
    return charts.stacked(table, "record_count", f"{nb.flow}: records per minute")


def lag(nb: Notebook) -> alt.Chart:
    """Lag in records at the end of each minute."""
    table = nb.query("lag_over_time", flow=nb.flow, **nb.span)
    return charts.stacked(table, "lag_records", f"{nb.flow}: lag in records per minute")
