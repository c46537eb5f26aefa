"""The notebooks' charts, drawn by Altair, each from the small table of one query."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import altair as alt
import pyarrow as pa

from mirrorlake.notebook.inline import plain_rows

_WIDTH, _HEIGHT = 860, 240
_TIME = "%Y-%m-%d %H:%M:%S"


def lines(
    table: pa.Table, x: str, y: dict[str, str], *, title: str, unit: str, over: str = "T"
) -> alt.Chart:
    """Several measures over time, or with `over="Q"` over numbers; `y` maps columns to labels.
    Points are drawn too, for isolated values."""
    number = over == "Q"
    rows = _long(_rows(table), [x], y, unit)
    chart: alt.Chart = _chart(rows, title, alt.MarkDef("line", point=True), height=_HEIGHT).encode(
        x=alt.X(
            f"{x}:{over}",
            title=x if number else None,
            scale=alt.Scale(zero=False) if number else alt.Undefined,
        ),
        y=alt.Y(f"{unit}:Q"),
        color=alt.Color("what:N", title=None, sort=list(y.values())),
        tooltip=[
            f"{x}:Q" if number else alt.Tooltip(f"{x}:T", format=_TIME),
            "what:N",
            f"{unit}:Q",
        ],
    )
    return chart


def stacked(table: pa.Table, y: str, title: str) -> alt.Chart:
    """One measure by minute, stacked by topic."""
    chart: alt.Chart = _chart(_rows(table), title, alt.MarkDef("bar"), height=_HEIGHT).encode(
        x=alt.X("minute:T", title=None),
        y=alt.Y(f"{y}:Q", title=y.replace("_", " ")),
        color=alt.Color("topic:N"),
        tooltip=[alt.Tooltip("minute:T", format=_TIME), "topic:N", f"{y}:Q"],
    )
    return chart


def bars(
    table: pa.Table, name: list[str], measures: dict[str, str], title: str, unit: str
) -> alt.Chart:
    """Measures side by side for each name, joined from the columns `name`."""
    rows = [{**row, "place": "-".join(str(row[part]) for part in name)} for row in _rows(table)]
    order = list(measures.values())
    chart: alt.Chart = _chart(
        _long(rows, ["place"], measures, unit), title, alt.MarkDef("bar")
    ).encode(
        x=alt.X(f"{unit}:Q"),
        y=alt.Y("place:N", title=None, sort=None),
        yOffset=alt.YOffset("what:N", sort=order),
        color=alt.Color("what:N", title=None, sort=order),
        tooltip=["place:N", "what:N", f"{unit}:Q"],
    )
    return chart


def offsets(table: pa.Table, title: str) -> alt.Chart:
    """The map of a partition: source offsets across, target offsets up; one line per range."""
    chart: alt.Chart = _chart(
        _rows(table), title, alt.MarkDef("rule", strokeWidth=4, strokeCap="round"), height=_HEIGHT
    ).encode(
        x=alt.X("source_first:Q", title="source offset", scale=alt.Scale(zero=False)),
        y=alt.Y("target_first:Q", title="target offset", scale=alt.Scale(zero=False)),
        x2="source_last:Q",
        y2="target_last:Q",
        tooltip=["source_first:Q", "source_last:Q", "stride:Q", "target_first:Q", "record_count:Q"],
    )
    return chart


def capacity(samples: Sequence[dict[str, Any]], needed: Sequence[dict[str, Any]]) -> alt.LayerChart:
    """Samples of runs (records_per_second, cpu_cores, run), and the cores that loads need
    (records_per_second, cores)."""
    title = "Busy cores by load: measured (dots), and what to provide (line)"
    line = _chart(
        needed, title, alt.MarkDef("line", strokeDash=[6, 4], color="gray"), height=_HEIGHT
    ).encode(
        x=alt.X("records_per_second:Q", title="records per second"),
        y=alt.Y("cores:Q", title="cores"),
    )
    seen = _chart(samples, title, alt.MarkDef("circle", size=60), height=_HEIGHT).encode(
        x="records_per_second:Q",
        y="cpu_cores:Q",
        color=alt.Color("run:N"),
        tooltip=["run:N", "records_per_second:Q", "cpu_cores:Q"],
    )
    return alt.LayerChart(layer=[line, seen])


def _chart(
    rows: Sequence[dict[str, Any]], title: str, mark: alt.MarkDef, height: Any = alt.Undefined
) -> alt.Chart:
    return alt.Chart(
        alt.InlineData(values=list(rows)), mark=mark, title=title, width=_WIDTH, height=height
    )


def _long(
    rows: Sequence[dict[str, Any]], keep: list[str], measures: dict[str, str], unit: str
) -> list[dict[str, Any]]:
    """One row per measure, under its name; those without a value are left out."""
    return [
        {**{name: row[name] for name in keep}, "what": name, unit: row[column]}
        for row in rows
        for column, name in measures.items()
        if row[column] is not None
    ]


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """A small table (the queries behind it are aggregates or have limits), with times as text."""
    return [
        {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in row.items()
        }
        for row in plain_rows(table)
    ]
