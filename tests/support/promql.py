"""What expressions of PromQL name: metrics, and the labels that they are asked for by."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

OPS = Path(__file__).parents[2] / "ops"
_METRIC = re.compile(r"\b(?:mirrorlake|process)_[a-z0-9_]+|\bup\b")
_TEXT = re.compile(r'"[^"]*"')


def metrics_in(expression: str) -> set[str]:
    """Every metric, histograms with the ends of their series."""
    return set(_METRIC.findall(_TEXT.sub('""', expression)))


def labels_in(expression: str) -> set[str]:
    """Every label that is selected, or grouped by."""
    plain = _TEXT.sub('""', expression)
    grouped = re.findall(r"\b(?:by|without|on|ignoring|group_left)\s*\(([^)]*)\)", plain)
    selected = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"\"", plain)
    names = (name.strip() for group in grouped for name in group.split(","))
    return {*selected, *(name for name in names if name)}


def series_in(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Each metric with the labels that it is selected by, in braces right behind it."""
    plain = _TEXT.sub('""', expression)
    for match in _METRIC.finditer(plain):
        braces = re.match(r"\{([^}]*)\}", plain[match.end() :])
        yield match[0], set(re.findall(r"(\w+)\s*(?:=|!)", braces[1])) if braces else set()


def ops_expressions() -> dict[str, str]:
    """Every expression of `ops/prometheus` and `ops/grafana`, by what it is called there."""
    rules = yaml.safe_load((OPS / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
    dashboard = json.loads((OPS / "grafana" / "mirrorlake.json").read_text(encoding="utf-8"))
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    return {
        **{rule["alert"]: rule["expr"] for rule in alerts},
        **{
            f"{panel['title']} {target['refId']}": target["expr"]
            for panel in dashboard["panels"]
            for target in panel.get("targets", ())
        },
    }
