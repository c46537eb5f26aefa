"""What doctor says of where metrics are served and sent."""

import socket

import pytest

from mirrorlake.config.metrics import Metrics
from mirrorlake.library import doctor_metrics
from mirrorlake.library.doctor_metrics import metrics_checks


def test_nothing_is_looked_at_where_nothing_is_asked_for() -> None:
    assert not [*metrics_checks(Metrics())]


def test_the_port_of_the_metrics() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        metrics = Metrics(address=f"127.0.0.1:{listening.getsockname()[1]}")
        (taken,) = metrics_checks(metrics)
    (free,) = metrics_checks(metrics)
    assert (taken.state, free.state) == ("note", "good") and taken.fix


def test_the_collector() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        metrics = Metrics(otlp=f"http://127.0.0.1:{listening.getsockname()[1]}")  # type: ignore[arg-type]
        (there,) = metrics_checks(metrics)
    (away,) = metrics_checks(metrics)
    assert (there.state, away.state) == ("good", "note")
    assert "Connection refused" in away.sentence and "`metrics.otlp`" in away.fix


@pytest.mark.parametrize(
    ("name", "metrics", "line"),
    [
        ("installed", Metrics(address="127.0.0.1:0"), "pip install 'mirrorlake[metrics]'"),
        ("_can_send", Metrics(otlp="http://127.0.0.1:1"), "pip install 'mirrorlake[otlp]'"),  # type: ignore[arg-type]
    ],
)
def test_what_is_not_installed_is_the_line_to_type(
    monkeypatch: pytest.MonkeyPatch, name: str, metrics: Metrics, line: str
) -> None:
    monkeypatch.setattr(doctor_metrics, name, lambda *_: False)
    (check,) = metrics_checks(metrics)
    assert check.state == "bad" and line in check.sentence
