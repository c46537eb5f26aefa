"""Tables and charts as Jupyter and VS Code show them below a cell, without a network."""

from io import StringIO
from typing import Any

import altair as alt
from pyspark.sql import DataFrame

from mirrorlake.library.html import table

#: Rows that a table shows where there is no workspace to page through them.
SHOWN_ROWS = 30
#: What a Vega-Lite chart is called among MIME types; a front end that does not know it takes the picture.
_CHART = f"application/vnd.vegalite.{alt.SCHEMA_VERSION.partition('.')[0]}+json"

Shown = DataFrame | alt.TopLevelMixin | str


def bundle_of(what: Shown) -> dict[str, Any]:
    """What is shown, by MIME type: whoever shows it takes the richest that it knows."""
    if isinstance(what, str):
        return {"text/plain": what}
    if isinstance(what, DataFrame):
        return {"text/html": _table(what), "text/plain": f"a table of {', '.join(what.columns)}"}
    return {_CHART: what.to_dict(), "image/svg+xml": picture(what), "text/plain": "a chart"}


def picture(chart: alt.TopLevelMixin) -> str:
    """A chart as SVG, some kilobytes of it; a page with Vega's scripts in it is 0.9 MB."""
    drawn = StringIO()
    chart.save(drawn, format="svg")
    return drawn.getvalue()


def _table(frame: DataFrame) -> str:
    rows = [row.asDict() for row in frame.limit(SHOWN_ROWS + 1).collect()]
    more = f"<p>the first {SHOWN_ROWS} rows</p>" if len(rows) > SHOWN_ROWS else ""
    return table(rows[:SHOWN_ROWS], columns=frame.columns) + more
