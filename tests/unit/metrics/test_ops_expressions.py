"""`ops/prometheus` and `ops/grafana`: each expression names metrics and labels that are scraped."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from mirrorlake.metrics.model import METRICS
from tests.support.promql import OPS, labels_in, metrics_in, ops_expressions, series_in

RULES = yaml.safe_load((OPS / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((OPS / "grafana" / "mirrorlake.json").read_text(encoding="utf-8"))
VIEW = (Path(__file__).parents[3] / "src/mirrorlake/sql/views/alerts.sql").read_text("utf-8")
#: Of the view: what is only known to the tables.
NOT_SCRAPED = {"map_gap"}
#: What Prometheus adds, and what its client says of any process.
OF_PROMETHEUS = {"up": ("job", "instance"), "process_start_time_seconds": ("job", "instance")}
ADDED = {"job", "instance"}


def series() -> dict[str, set[str]]:
    """The labels of every series of a scrape, by name."""
    known = {name: {*labels} for name, labels in OF_PROMETHEUS.items()}
    for metric in METRICS:
        ends = ("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",)
        for end in ends:
            of_buckets = {"le"} if end == "_bucket" else set()
            known[metric.name + end] = {*metric.labels, *ADDED, *of_buckets}
    return known


@pytest.mark.parametrize("name", ops_expressions())
def test_what_it_names_is_scraped(name: str) -> None:
    expression = ops_expressions()[name]
    known = series()
    assert metrics_in(expression) and metrics_in(expression) <= known.keys()
    for metric, labels in series_in(expression):
        assert labels <= known[metric], metric
    everything = set().union(*(known[metric] for metric in metrics_in(expression)))
    assert labels_in(expression) <= everything
    assert expression.count("(") == expression.count(")")


def test_the_check_sees_a_wrong_name() -> None:
    text = 'sum by (flow) (rate(mirrorlake_records_total{flow="a, x=1", topik=~"b"}[5m]))'
    assert metrics_in(text) == {"mirrorlake_records_total"}
    assert list(series_in(text)) == [("mirrorlake_records_total", {"flow", "topik"})]
    assert labels_in(text) == {"flow", "topik"}


def test_each_alert_of_the_view_is_one_of_prometheus() -> None:
    kinds = {rule["labels"]["alert"] for rule in ALERTS}
    assert kinds == {kind for kind in kinds if f"'{kind}'" in VIEW}
    told = set(
        "stuck lag hanging_transaction latency heartbeat not_running incident map_gap".split()
    )
    assert all(f"'{kind}'" in VIEW for kind in told)
    assert told - kinds == NOT_SCRAPED


def test_every_alert_says_what_it_is_about() -> None:
    for rule in ALERTS:
        assert {"summary", "description"} <= rule["annotations"].keys(), rule["alert"]
        assert rule["labels"]["severity"] in ("warning", "critical")


def test_every_metric_is_on_the_dashboard() -> None:
    shown = set().union(
        *(metrics_in(t["expr"]) for panel in DASHBOARD["panels"] for t in panel.get("targets", ()))
    )
    known = {metric.name + ("_bucket" if metric.kind == "histogram" else "") for metric in METRICS}
    assert known <= shown


def test_each_alert_fires_and_ends_in_prometheus() -> None:
    """By promtool (Debian's package prometheus), where it is installed."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    folder = OPS / "prometheus"
    done = subprocess.run(
        [promtool, "test", "rules", "alerts_test.yml"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_tried() -> None:
    tests = yaml.safe_load((OPS / "prometheus" / "alerts_test.yml").read_text(encoding="utf-8"))
    tried: dict[str, list[bool]] = {}
    for one in tests["tests"][0]["alert_rule_test"]:
        tried.setdefault(one["alertname"], []).append(bool(one["exp_alerts"]))
    assert tried.keys() == {rule["alert"] for rule in ALERTS}
    assert all({True, False} == {*fires} for fires in tried.values())


def test_the_page_about_mirrormaker_names_what_there_is() -> None:
    page = (OPS / "mirrormaker" / "README.md").read_text(encoding="utf-8")
    assert metrics_in(page) <= series().keys() | {metric.name for metric in METRICS}
    for attribute in ("record-count", "byte-rate", "record-age-ms", "replication-latency-ms"):
        assert f"`{attribute}`" in page
