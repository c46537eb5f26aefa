"""Every supported line of Kafka's brokers, as a source and as a target: records, the map, groups,
configs, rights, failover, and a topic that is made again."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from tests.support import zookeeper
from tests.support.acls import acl
from tests.support.clusters import SETTINGS
from tests.support.commands import mirrorlake, open_incidents
from tests.support.control import AUTHORIZER, acls_of, add_acls, own_configs
from tests.support.groups import commit, position
from tests.support.kafka import (
    create_topic,
    delete_topic,
    numbered,
    partition_count,
    topics_of,
    transactional_producer,
    write,
    write_transactions,
)
from tests.support.lake_rows import no_session, opened
from tests.support.odd_records import odd_records
from tests.support.replication import FLOW, assert_topic_same, both_sides, write_topology
from tests.support.waiting import until

pytestmark = pytest.mark.slow

#: The newest release of each line of which a repository has brokers; those before 3.0 need a
#: ZooKeeper.
KRAFT = ("4.3.0", "4.2.1", "4.0.1", "3.9.1", "3.7.2")
ZOOKEEPER = ("2.8.2",)
GROUP = "billing"


@pytest.fixture(scope="module")
def current(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of the version that all other tests run with, with an authorizer."""
    folder = tmp_path_factory.mktemp("current")
    with EmbeddedCluster(
        "current", folder, properties={**AUTHORIZER, **SETTINGS}, heap="256m"
    ) as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture(scope="module", params=KRAFT + ZOOKEEPER)
def other(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A cluster of another version, with an authorizer."""
    version, folder = request.param, tmp_path_factory.mktemp(request.param)
    if version in ZOOKEEPER:
        settings = {**zookeeper.AUTHORIZER, **SETTINGS}
        with zookeeper.zookeeper_broker(folder, version, settings) as address:
            yield address
        return
    settings = {**AUTHORIZER, **SETTINGS}
    with EmbeddedCluster(
        "other", folder, properties=settings, heap="256m", version=version
    ) as cluster:
        yield cluster.bootstrap_servers


@dataclass
class Scene:
    """A topic that is mirrored from one version to another, by commands."""

    source: str
    target: str
    topic: str
    topology: Path

    @property
    def mirror(self) -> str:
        return f"east.{self.topic}"

    def count_of_same(self) -> int:
        """How many records both sides have, the map and the stage compared too."""
        lake, _ = opened(no_session, self.topology)
        names = {self.topic: self.mirror}
        return assert_topic_same(both_sides(lake, self.source, self.target, names), self.topic)


@pytest.fixture(params=["as-source", "as-target"])
def scene(
    request: pytest.FixtureRequest, tmp_path: Path, current: str, other: str, topic_name: str
) -> Scene:
    source, target = (other, current) if request.param == "as-source" else (current, other)
    flow = {
        "topics": [topic_name],
        "groups": [GROUP],
        "emit_checkpoints_enabled": True,
        "sync_group_offsets_enabled": True,
    }
    return Scene(source, target, topic_name, write_topology(tmp_path, source, target, flow))


def fill(scene: Scene) -> None:
    """Odd bytes, batches of each codec, transactions of which some are aborted."""
    create_topic(scene.source, scene.topic, partitions=2, retention_ms="123456789")
    write(scene.source, scene.topic, odd_records())
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        write(scene.source, scene.topic, numbered(100, 2, size=20), compression_type=codec)
    producer = transactional_producer(scene.source)
    write_transactions(producer, scene.topic, 20, 4)


def test_records_groups_configs_and_rights(scene: Scene) -> None:
    fill(scene)
    add_acls(scene.source, acl(scene.topic, principal="User:ann"))
    commit(scene.source, GROUP, scene.topic, 100)
    mirrorlake(scene.topology, "plan")
    mirrorlake(scene.topology, "run", "--once")
    first = scene.count_of_same()
    assert first > 400
    assert own_configs(scene.target, scene.mirror)["retention.ms"] == "123456789"
    until(
        lambda: acl(scene.mirror, principal="User:ann") in acls_of(scene.target, scene.mirror),
        "the right of the source's readers is there",
    )
    asked = f"--flow {FLOW} --topic {scene.topic} --partition 0 --offset 100".split()
    translated = mirrorlake(scene.topology, "translate", *asked)
    assert position(scene.target, GROUP, scene.mirror) == translated["offset"]

    admin = AdminClient({"bootstrap.servers": scene.source})
    admin.create_partitions([NewPartitions(scene.topic, 3)])[scene.topic].result(30)
    until(lambda: partition_count(scene.source, scene.topic), gives=3)
    write(scene.source, scene.topic, numbered(300, 3))
    commit(scene.source, GROUP, scene.topic, 150)
    mirrorlake(scene.topology, "run", "--once")
    assert scene.count_of_same() == first + 300
    moved = mirrorlake(scene.topology, "failover", "--flow", FLOW, "--group", GROUP)
    assert moved["groups"], moved
    asked = f"--flow {FLOW} --topic {scene.topic} --partition 0 --offset 150".split()
    translated = mirrorlake(scene.topology, "translate", *asked)
    assert position(scene.target, GROUP, scene.mirror) == translated["offset"]
    assert mirrorlake(scene.topology, "verify")["proven"] == first + 300
    assert mirrorlake(scene.topology, "status")["healthy"]


def test_a_cluster_without_topic_ids(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, current: str, topic_name: str
) -> None:
    """What brokers of 2.8 are that were upgraded, and still speak as the others did before."""
    folder = tmp_path_factory.mktemp("old")
    settings = {**zookeeper.AUTHORIZER, "inter.broker.protocol.version": "2.7"}
    with zookeeper.zookeeper_broker(folder, ZOOKEEPER[0], settings) as source:
        create_topic(source, topic_name)
        write(source, topic_name, numbered(20))
        topology = write_topology(tmp_path, source, current, {"topics": [topic_name]})
        scene = Scene(source, current, topic_name, topology)
        problems = list(mirrorlake(topology, "plan")["problems"])
        assert [row["subject"] for row in problems if row["rule"] == "topic-ids"] == ["east"]
        mirrorlake(topology, "run", "--once")
        assert scene.count_of_same() == 20
        write(source, topic_name, numbered(20))
        mirrorlake(topology, "run", "--once")
        assert scene.count_of_same() == 40
        assert mirrorlake(topology, "status")["healthy"]


def can_be_made(bootstrap: str, topic: str) -> bool:
    """Make a topic, where its name is free: a broker with a ZooKeeper says that a topic is gone
    before it is."""
    try:
        create_topic(bootstrap, topic)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True


def test_a_topic_made_again(scene: Scene) -> None:
    create_topic(scene.source, scene.topic)
    write(scene.source, scene.topic, numbered(20))
    mirrorlake(scene.topology, "run", "--once")
    delete_topic(scene.source, scene.topic)
    until(lambda: scene.topic not in topics_of(scene.source), "the topic is gone")
    until(lambda: can_be_made(scene.source, scene.topic), "a name that is free again")
    write(scene.source, scene.topic, numbered(30))
    mirrorlake(scene.topology, "run", "--once", code=1)
    assert [row[0] for row in open_incidents(scene.topology, 1)] == ["topic_recreated"]
    mirrorlake(scene.topology, "resolve", "--topic", scene.topic, "--choice", "new-generation")
    mirrorlake(scene.topology, "run", "--once")
    assert mirrorlake(scene.topology, "status")["healthy"]
