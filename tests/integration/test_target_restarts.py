"""Topics made while a broker of the target is being restarted, and while the source does not
answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from mirrorlake.config.topology import load_topology
from mirrorlake.control.config_plan import ALWAYS
from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.offsets.progress import NOTHING_MAPPED
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.run.plan import make_plan
from tests.support.control import own_configs
from tests.support.kafka import NewRecord, create_topic, write
from tests.support.replication import FLOW, lake_of, replicate_once, write_topology
from tests.support.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def east(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("east", tmp_path / "east", heap="256m") as cluster:
        yield cluster


@pytest.fixture
def west(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """Three brokers, none of which has any topic."""
    with EmbeddedCluster("west", tmp_path / "west", brokers=3, heap="256m") as cluster:
        yield cluster


def replicas_of(bootstrap: str, topic: str) -> list[int]:
    metadata = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20)
    there = metadata.topics.get(topic)
    return [len(place.replicas) for place in there.partitions.values()] if there else []


def test_topics_made_beside_a_restart_and_without_their_source_are_whole(
    tmp_path: Path, east: EmbeddedCluster, west: EmbeddedCluster, spark: SparkSession
) -> None:
    source, target = east.bootstrap_servers, west.bootstrap_servers
    create_topic(source, "t", 4, cleanup_policy="compact")
    write(source, "t", [NewRecord(b"1", key=b"k")])
    flow = {"topics": ["t"], "replication_factor": 3}
    topology = write_topology(tmp_path, source, target, flow)

    west.stop_broker(2)
    alive = AdminClient({"bootstrap.servers": target})
    until(lambda: len(alive.list_topics(timeout=20).brokers), gives=2, seconds=60)
    (planned,) = make_plan(
        Connections(load_topology(topology)), load_topology(topology).active_flows()
    )["flows"]
    assert [
        (topic["target_topic"], topic["factor"], topic["note"]) for topic in planned["topics"]
    ] == [("east.t", 3, "")]
    lake, loaded = lake_of(spark, topology), load_topology(topology)
    deployment = Deployment(lake, Connections(loaded), EventLog(lake))
    TargetTopics(loaded.flow(FLOW), deployment).refresh()
    until(lambda: replicas_of(target, "east.t"), gives=[3] * 4)
    west.start_broker(2)
    replicate_once(spark, topology)
    state = EventLog(lake).states.newest("east")["t"]
    assert (state.partitions, state.factor, state.configs) == (
        4,
        1,
        {"cleanup.policy": "compact"},
    ) and state.topic_id

    # Another name for the same topic, wanted when its source is gone: nothing but the lake says how
    # it was.
    again = load_topology(write_topology(tmp_path, source, target, {**flow, "policy": "identity"}))
    deployment = Deployment(lake, Connections(again), EventLog(lake))
    topics = TargetTopics(again.flow(FLOW), deployment)
    east.kill()
    topics.ensure([PartitionPlan("t", 0, "t", floor=NOTHING_MAPPED, first=0, last=0)])
    until(lambda: own_configs(target, "t"), gives={"cleanup.policy": "compact", **ALWAYS})
    until(lambda: replicas_of(target, "t"), gives=[3] * 4)
