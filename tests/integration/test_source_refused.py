"""Something refuses in the name of a source that is lost: it is gone all the same, and what is
staged goes on."""

import json
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from mirrorlake.errors import ClusterUnusable
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, read_topic, write
from tests.support.replication import FLOW, replicate_once, write_topology
from tests.support.traps import closes_behind_tls, garbage, out_of_date, trap

pytestmark = pytest.mark.slow

#: Nobody listens where tokens are to be had.
NO_TOKEN = {
    "protocol": "SASL_PLAINTEXT",
    "mechanism": "OAUTHBEARER",
    "token_endpoint": "http://127.0.0.1:1/token",
    "client_id": "mirrorlake",
    "client_secret": "of nobody",
}


def edit(topology: Path, east: dict[str, object] | None = None, **flow: object) -> None:
    """Change the source's address, and settings of the flow."""
    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    document["clusters"]["east"].update(east or {})
    document["flows"][FLOW].update(flow)
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")


def test_a_source_that_refuses_is_gone_and_what_is_staged_goes_on(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(100))
    group = f"{topic_name}-app"
    consumer = Consumer(
        {"bootstrap.servers": clusters.east, "group.id": group, "enable.auto.commit": False}
    )
    consumer.commit(offsets=[TopicPartition(topic_name, 0, 40)], asynchronous=False)
    consumer.close()
    settings = {
        "topics": [topic_name],
        "groups": [group],
        "emit_checkpoints_enabled": True,
        "provenance": "headers",
    }
    topology = write_topology(tmp_path, clusters.east, clusters.west, settings)
    replicate_once(spark, topology)
    write(clusters.east, topic_name, numbered(50, start=100))
    edit(topology, paused=True)
    replicate_once(spark, topology)  # lands only
    assert len(read_topic(clusters.west, f"east.{topic_name}")[0]) == 100

    def failover(
        kind: Callable[[Path], Callable[..., None]], security: Mapping[str, str], said: str
    ) -> None:
        with trap(kind(tmp_path)) as address:
            edit(topology, {"bootstrap_servers": address, "security": security}, paused=False)
            command = ["-c", str(topology), "failover", "--flow", FLOW, "--all-groups", "--json"]
            result = CliRunner().invoke(app, command)
            assert result.exit_code == 0, (kind, result.output, result.exception)
            found = json.loads(result.stdout)
            assert found["complete"] and said in found["origin_unreachable"], found
            assert [(row["group"], row["to_position"]) for row in found["groups"]] == [(group, 40)]

    security = {"protocol": "SSL", "ca_file": str(tmp_path / "ca.pem")}
    failover(closes_behind_tls, security, "east")
    failover(out_of_date, security, "expired")
    failover(garbage, security, "east")
    failover(garbage, NO_TOKEN, "token")

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with trap(out_of_date(tmp_path)) as address:
        edit(topology, {"bootstrap_servers": address, "security": security})
        result = CliRunner().invoke(app, ["-c", str(topology), "run", "--once"])
    for number, handler in handlers.items():
        signal.signal(number, handler)
    assert isinstance(result.exception, ClusterUnusable), (result.output, result.exception)
    assert [record.value for record in read_topic(clusters.west, f"east.{topic_name}")[0]] == [
        record.value for record in numbered(150)
    ]
