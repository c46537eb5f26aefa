"""`run --metrics` on real clusters: what a scrape gives of flows that run, what probes get, and
what is sent by OTLP."""

import signal
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from mirrorlake.devtools.local.ports import free_ports
from mirrorlake.metrics.histogram import BOUNDS
from mirrorlake.metrics.model import METRICS
from tests.support.clusters import ClusterPair, own_topics
from tests.support.commands import exit_code
from tests.support.groups import commit_all
from tests.support.kafka import create_topic, numbered, write
from tests.support.otlp import Collector, collector
from tests.support.prometheus import RARE, answer
from tests.support.promql import ops_expressions, series_in
from tests.support.replication import finish, start_run, write_topology
from tests.support.waiting import until


def scrape(port: int) -> dict[str, Metric]:
    return {one.name: one for one in text_string_to_metric_families(answer(port, "/metrics")[1])}


def is_complete(families: Mapping[str, Metric]) -> bool:
    """Whether a sample, a heartbeat and a turn of groups on both sides have come."""
    sides = {one.labels["side"] for one in families["mirrorlake_group_lag_records"].samples}
    beats = families["mirrorlake_heartbeat_timestamp_seconds"].samples
    return sides == {"source", "target"} and bool(beats)


@pytest.fixture(scope="module")
def sent() -> Iterator[Collector]:
    with collector() as known:
        yield known


@pytest.fixture(scope="module")
def topology(
    clusters: ClusterPair, sent: Collector, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("scrape")
    create_topic(clusters.east, "scraped", partitions=2)
    write(clusters.east, "scraped", numbered(500, partitions=2))
    commit_all(clusters.east, "scraped", ["scraping"], 100, partitions=2)
    flow = {
        **{"topics": ["scraped"], "groups": ["scraping"], "emit_heartbeats_enabled": True},
        **{"emit_checkpoints_enabled": True, "sync_group_offsets_enabled": True},
    }
    with own_topics(clusters):
        path = write_topology(folder, clusters.east, clusters.west, flow)
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        document["metrics"] = {"otlp": {"endpoint": sent.endpoint, "interval_seconds": 1}}
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        yield path


def same_by_otlp(families: Mapping[str, Metric], sent: Collector) -> int:
    """How many numbers of records a collector got that are those of a scrape: counts of histograms
    too, and sums, of a topic that stands still. Fails for one that is not."""
    compared = 0
    for metric in METRICS:
        if "topic" not in metric.labels or metric.kind == "gauge":
            continue
        values = sent.series(metric.name, *metric.labels)
        for sample in families[metric.name.removesuffix("_total")].samples:
            if sample.labels["topic"] != "scraped":
                continue
            found = values[tuple(sample.labels[label] for label in metric.labels)]
            number: object = found
            if isinstance(found, tuple):
                count, total, buckets = found
                bounds = [*map(str, BOUNDS), "+Inf"]
                number = {"_count": count, "_sum": total}.get(sample.name[len(metric.name) :])
                if "le" in sample.labels:
                    number = sum(buckets[: bounds.index(sample.labels["le"]) + 1])
            assert number == pytest.approx(sample.value), (metric.name, sample)
            compared += 1
    return compared


def test_a_scrape_of_a_run(topology: Path, sent: Collector) -> None:
    port = free_ports(1)[0]
    run = start_run(topology, "--metrics", f"127.0.0.1:{port}")
    try:
        until(lambda: answer(port, "/healthz")[0] == 200, "the process lives")
        status, why = answer(port, "/readyz")
        assert status == 503 and why, "it is not ready before it has produced"
        until(lambda: answer(port, "/readyz") == (200, "ready\n"), "it is ready")
        until(lambda: is_complete(scrape(port)), "its partitions and groups were looked at")
        families = scrape(port)
    finally:
        run.send_signal(signal.SIGTERM)
        ended = finish(run)
    assert ended == 0
    names = {metric.name.removesuffix("_total") for metric in METRICS}
    assert names <= families.keys()
    assert {name for name in names if not families[name].samples} <= RARE
    series = {sample.name: sample.labels for one in families.values() for sample in one.samples}
    for name, expression in ops_expressions().items():
        for metric, labels in series_in(expression):
            if metric not in {*RARE, "up"}:
                # the job is Prometheus's own label
                assert labels - {"job"} <= series[metric].keys(), (name, metric)
    records = [
        sample.value
        for sample in families["mirrorlake_produced_records"].samples
        if sample.labels["topic"] == "scraped"
    ]
    assert sum(records) == 500
    landed = families["mirrorlake_landed_records"].samples
    assert sum(one.value for one in landed if one.labels["topic"] == "scraped") == 500
    groups = {
        (one.labels["side"], one.labels["partition"]): one.value
        for one in families["mirrorlake_group_lag_records"].samples
        if one.labels["group"] == "scraping"
    }
    assert groups["source", "0"] + groups["source", "1"] == 500 - 2 * 100
    late = families["mirrorlake_replication_latency_seconds"].samples
    assert {500.0} == {
        sample.value
        for sample in late
        if sample.name.endswith("_count") and sample.labels["topic"] == "scraped"
    }
    assert same_by_otlp(families, sent) == 2 * (2 + 2) + 2 * (len(BOUNDS) + 3)
    valued = {name for name in names if families[name].samples}
    assert {name.removesuffix("_total") for name in sent.metrics()} == valued
    assert sent.resource()["service.name"] == "mirrorlake"
    states = {
        sample.labels["worker"]: sample.labels["state"]
        for sample in families["mirrorlake_worker_state"].samples
        if sample.value
    }
    assert states["flow east->west"] == states["landing from cluster east"] == "working"


@pytest.mark.wide(
    "unit/metrics/test_metrics_sender.py::test_it_sends_at_times_and_the_last_values_at_its_end"
)
def test_a_run_with_an_end_sends_its_last_values(
    topology: Path, sent: Collector, clusters: ClusterPair
) -> None:
    write(clusters.east, "scraped", numbered(70, partitions=2))
    before = len(sent.requests)
    assert exit_code(topology, "run", "--once") == 0
    assert len(sent.requests) > before
    produced = sent.series("mirrorlake_produced_records_total", "topic", "partition")
    assert (produced["scraped", "0"], produced["scraped", "1"]) == (35, 35)


def test_an_address_in_use_ends_it_before_anything_is_done(topology: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert exit_code(topology, "run", "--metrics", address) == 2
    said = (topology.parent / "run.log").read_text(encoding="utf-8").strip().splitlines()[-1]
    assert f"metrics cannot be served at {address} (Address already in use)" in said
