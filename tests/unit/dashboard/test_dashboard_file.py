"""The dashboard's file: the law that makes widgets show data, full rows, known tables; and what is
refused by name."""

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import altair as alt
import pytest

from mirrorlake.config.objectives import Objectives
from mirrorlake.dashboard.data import check_query
from mirrorlake.dashboard.model import (
    COLUMNS,
    field_names,
    filter_targets,
    load_dashboard,
    shipped_text,
)
from mirrorlake.dashboard.page import document
from mirrorlake.dashboard.parts import FieldPlan, parse_expression
from mirrorlake.errors import InputError
from mirrorlake.lake.definitions import TABLES, VIEWS

DOCUMENT: dict[str, Any] = json.loads(shipped_text())
PAGES = DOCUMENT["pages"]
CANVASES = [page for page in PAGES if page["pageType"] == "PAGE_TYPE_CANVAS"]
WIDGETS = [item["widget"] for page in PAGES for item in page["layout"]]
WITH_SPEC = [widget for widget in WIDGETS if "spec" in widget]
#: What Databricks takes.
VERSIONS = {
    "counter": 2,
    "table": 2,
    "filter-multi-select": 2,
    "filter-date-range-picker": 2,
    "line": 3,
    "bar": 3,
    "area": 3,
    "pie": 3,
    "heatmap": 3,
    "combo": 1,
}


def name_of(item: dict[str, Any]) -> str:
    return str(item["name"])


@pytest.mark.parametrize("widget", WITH_SPEC, ids=name_of)
def test_every_field_name_is_a_field_of_the_query(widget: dict[str, Any]) -> None:
    fields = {field["name"] for query in widget["queries"] for field in query["query"]["fields"]}
    used = set(field_names(widget["spec"]["encodings"]))
    assert used and used <= fields
    assert fields == used, "a field that is asked for and not shown"


@pytest.mark.parametrize("widget", WITH_SPEC, ids=name_of)
def test_versions_and_words(widget: dict[str, Any]) -> None:
    spec = widget["spec"]
    assert spec["version"] == VERSIONS[spec["widgetType"]]
    frame = spec["frame"]
    assert frame["showTitle"] and frame["title"]
    if not spec["widgetType"].startswith("filter"):
        assert frame["showDescription"] and len(frame["description"]) > 10


@pytest.mark.parametrize("page", CANVASES, ids=name_of)
def test_rows_are_full_and_nothing_overlaps(page: dict[str, Any]) -> None:
    cells = Counter(
        (x, y)
        for item in page["layout"]
        for x in range(item["position"]["x"], item["position"]["x"] + item["position"]["width"])
        for y in range(item["position"]["y"], item["position"]["y"] + item["position"]["height"])
    )
    height = 1 + max(y for _, y in cells)
    assert set(cells) == {(x, y) for x in range(COLUMNS) for y in range(height)}
    assert set(cells.values()) == {1}


@pytest.mark.parametrize("dataset", DOCUMENT["datasets"], ids=name_of)
def test_datasets_read_bare_names_that_we_ship(dataset: dict[str, Any]) -> None:
    query = "".join(dataset["queryLines"])
    made_here = set(re.findall(r"\b(?:WITH|,)\s*(\w+) AS \(", query))
    read = set(re.findall(r"\b(?:FROM|JOIN)\s+([\w.`]+)", query)) - made_here
    assert read and read <= {*TABLES, *VIEWS}
    assert ":" not in query.replace("->", ""), "a parameter: filters go by fields"


def test_each_dataset_is_shown_and_names_are_unique() -> None:
    names = [name_of(item) for item in (*DOCUMENT["datasets"], *PAGES, *WIDGETS)]
    assert len(names) == len(set(names))
    shown = {query["query"]["datasetName"] for widget in WITH_SPEC for query in widget["queries"]}
    assert shown == {dataset["name"] for dataset in DOCUMENT["datasets"]}


def test_every_kind_of_widget_is_there() -> None:
    kinds = Counter(widget["spec"]["widgetType"] for widget in WITH_SPEC)
    assert set(kinds) == set(VERSIONS)


def test_filters_know_their_columns() -> None:
    found = load_dashboard()
    filters = {
        widget.name: dict(filter_targets(widget))
        for widget in found.widgets()
        if filter_targets(widget)
    }
    assert set(filters) == {"filter_flow", "filter_topic", "filter_time"}
    assert set(filters["filter_flow"]) == {dataset.name for dataset in found.datasets}
    assert found.time_columns() == filters["filter_time"]


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("`flow`", FieldPlan("plain", "flow")),
        ("SUM(`n`)", FieldPlan("sum", "n")),
        ("AVG(`n`)", FieldPlan("avg", "n")),
        ("COUNT(`*`)", FieldPlan("count", "*")),
        ("COUNT(DISTINCT `g`)", FieldPlan("countdistinct", "g")),
        ('DATE_TRUNC("HOUR", `at`)', FieldPlan("trunc", "at", "HOUR")),
    ],
)
def test_expressions(text: str, plan: FieldPlan) -> None:
    assert parse_expression(text) == plan


@pytest.mark.parametrize(
    "text", ["flow", "SUM(`*`)", "CAST(`n` AS INT)", "MEASURE(`m`)", "SUM(`a`) / 2", "SUM(`a`"]
)
def test_expressions_that_databricks_would_not_take(text: str) -> None:
    with pytest.raises(ValueError, match="put the logic into a view"):
        parse_expression(text)


def widget_of(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = [item["widget"] for page in document["pages"] for item in page["layout"]]
    return next(widget for widget in found if widget["name"] == name)


def unknown_type(document: dict[str, Any]) -> None:
    widget_of(document, "heat_lag")["spec"]["widgetType"] = "sankey"


def other_version(document: dict[str, Any]) -> None:
    widget_of(document, "heat_lag")["spec"]["version"] = 1


def unknown_key(document: dict[str, Any]) -> None:
    widget_of(document, "heat_lag")["spec"]["encodings"]["size"] = {"fieldName": "topic"}


def other_field(document: dict[str, Any]) -> None:
    widget_of(document, "heat_lag")["spec"]["encodings"]["color"]["fieldName"] = "sum(lag_records)"


def other_expression(document: dict[str, Any]) -> None:
    widget_of(document, "heat_lag")["queries"][0]["query"]["fields"][2]["expression"] = (
        "MEDIAN(`lag_records`)"
    )


def other_dataset(document: dict[str, Any]) -> None:
    widget_of(document, "heat_lag")["queries"][0]["query"]["datasetName"] = "ds_nowhere"


def no_query(document: dict[str, Any]) -> None:
    widget_of(document, "heat_lag")["queries"] = []


@pytest.mark.parametrize(
    "spoil",
    [
        unknown_type,
        other_version,
        unknown_key,
        other_field,
        other_expression,
        other_dataset,
        no_query,
    ],
)
def test_what_cannot_be_drawn_is_an_error_that_names_the_widget(
    spoil: Callable[[dict[str, Any]], None],
) -> None:
    document = json.loads(shipped_text())
    spoil(document)
    with pytest.raises(InputError, match="heat_lag"):
        load_dashboard(json.dumps(document))


def test_two_widgets_of_one_name() -> None:
    document = json.loads(shipped_text())
    widget_of(document, "kpi_incidents")["name"] = "kpi_groups"
    with pytest.raises(InputError, match="two widgets are named kpi_groups"):
        load_dashboard(json.dumps(document))


def test_no_json_at_all() -> None:
    with pytest.raises(InputError, match="cannot be shown"):
        load_dashboard("{")


@pytest.mark.parametrize(
    "query",
    ["DELETE FROM records", "SELECT 1; DROP TABLE records", "  insert into records select 1", ""],
)
def test_datasets_only_read(query: str) -> None:
    shipped = load_dashboard().datasets[0]
    with pytest.raises(InputError, match="one SELECT statement"):
        check_query(shipped.model_copy(update={"queryLines": (query,)}))


def test_colours_of_numbers_begin_at_the_default_objectives_and_at_half_of_them() -> None:
    """Databricks compares with constants only; docs/dashboard.md says which, and what goes by the
    file's objectives."""
    held = Objectives()
    limits = {
        "lag_seconds": held.lag_seconds,
        "latency_p99_s": held.latency_p99_ms / 1000,
        "heartbeat_age_seconds": held.heartbeat_seconds,
    }
    seen = set()
    for spec in (widget["spec"] for widget in WITH_SPEC):
        counter = spec["widgetType"] == "counter"
        for field in (
            [spec["encodings"]["value"]] if counter else spec["encodings"].get("columns", ())
        ):
            name = re.sub(r"\w+\((\w+)\)", r"\1", field["fieldName"])
            if name in limits and "style" in field:
                seen.add((name, counter))
                found = [
                    float(rule["condition"]["operand"]["value"]) for rule in field["style"]["rules"]
                ]
                assert found == [limits[name], limits[name] / 2][: 2 if counter else 1], field[
                    "fieldName"
                ]
    assert seen == {(name, counter) for name in limits for counter in (True, False)}


def test_what_is_drawn_is_vega_lite() -> None:
    """Drawing leaves that unchecked, which takes long."""
    drawn = [
        widget["spec"]
        for page in document(load_dashboard())["pages"]
        for widget in page["widgets"]
        if widget["kind"] == "chart"
    ]
    assert len(drawn) >= 10
    for spec in drawn:
        alt.Chart.from_dict(spec, validate=True)
