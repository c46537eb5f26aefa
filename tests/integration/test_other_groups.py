"""Share groups and streams groups are named, with the reason, where consumer groups are shown and
moved."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.errors import InputError
from mirrorlake.groups.checkpoint_plan import OTHER_KIND
from mirrorlake.spark.jars import kafka_jars
from mirrorlake.spark.java import find_java
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic
from tests.support.replication import FLOW, replicate_once, write_topology

pytestmark = pytest.mark.slow

_MAKER = Path(__file__).parents[1] / "support" / "java" / "OtherGroups.java"
#: Early access in Kafka 4.1.
ALL_KINDS = {
    "group.coordinator.rebalance.protocols": "classic,consumer,streams,share",
    "unstable.feature.versions.enable": "true",
    "unstable.api.versions.enable": "true",
}


@pytest.fixture
def east(tmp_path: Path) -> Iterator[str]:
    """A cluster with a group of each kind."""
    with EmbeddedCluster("east", tmp_path / "east", properties=ALL_KINDS, heap="256m") as cluster:
        bootstrap = cluster.bootstrap_servers
        create_topic(bootstrap, "orders")
        consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "plain", "enable.auto.commit": False}
        )
        consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        consumer.close()
        command = [str(find_java()), "-cp", str(kafka_jars()[0].parent / "*"), str(_MAKER)]
        arguments = [bootstrap, "orders", "sharing", "streaming"]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=180, check=False
        )
        assert done.returncode == 0, done.stderr
        yield bootstrap


def test_they_are_named(
    spark: SparkSession, east: str, clusters: ClusterPair, tmp_path: Path
) -> None:
    topology = write_topology(
        tmp_path / "flow", east, clusters.west, {"topics": ["orders"], "groups": [".*"]}
    )

    replicate_once(spark, topology)

    def call(*arguments: str) -> tuple[int, dict[str, Any]]:
        result = CliRunner().invoke(app, ["-c", str(topology), *arguments, "--json"])
        assert result.stdout, (result.output, result.exception)
        return result.exit_code, json.loads(result.stdout)

    code, shown = call("groups", "--flow", FLOW)
    assert shown["flows"][0]["not_mirrored"] == dict.fromkeys(["sharing", "streaming"], OTHER_KIND)
    assert code == 0, "nothing is wrong with the replication"
    _, moved = call("failover", "--flow", FLOW, "--no-drain", "--all-groups")
    assert [
        line
        for line in moved["warnings"]
        if OTHER_KIND in line and ("sharing" in line or "streaming" in line)
    ]
    command = ["-c", str(topology), "failover", "--flow", FLOW, "--no-drain", "--group", "sharing"]
    refused = CliRunner().invoke(app, command)
    assert isinstance(refused.exception, InputError) and OTHER_KIND in str(refused.exception)
