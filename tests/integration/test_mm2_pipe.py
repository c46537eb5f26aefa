"""MirrorMaker 2's Java client over two running flows, east -> west -> north: it says what
`checkpoints` says."""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.lake.lake import Lake
from tests.support.clusters import ClusterPair, own_topics
from tests.support.kafka import NewRecord, create_topic, send, transactional_producer
from tests.support.lake_rows import now_of
from tests.support.mirror_client import ask_mirror_client
from tests.support.topologies import live, write_flows
from tests.support.waiting import until

pytestmark = pytest.mark.slow

TRANSACTIONS = 60


def commit(bootstrap: str, group: str, topic: str, offset: int, metadata: str) -> None:
    """Commit a position as a group without members does."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    )
    consumer.commit(
        offsets=[TopicPartition(topic, 0, offset, metadata=metadata)], asynchronous=False
    )
    consumer.close()


def table(lake: Lake, flow: str) -> Mapping[str, dict[str, list[Any]]]:
    """The newest checkpoints of a flow as the client gives them: by group, `topic/partition` to
    [offset, metadata]."""
    found: dict[str, dict[str, list[Any]]] = {}
    for row in now_of(lake).rows(f"SELECT * FROM group_positions WHERE flow = '{flow}'"):
        place = f"{row['target_topic']}/{row['partition']}"
        found.setdefault(row["group_id"], {})[place] = [
            row["target_position"],
            row["metadata"] or "",
        ]
    return found


def test_a_pipe_of_two_running_flows(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    topic = f"pipe{uuid.uuid4().hex[:6]}"
    here, there = f"{topic}-here", f"{topic}-there"
    loud = {"emit_heartbeats_enabled": True, "emit_checkpoints_enabled": True}
    settings = {"topics": [f"(.*[.])?{topic}"], "groups": [f"{topic}-.*"], **loud}
    intervals = {"emit_checkpoints_interval_seconds": 1, "sync_group_offsets_interval_seconds": 1}
    with own_topics(clusters), EmbeddedCluster("north", tmp_path / "north") as north:
        addresses = {"east": clusters.east, "west": clusters.west, "north": north.bootstrap_servers}
        flows = {name: {**settings, **intervals} for name in ("east->west", "west->north")}
        topology = write_flows(tmp_path / "flows", addresses, flows)
        create_topic(clusters.east, topic)
        producer = transactional_producer(clusters.east)
        for number in range(TRANSACTIONS):
            # a marker every second offset: positions differ on both sides
            producer.begin_transaction()
            send(producer, topic, NewRecord(b"%d" % number))
            producer.commit_transaction(30)
        commit(clusters.east, here, topic, 40, "by east")
        with live(spark, topology) as run:
            until(lambda: here in table(run.lake, "east->west"), "the group of east is known", 240)
            commit(clusters.west, there, f"east.{topic}", 20, "by west")
            until(
                lambda: there in table(run.lake, "west->north"), "the group of west is known", 240
            )
            until(
                lambda: (
                    ask_mirror_client(north.bootstrap_servers, "west")["replicationHops"].get(
                        "east"
                    )
                    == 2
                ),
                "heartbeats have come through both flows",
                240,
            )
        at_west = ask_mirror_client(clusters.west, "east", here, there)
        at_north = ask_mirror_client(north.bootstrap_servers, "west", here, there)
        found = {flow: table(run.lake, flow) for flow in ("east->west", "west->north")}
    assert found["east->west"][here] == {f"east.{topic}/0": [20, "by east"]}, (
        "the map is exact over markers"
    )
    assert at_west["translateOffsets"] == {here: found["east->west"][here], there: {}}
    assert at_north["translateOffsets"] == {
        group: found["west->north"].get(group, {}) for group in (here, there)
    }, "what is synced to west goes on to north"
    place, (_, metadata) = f"west.east.{topic}/0", ("", "by west")
    assert at_north["translateOffsets"][there][place][1] == metadata
    assert at_west["replicationHops"] == {"east": 1, "nobody": -1}
    assert at_north["replicationHops"] == {"east": 2, "west": 1, "nobody": -1}
    assert (at_west["upstreamClusters"], at_north["upstreamClusters"]) == (
        ["east"],
        ["east", "west"],
    )
    assert at_west["checkpointTopics"] == ["east.checkpoints.internal"]
    assert at_north["checkpointTopics"] == ["west.checkpoints.internal"]
