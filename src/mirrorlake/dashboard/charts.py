"""Widgets as Vega-Lite charts, by Altair. Pure: the page fills a spec's data set `rows`.

The page evaluates a widget's query; rows reach the chart with the query's fields named c0, c1, ...
in order, since Vega reads dots and brackets in names as paths.
"""

from dataclasses import dataclass
from typing import Any

import altair as alt

from mirrorlake.dashboard.encodings import Axis, Channel, Format, Scale, Series
from mirrorlake.dashboard.parts import Query, parse_expression
from mirrorlake.dashboard.specs import ChartSpec, ComboSpec, HeatmapSpec, PieSpec, XYSpec

#: Functions that the page registers: they format numbers and times as in its counters and tables.
QUANTITY, INSTANT, CLOCK = "quantity", "instant", "clock"
#: The width of a bar that covers a span of time.
_TIME_UNITS = {
    "MINUTE": "utcyearmonthdatehoursminutes",
    "HOUR": "utcyearmonthdatehours",
    "DAY": "utcyearmonthdate",
}
_NO_FORMAT = Format(type="number")


@dataclass(frozen=True)
class _Columns:
    """The column of each field of a query in a row, and the time units of truncated fields."""

    names: dict[str, str]
    units: dict[str, str]


def chart(spec: ChartSpec, query: Query) -> dict[str, Any]:
    """The Vega-Lite spec of a chart widget."""
    plans = {field.name: parse_expression(field.expression) for field in query.fields}
    units = {name: _TIME_UNITS[plan.unit] for name, plan in plans.items() if plan.unit is not None}
    columns = _Columns({name: f"c{index}" for index, name in enumerate(plans)}, units)
    if isinstance(spec, HeatmapSpec):
        drawn = _heatmap(spec, columns)
    elif isinstance(spec, PieSpec):
        drawn = _pie(spec, columns)
    elif isinstance(spec, ComboSpec):
        drawn = _combo(spec, columns)
    else:
        drawn = _xy(spec, columns)
    drawn = drawn.properties(width="container", height="container", data=alt.NamedData(name="rows"))
    # a test validates the dashboard's specs; doing it here would take half of the time
    document: dict[str, Any] = drawn.to_dict(validate=False)
    document.pop("config", None)  # the page's theme decides
    return document


def _xy(spec: XYSpec, columns: _Columns) -> Any:
    made = spec.encodings
    base: Any = alt.Chart()
    color: Any
    order: Any = alt.Undefined
    if isinstance(made.y, Series):
        base = _folded(base, made.y, columns)
        order = alt.Order("rank", type="quantitative")  # the first one at the bottom
        y = _axis(alt.Y, "value", scale=made.y.scale, axis=made.y.axis, written=made.y.format)
        order_of_names = [series.displayName for series in made.y.fields]
        color = alt.Color("series", type="nominal", sort=order_of_names, title=None)
        tips = [_tip(made.x, columns), *_series_tips(made.y)]
    else:
        y = _positional(alt.Y, made.y, columns)
        color = _color(made.color, columns)
        tips = [_tip(channel, columns) for channel in (made.x, made.color, made.y) if channel]
    x = _positional(alt.X, made.x, columns, bars=spec.widgetType == "bar")
    if spec.widgetType == "line":
        return _lines(base, x, y, color, tips)
    if spec.widgetType == "area":
        # no row means nothing came through, not an interpolated value
        y["impute"] = alt.ImputeParams(value=0)
        return base.mark_area(opacity=0.7, line=True).encode(
            x=x, y=y, color=color, order=order, tooltip=tips
        )
    bars = base.mark_bar(cornerRadiusEnd=2)
    return bars.encode(x=x, y=y, color=color, order=order, tooltip=tips, **_offset(spec, columns))


def _lines(base: Any, x: Any, y: Any, color: Any, tips: list[Any]) -> Any:
    """Lines, with the point nearest to the pointer."""
    near = alt.selection_point(nearest=True, on="pointerover", clear="pointerout", empty=False)
    shown = alt.when(near).then(alt.value(1)).otherwise(alt.value(0))
    lines = base.mark_line(strokeWidth=2, clip=True)
    points = (
        base.mark_point(filled=True, size=60).encode(opacity=shown, tooltip=tips).add_params(near)
    )
    return alt.layer(lines.encode(x=x, y=y, color=color), points.encode(x=x, y=y, color=color))


def _offset(spec: XYSpec, columns: _Columns) -> dict[str, Any]:
    """The encoding that puts bars of one category side by side; without it they are stacked."""
    color = spec.encodings.color
    if color is None or spec.mark is None or spec.mark.layout == "stack":
        return {}
    column = columns.names[color.fieldName]
    if spec.encodings.x.scale.type == "quantitative":
        return {"yOffset": alt.YOffset(column, type="nominal")}
    return {"xOffset": alt.XOffset(column, type="nominal")}


def _heatmap(spec: HeatmapSpec, columns: _Columns) -> Any:
    made = spec.encodings
    x, y = _positional(alt.X, made.x, columns), _positional(alt.Y, made.y, columns)
    legend = alt.Legend(orient="bottom", direction="horizontal", gradientLength=160, tickCount=3)
    legend["format"], legend["formatType"] = _written(made.color.format), QUANTITY
    color = alt.Color(
        columns.names[made.color.fieldName],
        type="quantitative",
        title=made.color.displayName,
        scale=alt.Scale(zero=True, interpolate="rgb"),
        legend=legend,
    )
    tips = [_tip(channel, columns) for channel in (made.y, made.x, made.color)]
    return alt.Chart().mark_rect(cornerRadius=2).encode(x=x, y=y, color=color, tooltip=tips)


def _pie(spec: PieSpec, columns: _Columns) -> Any:
    made = spec.encodings
    angle = alt.Theta(columns.names[made.angle.fieldName], type="quantitative", stack=True)
    ring = alt.Chart().mark_arc(
        innerRadius=alt.expr("min(width, height) / 3.4"), padAngle=0.01, cornerRadius=2
    )
    tips = [_tip(made.color, columns), _tip(made.angle, columns)]
    return ring.encode(theta=angle, color=_color(made.color, columns), tooltip=tips)


def _combo(spec: ComboSpec, columns: _Columns) -> Any:
    """Bars on the left axis, lines on the right one; the colour says which is which."""
    made = spec.encodings
    both = (made.y.primary, made.y.secondary)
    names = [series.displayName for side in both for series in side.fields]
    bars, lines = (_folded(alt.Chart(), side, columns) for side in both)
    marks = (bars.mark_bar(opacity=0.5, binSpacing=0), lines.mark_line(strokeWidth=2))
    sides = []
    for side, marked in zip(both, marks, strict=True):
        x = _positional(alt.X, made.x, columns, bars=True)
        y = _axis(alt.Y, "value", scale=side.scale, axis=side.axis, written=side.format)
        color = alt.Color("series", type="nominal", title=None, scale=alt.Scale(domain=names))
        tips = [_tip(made.x, columns), *_series_tips(side)]
        sides.append(marked.encode(x=x, y=y, color=color, tooltip=tips))
    return alt.layer(*sides).resolve_scale(y="independent")


def _folded(base: Any, side: Series, columns: _Columns) -> Any:
    """Fold several fields of a row into rows with `series` (the display name) and `value`."""
    names = {columns.names[series.fieldName]: series.displayName for series in side.fields}
    text = "{" + ", ".join(f"{column}: {_quoted(name)}" for column, name in names.items()) + "}"
    ranks = "{" + ", ".join(f"{column}: {rank}" for rank, column in enumerate(names)) + "}"
    folded = base.transform_fold(list(names), as_=["column", "value"])
    return folded.transform_calculate(
        series=f"({text})[datum.column]", rank=f"({ranks})[datum.column]"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _positional(kind: Any, channel: Channel, columns: _Columns, bars: bool = False) -> Any:
    made = _axis(
        kind,
        columns.names[channel.fieldName],
        scale=channel.scale,
        axis=channel.axis,
        written=channel.format,
        name=channel.displayName,
    )
    if bars and channel.fieldName in columns.units:
        made["timeUnit"] = columns.units[channel.fieldName]
    return made


def _axis(
    kind: Any,
    column: str,
    *,
    scale: Scale,
    axis: Axis | None,
    written: Format | None,
    name: str = "",
) -> Any:
    hidden = axis is not None and axis.hideTitle
    title = None if hidden else (axis.title if axis is not None else None) or name or None
    if scale.type == "temporal":
        ticks = alt.Axis(format="", formatType=CLOCK, labelOverlap=True, tickCount=6)
        return kind(column, type="temporal", title=title, scale=alt.Scale(type="utc"), axis=ticks)
    if scale.type == "quantitative":
        ticks = alt.Axis(format=_on_axis(written), formatType=QUANTITY, tickCount=5)
        return kind(column, type="quantitative", title=title, axis=ticks)
    return kind(
        column,
        type="ordinal",
        title=title,
        sort=_sort(scale),
        axis=alt.Axis(labelAngle=0, labelLimit=140),
    )


def _sort(scale: Scale) -> str:
    """Vega-Lite's word for an order of categories."""
    if scale.sort is None:
        return "ascending"
    axis, _, falling = scale.sort.by.partition("-")
    return f"-{axis}" if falling else axis


def _color(channel: Channel | None, columns: _Columns) -> Any:
    if channel is None:
        return alt.Undefined
    pairs = channel.scale.mappings
    scale = alt.Scale(domain=[pair.value for pair in pairs], range=[pair.color for pair in pairs])
    return alt.Color(
        columns.names[channel.fieldName],
        type="nominal",
        title=None,
        scale=scale if pairs else alt.Undefined,
    )


def _tip(channel: Channel, columns: _Columns) -> Any:
    column = columns.names[channel.fieldName]
    if channel.scale.type == "temporal":
        return alt.Tooltip(
            column, type="temporal", title=channel.displayName, format="", formatType=INSTANT
        )
    if channel.scale.type == "categorical":
        return alt.Tooltip(column, type="nominal", title=channel.displayName)
    return alt.Tooltip(
        column,
        type="quantitative",
        title=channel.displayName,
        format=_written(channel.format),
        formatType=QUANTITY,
    )


def _series_tips(side: Series) -> list[Any]:
    value = alt.Tooltip(
        "value", type="quantitative", format=_written(side.format), formatType=QUANTITY
    )
    return [alt.Tooltip("series", type="nominal", title="Series"), value]


def _written(written: Format | None) -> dict[str, Any]:
    return (written or _NO_FORMAT).model_dump(exclude_none=True)


def _on_axis(written: Format | None) -> dict[str, Any]:
    """The format of an axis' numbers: at least one decimal place, lest two ticks look the same."""
    made = _written(written)
    places = made.get("decimalPlaces", {}).get("places", 2)
    return {**made, "decimalPlaces": {"type": "max", "places": max(1, places)}}
