"""The page in a real browser: every widget shows data, filters and refreshing act, it fits, and it
asks nobody.

With MIRRORLAKE_SCREENSHOTS=docs the pictures of docs/dashboard.md are made again (`make
screenshots`).
"""

import json
import os
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from selenium.webdriver import Chrome

from mirrorlake.dashboard.data import DashboardReader, to_json
from mirrorlake.dashboard.model import load_dashboard
from mirrorlake.dashboard.page import render
from mirrorlake.dashboard.server import DashboardServer
from mirrorlake.dashboard.specs import CounterSpec
from tests.support.browser import chromium, console_errors, prefer, resize, screenshot, wait_for
from tests.support.dashboard_server import served
from tests.support.sample_lake import TIME, empty_lake, fill

pytestmark = pytest.mark.slow

DASHBOARD = load_dashboard()
PAGES = {page.name: page for page in DASHBOARD.pages if page.pageType == "PAGE_TYPE_CANVAS"}

#: What each card of the page that is looked at shows.
CARDS = """
return [...document.querySelectorAll('.grid:not([hidden]) .card:not(.text)')].map(card => {
  const box = card.getBoundingClientRect();
  const number = card.querySelector('.number');
  return {
    name: card.id.slice('widget-'.length), kind: card.classList[1], rows: Number(card.dataset.rows),
    empty: card.querySelector('.empty').hidden ? null : card.querySelector('.empty').textContent,
    number: number && number.textContent, lines: card.querySelectorAll('tbody tr').length,
    marks: [...card.querySelectorAll('svg :is(.mark-line, .mark-area, .mark-rect, .mark-arc) path')]
      .filter(mark => mark.getBBox().width + mark.getBBox().height > 0).length,
    left: box.left, right: box.right, top: box.top, bottom: box.bottom,
    cramped: number ? number.scrollWidth > number.clientWidth + 1 : false,
  };
})
"""
#: All charts of the page that is looked at are drawn, for the rows of now.
DRAWN = """
return Boolean(document.body.dataset.filled) &&
  [...document.querySelectorAll('.grid:not([hidden]) .chart')].every(
    card => card.dataset.rows === '0' || card.querySelector('svg.marks'))
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page_file(history_data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "dashboard.html"
    path.write_text(render(DASHBOARD, history_data, None, "/data/lake"), encoding="utf-8")
    return path


def open_page(browser: Chrome, url: str, width: int = 1280, shade: str = "light") -> None:
    """Open it afresh, as somebody does who has never been there."""
    resize(browser, width)
    prefer(browser, shade)
    browser.get("about:blank")
    browser.get(url)
    drawn(browser)


def drawn(browser: Chrome) -> None:
    wait_for(browser, "all charts drawn", lambda page: page.execute_script(DRAWN))


def go_to(browser: Chrome, page: str) -> None:
    browser.execute_script("location.hash = arguments[0]", page)
    wait_for(
        browser,
        f"page {page}",
        lambda it: it.execute_script(f"return !document.getElementById('page-{page}').hidden"),
    )
    drawn(browser)


def cards(browser: Chrome) -> dict[str, dict[str, Any]]:
    return {card["name"]: card for card in browser.execute_script(CARDS)}


def choose(browser: Chrome, name: str, *values: str) -> None:
    """Tick values of a filter, and no others, as a person does."""
    browser.execute_script("document.getElementById(arguments[0]).open = true", f"filter-{name}")
    for label in browser.find_elements("css selector", f"#filter-{name} .list label"):
        box = label.find_element("tag name", "input")
        if box.is_selected() != (label.text in values):
            label.click()
    browser.execute_script("document.getElementById(arguments[0]).open = false", f"filter-{name}")


def expected(data: dict[str, Any], name: str, **chosen: Any) -> list[dict[str, Any]]:
    """The rows of a data set that filters let pass: `flow`, `topic`, `since` (ms)."""
    found = data["datasets"][name]
    rows = [
        dict(zip((item["name"] for item in found["columns"]), row, strict=True))
        for row in found["rows"]
    ]
    column = DASHBOARD.time_columns().get(name)
    since = chosen.pop("since", None)
    if since is not None and column is not None:
        rows = [row for row in rows if row[column] >= since]
    return [
        row for row in rows if all(row.get(key, value) == value for key, value in chosen.items())
    ]


def counter_value(data: dict[str, Any], widget: Any, **chosen: Any) -> float | None:
    """What a counter must show, by another hand than the page's."""
    query = widget.queries[0].query
    (field,) = query.fields
    rows = expected(data, query.datasetName, **chosen)
    if field.expression == "COUNT(`*`)":
        return len(rows)
    column = field.expression.split("`")[1]
    values = [row[column] for row in rows if row[column] is not None]
    if "DISTINCT" in field.expression:
        return len(set(values))
    if not values:
        return None
    function = {"SUM": sum, "MAX": max, "AVG": lambda found: sum(found) / len(found)}
    return float(function[field.expression[:3]](values))


def number_of(text: str) -> float:
    """The number that a counter's text says: 1,234 or 31.3M or 3.4 s."""
    word = text.split()[0].replace(",", "")
    scale = {"K": 1e3, "M": 1e6, "B": 1e9}.get(word[-1], 1)
    return float(word.rstrip("KMB")) * scale


@pytest.mark.parametrize("page", PAGES)
def test_every_widget_shows_data_and_nothing_complains(
    browser: Chrome, page_file: Path, page: str
) -> None:
    open_page(browser, f"{page_file.as_uri()}#{page}")
    shown = cards(browser)
    assert set(shown) == {
        item.widget.name for item in PAGES[page].layout if item.widget.spec is not None
    }
    for name, card in shown.items():
        assert card["empty"] is None and card["rows"] > 0, name
        if card["kind"] == "counter":
            assert card["number"] not in (None, "", "–"), name
        elif card["kind"] == "table":
            assert card["lines"] > 0, name
        else:
            assert card["marks"] > 0, name
    assert console_errors(browser) == []


def test_counters_say_what_the_tables_say(
    browser: Chrome, page_file: Path, history_data: dict[str, Any]
) -> None:
    open_page(browser, page_file.as_uri())
    since = history_data["at"] - 24 * 3600_000
    for page in PAGES:
        go_to(browser, page)
        shown = cards(browser)
        for item in PAGES[page].layout:
            if isinstance(item.widget.spec, CounterSpec):
                value = counter_value(history_data, item.widget, since=since)
                text = shown[item.widget.name]["number"]
                places = item.widget.spec.encodings.value.format.decimalPlaces.places
                rounded = pytest.approx(value, rel=0.06, abs=0.51 / 10**places)
                assert number_of(text) == rounded, (item.widget.name, text)


def test_a_written_page_asks_nobody(browser: Chrome, page_file: Path) -> None:
    browser.get_log("performance")
    open_page(browser, page_file.as_uri())
    for page in PAGES:
        go_to(browser, page)
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert asked and {url.partition("#")[0] for url in asked} <= {
        page_file.as_uri(),
        "about:blank",
        "data:,",
    }
    assert console_errors(browser) == []


@pytest.mark.parametrize("shade", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_is_legible(browser: Chrome, page_file: Path, width: int, shade: str) -> None:
    open_page(browser, page_file.as_uri(), width, shade)
    for page in PAGES:
        go_to(browser, page)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        shown = list(cards(browser).values())
        for card in shown:
            assert card["left"] >= 0 and card["right"] <= width, card["name"]
            assert not card["cramped"], card["name"]
        wide = [card for card in shown if card["kind"] != "counter"]
        for above, below in zip(wide, wide[1:], strict=False):
            if width == 390:  # one below the other
                assert below["top"] >= above["bottom"], below["name"]
        if width == 1280:
            assert len({round(card["top"]) for card in shown if card["kind"] == "counter"}) == 1, (
                "one row of counters"
            )
    canvas, ink = browser.execute_script(
        "const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]"
    )
    light = sum(int(part) for part in canvas.strip("rgb()").split(",")) > 384
    assert light == (shade == "light")
    assert contrast(canvas, ink) > 7
    assert console_errors(browser) == []


def contrast(one: str, other: str) -> float:
    """WCAG's contrast of two colours as rgb(r, g, b)."""

    def luminance(color: str) -> float:
        parts = [int(part) / 255 for part in color.strip("rgb()").split(",")]
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_button_switches_between_light_and_dark(browser: Chrome, page_file: Path) -> None:
    open_page(browser, page_file.as_uri(), shade="light")
    page = "getComputedStyle(document.body).backgroundColor"
    chart = "document.querySelector('svg text').getAttribute('fill')"
    script = f"return [{page}, {chart}]"
    before = browser.execute_script(script)
    browser.find_element("id", "theme").click()
    drawn(browser)
    dark = browser.execute_script(script)
    assert dark[0] != before[0] and dark[1] != before[1], "page and charts"
    browser.find_element("id", "theme").click()
    drawn(browser)
    assert browser.execute_script(script) == before
    browser.execute_script("localStorage.clear()")


def test_filters_act_on_numbers_charts_and_tables(
    browser: Chrome, page_file: Path, history_data: dict[str, Any]
) -> None:
    open_page(browser, page_file.as_uri())
    widgets = {item.widget.name: item.widget for item in PAGES["overview"].layout}
    everything = cards(browser)
    choose(browser, "filter_flow", "west->east")
    drawn(browser)
    one = cards(browser)
    assert one["table_flows"]["lines"] == 1 < everything["table_flows"]["lines"]
    assert one["line_lag"]["marks"] < everything["line_lag"]["marks"]
    for name in ("kpi_lag_records", "kpi_records", "kpi_incidents"):
        value = counter_value(history_data, widgets[name], flow="west->east")
        assert number_of(one[name]["number"]) == pytest.approx(value, rel=0.06), name
        assert one[name]["number"] != everything[name]["number"], name

    choose(browser, "filter_flow", "east->west", "east->lab")
    choose(browser, "filter_topic", "orders")
    value = sum(
        counter_value(history_data, widgets["kpi_records"], flow=flow, topic="orders") or 0
        for flow in ("east->west", "east->lab")
    )
    orders = cards(browser)["kpi_records"]["number"]
    assert number_of(orders) == pytest.approx(value, rel=0.06)

    browser.execute_script(
        "const select = document.querySelector('#filter-filter_time select');"
        "select.value = '1h'; select.dispatchEvent(new Event('change'))"
    )
    hour = cards(browser)["kpi_records"]["number"]
    since = history_data["at"] - 3600_000
    value = sum(
        counter_value(history_data, widgets["kpi_records"], flow=flow, topic="orders", since=since)
        or 0
        for flow in ("east->west", "east->lab")
    )
    assert number_of(hour) == pytest.approx(value, rel=0.06) and hour != orders

    choose(browser, "filter_flow", "west->east")  # which has no orders
    assert cards(browser)["kpi_records"]["empty"] == "nothing in this selection"
    browser.execute_script(
        "document.querySelectorAll('.filter .all').forEach(button => button.click())"
    )
    assert cards(browser)["kpi_lag_records"]["number"] == everything["kpi_lag_records"]["number"]
    assert console_errors(browser) == []


def server_of(reader: DashboardReader) -> DashboardServer:
    page = render(DASHBOARD, None, 1, "the lake of a test")
    # no Snapshots: each read is a new one
    return DashboardServer(page, lambda: to_json(reader.read()), 0)


def test_the_live_page_follows_the_lake(
    browser: Chrome, spark: SparkSession, tmp_path: Path
) -> None:
    lake = empty_lake(spark, tmp_path)
    with served(server_of(DashboardReader(lake, DASHBOARD))) as server:
        open_page(browser, server.url)
        assert {card["empty"] for card in cards(browser).values()} == {"no data yet"}

        fill(lake, hours=0.5)
        wait_for(
            browser,
            "rows that were appended",
            lambda page: cards(page)["kpi_lag_records"]["number"],
        )
        drawn(browser)
        browser.execute_script("window.same = document.querySelector('#widget-line_lag svg')")
        assert number_of(cards(browser)["kpi_lag_records"]["number"]) < 4_900_000

        sample = {
            "flow": ["west->east"], "topic": ["inventory"], "partition": pa.array([0], pa.int32()),
            "sampled_at": pa.array([datetime.now(timezone.utc) + timedelta(seconds=1)], TIME),
            "source_start": [0], "source_end": [6_000_000], "produced_end": [1_000_000],
            "lag_records": [5_000_000], "lag_seconds": [900.0],
        }  # fmt: skip
        lake.append("positions", pa.table(sample))
        wait_for(
            browser,
            "one more sample",
            lambda page: number_of(cards(page)["kpi_lag_records"]["number"]) > 4_900_000,
        )
        same = browser.execute_script(
            "return window.same === document.querySelector('#widget-line_lag svg')"
        )
        assert same, "the chart was filled again, not made anew"
        assert console_errors(browser) == []

    wait_for(
        browser,
        "the page notices",
        lambda page: "does not answer" in page.find_element("id", "state").text,
    )
    assert cards(browser)["kpi_lag_records"]["number"], "what was seen last stays"


def test_screenshots(browser: Chrome, page_file: Path, tmp_path: Path) -> None:
    place = Path(os.environ.get("MIRRORLAKE_SCREENSHOTS", tmp_path))
    for page, shade, width in (
        ("overview", "light", 1280),
        ("depth", "dark", 1280),
        ("groups", "light", 1280),
        ("audit", "light", 1280),
        ("overview", "dark", 390),
    ):
        open_page(browser, f"{page_file.as_uri()}#{page}", width, shade)
        if page == "depth":
            choose(browser, "filter_flow", "east->west")
            drawn(browser)
        name = f"dashboard-{page}{'-phone' if width == 390 else ''}.png"
        screenshot(browser, place / name, scale=0.62)  # as wide as a page of documentation shows it
        assert 10_000 < (place / name).stat().st_size < 160_000, name
