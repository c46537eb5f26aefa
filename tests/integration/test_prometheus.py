"""`ops/prometheus` and `ops/grafana` with a real Prometheus, which scrapes a run for two
minutes."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from mirrorlake.devtools.local.ports import free_ports
from tests.support.clusters import ClusterPair
from tests.support.control import set_configs
from tests.support.groups import commit_all
from tests.support.kafka import NewRecord, create_topic, numbered, write
from tests.support.prometheus import RARE, Prometheus, answer, prometheus
from tests.support.promql import metrics_in, ops_expressions
from tests.support.replication import finish, start_run, write_topology
from tests.support.waiting import until

LIMIT = 5_000
RULES = {name for name in ops_expressions() if name.startswith("Mirrorlake")}


@pytest.fixture
def topology(clusters: ClusterPair, topic_name: str, tmp_path: Path) -> Path:
    """A flow into a topic that takes no large record, with a short objective of lag."""
    create_topic(clusters.east, topic_name, 2)
    create_topic(clusters.west, f"east.{topic_name}", 2, max_message_bytes=str(LIMIT))
    write(clusters.east, topic_name, numbered(500, partitions=2))
    commit_all(clusters.east, topic_name, [f"of-{topic_name}"], 100, partitions=2)
    flow = {
        **{"topics": [topic_name], "groups": [f"of-{topic_name}"]},
        **{"sync_topic_configs_enabled": False, "emit_heartbeats_enabled": True},
        **{"emit_checkpoints_enabled": True, "sync_group_offsets_enabled": True},
    }
    path = write_topology(tmp_path, clusters.east, clusters.west, flow)
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["objectives"] = {"lag_seconds": 15, "latency_p99_ms": 600_000}
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@pytest.fixture
def scraped(topology: Path) -> Iterator[Prometheus]:
    port = free_ports(1)[0]
    run = start_run(topology, "--metrics", f"127.0.0.1:{port}")
    try:
        until(lambda: answer(port, "/readyz")[0] == 200, "it is ready")
        with prometheus(topology.parent, f"127.0.0.1:{port}") as server:
            yield server
    finally:
        run.send_signal(signal.SIGTERM)
        finish(run)


@pytest.mark.slow
def test_rules_fire_and_resolve_and_each_expression_answers(
    scraped: Prometheus, clusters: ClusterPair, topic_name: str
) -> None:
    until(lambda: scraped.series("up == 1"), "it is scraped")
    assert scraped.firing() == set()
    large = NewRecord(os.urandom(2 * LIMIT), partition=0)
    write(clusters.east, topic_name, [large, *numbered(4, partitions=2)])
    until(scraped.firing, "a partition that stopped", 120, {"MirrorlakeIncident", "MirrorlakeLag"})
    late = scraped.series('ALERTS{alertname="MirrorlakeLag", alertstate="firing"}')
    assert [(one["topic"], one["partition"]) for one, _ in late] == [(topic_name, "0")]
    for name, expression in ops_expressions().items():
        asked, seldom = _with_all(expression), bool(metrics_in(expression) & RARE)
        until(lambda: scraped.series(asked) or name in RULES or seldom, name)  # noqa: B023
    set_configs(clusters.west, f"east.{topic_name}", {"max.message.bytes": "1000000"})
    until(scraped.firing, "it goes on", 120, set())
    until(lambda: scraped.series("count_over_time(up[10m]) >= 120"), "two minutes", 120)
    assert [value for _, value in scraped.series("min_over_time(up[10m])")] == [1.0]
    fired = scraped.series(
        'count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[10m]))'
    )
    assert {one["alertname"] for one, _ in fired} == {"MirrorlakeIncident", "MirrorlakeLag"}


def _with_all(expression: str) -> str:
    """A panel's expression, as Grafana asks it where everything is chosen."""
    for variable, value in {"$flow": ".*", "$topic": ".*", "$__rate_interval": "1m"}.items():
        expression = expression.replace(variable, value)
    return expression
