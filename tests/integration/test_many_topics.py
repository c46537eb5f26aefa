"""300 topics with 1,000 partitions in all: planned, made with their configs, and replicated."""

import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from mirrorlake.config.topology import load_topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.run.plan import make_plan
from tests.support.clusters import ClusterPair
from tests.support.kafka import NewRecord, send
from tests.support.many_topics import PARTITIONS, TOPICS, create_many
from tests.support.replication import assert_same, replicate_once, write_topology

pytestmark = pytest.mark.slow


def test_three_hundred_topics(spark: SparkSession, clusters: ClusterPair, tmp_path: Path) -> None:
    prefix = f"many-{uuid.uuid4().hex[:8]}-"
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [f"{prefix}.*"]})
    connections = Connections(load_topology(topology))
    topics = create_many(connections.admin("east"), prefix)
    (planned,) = make_plan(connections, connections.topology.active_flows())["flows"]
    assert [item["action"] for item in planned["topics"]] == ["create"] * TOPICS
    assert sum(item["partitions"] for item in planned["topics"]) == PARTITIONS
    producer = Producer({"bootstrap.servers": clusters.east, "linger.ms": 50})
    for topic in topics:
        for partition in range(topic.partitions):
            send(producer, topic.name, NewRecord(b"%d" % partition, topic.name.encode(), partition))
    assert producer.flush(60) == 0
    run = replicate_once(spark, topology)
    assert_same(
        run.lake,
        clusters.east,
        clusters.west,
        {topic.name: f"east.{topic.name}" for topic in topics},
        PARTITIONS,
    )
    (planned,) = make_plan(connections, connections.topology.active_flows())["flows"]
    assert {item["action"] for item in planned["topics"]} == {"none"}
    assert planned["configs"] == [], "the mirrors were not made with their configs"
