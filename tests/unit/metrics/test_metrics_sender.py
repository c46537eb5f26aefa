"""What a collector of OpenTelemetry gets of a run."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from mirrorlake.config.metrics import Otlp
from mirrorlake.devtools.local.ports import free_ports
from mirrorlake.metrics.facts import Facts
from mirrorlake.metrics.histogram import BOUNDS
from mirrorlake.metrics.model import families
from mirrorlake.metrics.sender import sending
from tests.support.metrics_facts import FACTS, FLOW
from tests.support.otlp import Collector, collector

KINDS = {"counter": "sum", "gauge": "gauge", "histogram": "histogram"}


def sent(to: Collector, facts: Callable[[], Facts] = lambda: FACTS, bound: int = 1000) -> None:
    """Send once, at the end."""
    with sending(Otlp(endpoint=to.endpoint), facts, bound):
        pass


def waited(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.05)


def test_every_value_of_a_scrape_is_sent() -> None:
    began = time.time_ns()
    with collector() as known:
        sent(known)
    assert known.paths == ["/v1/metrics"]
    metrics = known.metrics()
    valued = {family.metric.name: family for family in families(FACTS, 1000) if family.series}
    assert metrics.keys() == valued.keys()
    for name, family in valued.items():
        values = {
            labels: value
            if isinstance(value, int | float)
            else (value.count, value.total, value.counts)
            for labels, value in family.series.items()
        }
        assert known.series(name, *family.metric.labels) == values, name
        assert metrics[name].WhichOneof("data") == KINDS[family.metric.kind]
        assert metrics[name].description == family.metric.text
    total = metrics["mirrorlake_produced_records_total"].sum
    assert total.is_monotonic and total.aggregation_temporality == 2, "cumulative"
    late = metrics["mirrorlake_replication_latency_seconds"].histogram
    assert late.aggregation_temporality == 2
    (point,) = late.data_points
    assert tuple(point.explicit_bounds) == BOUNDS
    assert not point.HasField("min") and not point.HasField("max")
    assert began <= point.start_time_unix_nano <= point.time_unix_nano <= time.time_ns()


def test_units_are_those_of_names() -> None:
    with collector() as known:
        sent(known)
    units = {name: metric.unit for name, metric in known.metrics().items()}
    assert units["mirrorlake_produced_bytes_total"] == "By"
    assert units["mirrorlake_replication_latency_seconds"] == units["mirrorlake_lag_seconds"] == "s"
    assert units["mirrorlake_produced_records_total"] == ""


def test_it_says_who_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=abc")
    with collector() as known:
        sent(known)
        said = known.resource()
        monkeypatch.setenv("OTEL_SERVICE_NAME", "mirror-of-orders")
        sent(known)
    assert said["service.name"] == "mirrorlake"
    assert said["deployment.environment.name"] == "prod"
    assert said["service.instance.id"]
    assert known.resource()["service.name"] == "mirror-of-orders"
    assert {one["api-key"] for one in known.headers} == {"abc"}


def test_there_are_no_more_series_than_are_wanted() -> None:
    with collector() as known:
        sent(known, bound=1)
    records = known.series("mirrorlake_produced_records_total", "flow", "topic", "partition")
    assert records == {("east->west", "orders", ""): 7}


def test_it_sends_at_times_and_the_last_values_at_its_end() -> None:
    now = [FACTS]
    with collector() as known:
        with sending(Otlp(endpoint=known.endpoint, interval_seconds=1), lambda: now[0], 1000):
            waited(lambda: len(known.requests) >= 2)
            now[0] = replace(FACTS, flows={"east->west": replace(FLOW, transactions=99)})
        assert known.series("mirrorlake_transactions_total", "flow") == {("east->west",): 99}


def test_a_collector_that_refuses_is_said_once_and_holds_up_no_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    with collector() as known:
        known.status = 403
        with sending(Otlp(endpoint=known.endpoint, interval_seconds=1), lambda: FACTS, 1000):
            waited(lambda: caplog.messages)
            refused = list(caplog.messages)
            known.status = 200
            waited(lambda: len(caplog.messages) > 1)
        assert known.requests
    (sentence,) = refused
    assert sentence.startswith(f"metrics could not be sent to {known.endpoint}/v1/metrics: ")
    assert "403" in sentence
    assert caplog.messages[1:] == [f"metrics are sent to {known.endpoint}/v1/metrics again"]


def test_a_collector_that_is_away_is_one_sentence(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")  # seconds, for one more attempt
    (port,) = free_ports(1)
    with sending(Otlp(endpoint=f"http://127.0.0.1:{port}"), lambda: FACTS, 1000):
        pass
    assert caplog.messages == [
        f"metrics could not be sent to http://127.0.0.1:{port}/v1/metrics: [Errno 111] Connection "
        "refused"
    ]


def test_what_fails_in_a_turn_is_logged_and_the_next_one_is_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    turns = []

    def facts() -> Facts:
        turns.append(1)
        if len(turns) == 1:
            raise ValueError("nothing is known")
        return FACTS

    with (
        collector() as known,
        sending(Otlp(endpoint=known.endpoint, interval_seconds=1), facts, 1000),
    ):
        waited(lambda: known.requests)
    assert "nothing is known" in caplog.text
    assert "metrics by OTLP" not in [thread.name for thread in threading.enumerate()]
