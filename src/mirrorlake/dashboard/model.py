"""Reads and checks the dashboard's file. An error names the widget that cannot be shown, and why.

Beyond types it checks the rule without which a widget shows no data: each `fieldName` in a widget's
encodings is the `name` of a field of its query.
"""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mirrorlake.dashboard.encodings import Part
from mirrorlake.dashboard.parts import (
    Dataset,
    FieldPlan,
    Page,
    Query,
    UiSettings,
    Widget,
    parse_expression,
)
from mirrorlake.dashboard.specs import FilterSpec, RangeFilterSpec
from mirrorlake.errors import InputError

#: Columns of the grid GRID_V1.
COLUMNS = 12
_FILE = "replication.lvdash.json"


class Dashboard(Part):
    """The whole file."""

    datasets: tuple[Dataset, ...]
    pages: tuple[Page, ...]
    uiSettings: UiSettings

    def widgets(self) -> Iterator[Widget]:
        """All widgets, page by page."""
        for page in self.pages:
            for placed in page.layout:
                yield placed.widget

    def time_columns(self) -> dict[str, str]:
        """The column that a time filter acts on, by dataset."""
        return {
            dataset: column
            for widget in self.widgets()
            if isinstance(widget.spec, RangeFilterSpec)
            for dataset, column in filter_targets(widget)
        }


def plan_fields(widget: Widget, query: Query) -> dict[str, FieldPlan]:
    """The plans of a query's fields, by name. Raises InputError for an unknown expression."""
    plans = {}
    for query_field in query.fields:
        try:
            plans[query_field.name] = parse_expression(query_field.expression)
        except ValueError as error:
            raise InputError(
                f"widget {widget.name} of the dashboard cannot be shown: {error}"
            ) from error
    return plans


def filter_targets(widget: Widget) -> list[tuple[str, str]]:
    """The (dataset, column) pairs that a filter acts on."""
    spec = widget.spec
    if not isinstance(spec, FilterSpec):
        return []
    queries = {named.name: named.query for named in widget.queries}
    targets = []
    for filter_field in spec.encodings.fields:
        query = queries[filter_field.queryName]
        plan = plan_fields(widget, query)[filter_field.fieldName]
        targets.append((query.datasetName, plan.column))
    return targets


def load_dashboard(text: str | None = None) -> Dashboard:
    """Load the dashboard from a file's text, by default from the bundle's file.

    Raises InputError, with the widget's name, if it cannot be shown as on Databricks.
    """
    content = shipped_text() if text is None else text
    try:
        dashboard = Dashboard.model_validate_json(content)
    except ValidationError as error:
        raise InputError(f"the dashboard cannot be shown: {_sentence(content, error)}") from error
    _check(dashboard)
    return dashboard


def shipped_text() -> str:
    """The text of the bundle's file: from the package of a wheel, else from the checkout."""
    packaged = files("mirrorlake.dashboard") / _FILE
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    checkout = Path(__file__).parents[3] / "bundles" / "dashboards" / _FILE
    try:
        return checkout.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"the dashboard's file is missing from this installation ({checkout})"
        ) from error


def _check(dashboard: Dashboard) -> None:
    datasets = {dataset.name for dataset in dashboard.datasets}
    _refuse_twice("dataset", [dataset.name for dataset in dashboard.datasets])
    _refuse_twice("page", [page.name for page in dashboard.pages])
    _refuse_twice("widget", [placed.name for placed in dashboard.widgets()])
    for widget in dashboard.widgets():
        if (widget.spec is None) == (widget.multilineTextboxSpec is None):
            raise _wrong(widget, "it must have either a spec or a text")
        if widget.spec is None:
            continue
        by_query = {named.name: named.query for named in widget.queries}
        if not by_query:
            raise _wrong(widget, "it has no query")
        for query in by_query.values():
            if query.datasetName not in datasets:
                raise _wrong(widget, f"there is no dataset {query.datasetName}")
            plan_fields(widget, query)
        _hold_law(widget, by_query)


def _hold_law(widget: Widget, queries: dict[str, Query]) -> None:
    """Check that each fieldName is the name of a field of its query."""
    spec = widget.spec
    if isinstance(spec, FilterSpec):
        for filter_field in spec.encodings.fields:
            query = queries.get(filter_field.queryName)
            if query is None:
                raise _wrong(widget, f"it has no query {filter_field.queryName}")
            if filter_field.fieldName not in {field.name for field in query.fields}:
                raise _wrong(
                    widget,
                    f"no field of its query {filter_field.queryName} is named "
                    f"{filter_field.fieldName}",
                )
        return
    if len(queries) != 1 or spec is None:
        raise _wrong(widget, "it must have one query")
    (query,) = queries.values()
    names = {field.name for field in query.fields}
    for name in field_names(spec.encodings.model_dump()):
        if name not in names:
            raise _wrong(widget, f"no field of its query is named {name}")


def field_names(encodings: Any) -> Iterator[str]:
    """Yield every fieldName in an encoding, at any depth."""
    if isinstance(encodings, dict):
        if "fieldName" in encodings:
            yield encodings["fieldName"]
        encodings = list(encodings.values())
    if isinstance(encodings, list | tuple):
        for encoding in encodings:
            yield from field_names(encoding)


def _refuse_twice(kind: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"the dashboard cannot be shown: two {kind}s are named {name}")


def _wrong(widget: Widget, why: str) -> InputError:
    return InputError(f"widget {widget.name} of the dashboard cannot be shown: {why}")


def _sentence(content: str, error: ValidationError) -> str:
    """The first error, with the name of its widget or dataset."""
    first = error.errors()[0]
    place: Any = None
    name = ""
    try:
        place = json.loads(content)
    except json.JSONDecodeError:
        return str(first["msg"])
    for step in first["loc"]:
        try:
            place = place[step]
        except (KeyError, IndexError, TypeError):
            continue
        if isinstance(place, dict) and "name" in place:
            name = f"{place['name']}: "
    where = ".".join(str(step) for step in first["loc"][-3:])
    return f"{name}{where}: {first['msg']}"
