"""docs/metrics.md lists every metric as a scrape gives it."""

import re
from pathlib import Path

from mirrorlake.metrics.model import METRICS

PAGE = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")


def test_every_metric_is_on_the_page() -> None:
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in PAGE.partition("| metric | type |")[2].splitlines()
        if line.startswith("| `mirrorlake_")
    ]
    told = [
        (name.strip("`"), kind, re.findall(r"`(\w+)`", labels)) for name, kind, labels, _ in rows
    ]
    assert told == [(metric.name, metric.kind, list(metric.labels)) for metric in METRICS]
    assert [text for *_, text in rows] == [metric.text for metric in METRICS]
