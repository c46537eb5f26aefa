"""docs/cost.md: the block of arithmetic runs, and the tables say what it gives for their inputs."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from mirrorlake.config.idle import STORE_SECONDS
from mirrorlake.lake.store_lock import RENEW_SECONDS
from mirrorlake.landing.land import SESSION_TRIGGER_SECONDS
from mirrorlake.library.capacity_figures import FIGURES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cost.md").read_text(encoding="utf-8")
RECORDS, PARTITIONS, RETENTION, CORES, WORKERS = 100_000_000, 60, 7, 4, 2


@pytest.fixture(scope="module")
def arithmetic() -> dict[str, Callable[..., float]]:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    made: dict[str, Callable[..., float]] = {}
    exec(block, made)
    return made


def row(start: str) -> list[str]:
    """The cells of the table row that begins so."""
    (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def figure(text: str) -> float:
    match = re.search(r"[\d.,]+", text)
    assert match is not None, text
    return float(match[0].replace(",", ""))


def measured() -> tuple[float, float, float]:
    """CPU s a million in a catalog, bytes landed and bytes after maintain, of records of 120 B."""
    landed, compacted = row("bytes a record in the stage")[0].split("/")
    return (
        figure(row("CPU s a million, in tables of a catalog")[0]),
        figure(landed),
        figure(compacted),
    )


def test_the_worked_day(arithmetic: dict[str, Callable[..., float]]) -> None:
    cpu, _, stored = measured()
    assumed = re.search(r"with (\d+) minutes a start and (\d+) s a run", PAGE)
    assert assumed is not None
    start, once = (float(text) for text in assumed.groups())
    for start_of_row, seconds in (
        ("cores that are needed, with a batch every 1.5 s", SESSION_TRIGGER_SECONDS),
        ("the same, with a batch every 5 s", 5.0),
    ):
        assert figure(row(start_of_row)[0]) == pytest.approx(
            arithmetic["cores"](RECORDS / 86_400, cpu, seconds), abs=0.01
        )
    continuous = arithmetic["node_hours_continuous"](WORKERS)
    scheduled = arithmetic["node_hours_scheduled"](WORKERS, 96, RECORDS, cpu, CORES, start, once)
    assert [figure(cell) for cell in row("node-hours a day")] == pytest.approx(
        [continuous, scheduled], abs=0.5
    )
    hours = arithmetic["warehouse_hours"](48, 5)
    assert [figure(cell) for cell in row("the alert: warehouse-hours a day")] == pytest.approx(
        [hours] * 2, abs=0.05
    )
    stage = arithmetic["stage_gb"](RECORDS, stored, RETENTION)
    assert [figure(cell) for cell in row("stage, GB")] == pytest.approx([stage] * 2, rel=0.01)
    books = [
        arithmetic["books_gb"](PARTITIONS, 86_400 / 5),
        arithmetic["books_gb"](PARTITIONS, 96, sample_seconds=900),
    ]
    assert [figure(cell) for cell in row("positions, latency, map")] == pytest.approx(
        books, abs=0.06
    )
    total = [figure(cell) for cell in row("storage a month")]
    assert total == pytest.approx([stage + books[0], stage + books[1]], rel=0.01)


def test_a_flow_without_many_records_takes_what_capacity_says(
    arithmetic: dict[str, Callable[..., float]],
) -> None:
    rest, batches = (FIGURES[name].values["catalog"] for name in ("idle_cores", "batches_cores"))
    for seconds in (SESSION_TRIGGER_SECONDS, 60.0):
        expected = rest + batches * SESSION_TRIGGER_SECONDS / seconds
        assert arithmetic["cores"](0, 0, seconds, 1.0) == pytest.approx(expected)


def test_the_warehouse_sleeps_as_the_table_says(
    arithmetic: dict[str, Callable[..., float]],
) -> None:
    for evaluations, start in (
        (288, "`0 0/5 "),
        (96, "`0 0/15 "),
        (48, "`0 0/30 "),
        (24, "`0 0 * "),
    ):
        listed, *awake = (figure(cell) for cell in row(start))
        assert listed == evaluations
        wanted = [arithmetic["warehouse_hours"](evaluations, minutes) for minutes in (1, 5, 10)]
        assert awake == pytest.approx(wanted, abs=0.05)


def test_requests_of_a_store_follow_its_pace(arithmetic: dict[str, Callable[..., float]]) -> None:
    for seconds in (10, 60, 240):
        assert figure(row(f"`{seconds}` |")[0]) == arithmetic["store_puts"](seconds)
    assert STORE_SECONDS == 120
    assert figure(row("`120` (default)")[0]) == arithmetic["store_puts"]()
    assert RENEW_SECONDS == 100
    puts, gets, _ = row("counted")
    assert figure(puts) == pytest.approx(arithmetic["store_puts"](), rel=0.2)


def test_the_default_is_the_bundles() -> None:
    root = yaml.safe_load((ROOT / "databricks.yml").read_text(encoding="utf-8"))
    schedule, workers = (
        root["variables"][name]["default"] for name in ("alert_schedule", "workers")
    )
    assert f"| `{schedule}` (default) |" in PAGE and workers == WORKERS


def test_no_price_is_named() -> None:
    assert not re.search(r"[$€£]\s?\d|\d\s?(?:USD|EUR|dollars?|cents?)\b", PAGE)
