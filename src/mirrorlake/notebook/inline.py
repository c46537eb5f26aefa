"""Tables and charts for display below a cell in Jupyter and VS Code, without a network."""

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, TypeAlias

import altair as alt
import pyarrow as pa

from mirrorlake.library.html import table

if TYPE_CHECKING:  # a lake in a folder is read without Spark
    from pyspark.sql import DataFrame

#: The most rows that a table shows outside a workspace, which can page.
SHOWN_ROWS = 30
#: The MIME type of a Vega-Lite chart; a front end that does not know it shows the picture.
_CHART = f"application/vnd.vegalite.{alt.SCHEMA_VERSION.partition('.')[0]}+json"

#: Values that a notebook displays. Our tables are Arrow's; a DataFrame is from a user's cell.
Shown: TypeAlias = "pa.Table | DataFrame | alt.TopLevelMixin | str"


def bundle_of(what: Shown) -> dict[str, Any]:
    """The representations by MIME type: a front end picks the richest that it knows."""
    if isinstance(what, str):
        return {"text/plain": what}
    if isinstance(what, alt.TopLevelMixin):
        return {_CHART: what.to_dict(), "image/svg+xml": picture(what), "text/plain": "a chart"}
    columns, rows = rows_of(what)
    more = f"<p>the first {SHOWN_ROWS} rows</p>" if len(rows) > SHOWN_ROWS else ""
    shown = table(rows[:SHOWN_ROWS], columns=columns) + more
    return {"text/html": shown, "text/plain": f"a table of {', '.join(columns)}"}


def picture(chart: alt.TopLevelMixin) -> str:
    """A chart as SVG, some kilobytes; a page with Vega's scripts has 0.9 MB."""
    drawn = StringIO()
    chart.save(drawn, format="svg")
    return drawn.getvalue()


def rows_of(what: "pa.Table | DataFrame") -> tuple[Sequence[str], list[dict[str, Any]]]:
    """The columns, and the rows to show plus one if there are more."""
    first = (
        what.slice(0, SHOWN_ROWS + 1)
        if isinstance(what, pa.Table)
        else what.limit(SHOWN_ROWS + 1).toArrow()
    )
    return first.column_names, plain_rows(first)


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """A table's rows; times are in UTC, without a zone (with one Arrow would import pandas)."""
    fields = list(table.schema)
    for at, field in enumerate(fields):
        if pa.types.is_timestamp(field.type):
            fields[at] = field.with_type(pa.timestamp(field.type.unit))
    rows: list[dict[str, Any]] = table.cast(pa.schema(fields)).to_pylist()
    return rows
