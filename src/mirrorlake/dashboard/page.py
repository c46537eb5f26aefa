"""The page as one self-contained document: the dashboard's widgets, Vega's scripts and our own."""

import base64
import hashlib
from importlib.metadata import version
from importlib.resources import files
from typing import Any, get_args

import vl_convert

from mirrorlake.caches import cached_text
from mirrorlake.dashboard.charts import chart
from mirrorlake.dashboard.data import to_json
from mirrorlake.dashboard.model import Dashboard, filter_targets, plan_fields
from mirrorlake.dashboard.parts import Page, Placed, Widget
from mirrorlake.dashboard.specs import (
    ChartSpec,
    CounterSpec,
    FilterSpec,
    TableSpec,
    ValuesFilterSpec,
)

_SCRIPTS = ("format.js", "query.js", "theme.js", "widgets.js", "filters.js", "page.js")
TITLE = "mirrorlake"
#: The part of Vega's scripts that our own may call.
_EMBED = "window.vegaEmbed = vegaEmbed;"


def render(
    dashboard: Dashboard, data: dict[str, Any] | None, refresh: float | None, place: str
) -> str:
    """Render the page. It shows `data`, or, without, asks /data.json every `refresh` seconds.

    `place` names the lake that it shows. The page's content security policy lets it load nothing
    from elsewhere and run only its own scripts.
    """
    state = {"dashboard": document(dashboard), "data": data, "refresh": refresh, "place": place}
    css, scripts = _static("page.css"), [_vega(), _own_script(state)]
    parts = [
        "default-src 'none'",
        "script-src " + " ".join(_digest(script) for script in scripts),
        "style-src 'unsafe-inline'",  # Vega's tooltip brings its own
        "img-src data:",
        "connect-src " + ("'none'" if refresh is None else "'self'"),
        "base-uri 'none'; form-action 'none'",
    ]
    page = _static("page.html")
    for name, text in (
        ("policy", "; ".join(parts)),
        ("title", TITLE),
        ("css", css),
        ("scripts", "\n".join(f"<script>{script}</script>" for script in scripts)),
    ):
        page = page.replace(f"<!--{name}-->", text)
    return page


def _vega() -> str:
    """Vega's scripts, cached by version; making them takes a second of CPU."""
    made_of = f"{version('vl-convert-python')} {_EMBED}"
    name = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    return cached_text(f"dashboard/{name}.js", lambda: vl_convert.javascript_bundle(_EMBED))


def document(dashboard: Dashboard) -> dict[str, Any]:
    """The dashboard for the page's script: widgets with what to compute and how to draw it."""
    shown = [page for page in dashboard.pages if page.pageType == "PAGE_TYPE_CANVAS"]
    filters = [
        placed.widget
        for page in dashboard.pages
        for placed in page.layout
        if _is_filter(placed.widget)
    ]
    return {
        "pages": [_page(page) for page in shown],
        "filters": [_filter(widget) for widget in filters],
        "theme": dashboard.uiSettings.theme.model_dump(),
        "titles": {dataset.name: dataset.displayName for dataset in dashboard.datasets},
    }


def _page(page: Page) -> dict[str, Any]:
    placed = sorted(page.layout, key=lambda each: (each.position.y, each.position.x))
    widgets = [_widget(each) for each in placed if not _is_filter(each.widget)]
    return {"name": page.name, "title": page.displayName, "widgets": widgets}


def _widget(placed: Placed) -> dict[str, Any]:
    widget, spec = placed.widget, placed.widget.spec
    made: dict[str, Any] = {"name": widget.name, "position": placed.position.model_dump()}
    if widget.multilineTextboxSpec is not None:
        return {**made, "kind": "text", "text": "".join(widget.multilineTextboxSpec.lines)}
    if spec is None or isinstance(spec, FilterSpec):
        raise AssertionError(f"widget {widget.name} was not checked")
    query = widget.queries[0].query
    names = [field.name for field in query.fields]
    plans = plan_fields(widget, query)
    made |= {
        "title": spec.frame.title if spec.frame.showTitle else "",
        "description": spec.frame.description if spec.frame.showDescription else "",
        "dataset": query.datasetName,
        "fields": [vars(plans[name]) for name in names],
        "raw": query.disaggregated,
        "orders": [
            {"column": order.expression.strip("`"), "falls": order.direction == "DESC"}
            for order in query.orders
        ],
    }
    if isinstance(spec, CounterSpec):
        value = spec.encodings.value.model_dump(exclude_none=True)
        value["index"] = names.index(spec.encodings.value.fieldName)
        return {**made, "kind": "counter", "value": value}
    if isinstance(spec, TableSpec):
        columns = [
            {**column.model_dump(exclude_none=True), "index": names.index(column.fieldName)}
            for column in spec.encodings.columns
        ]
        return {**made, "kind": "table", "columns": columns}
    assert isinstance(spec, get_args(ChartSpec))
    return {**made, "kind": "chart", "chart": spec.widgetType, "spec": chart(spec, query)}


def _filter(widget: Widget) -> dict[str, Any]:
    spec = widget.spec
    assert isinstance(spec, FilterSpec)
    targets = dict(filter_targets(widget))
    made = {"name": widget.name, "title": spec.frame.title, "targets": targets}
    if isinstance(spec, ValuesFilterSpec):
        return {**made, "kind": "values"}
    chosen = None if spec.selection is None else spec.selection.defaultSelection.range.model_dump()
    return {**made, "kind": "time", "chosen": chosen}


def _is_filter(widget: Widget) -> bool:
    return isinstance(widget.spec, FilterSpec)


def _own_script(state: dict[str, Any]) -> str:
    parts = "\n".join(_static(name) for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\nconst STATE = {to_json(state).decode()};\n{parts}\n}})();\n'


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _static(name: str) -> str:
    return (files("mirrorlake.dashboard") / "static" / name).read_text(encoding="utf-8")
