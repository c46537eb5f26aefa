"""MirrorMaker 2's released Java client reads what our adapters write: one hop, a pipe of two, other
separators."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mirrorlake.config.topology import Topology, load_topology
from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.changes import MemoryLog
from mirrorlake.mm2.formats import MirrorCheckpoint, decode_heartbeat, encode_checkpoint
from mirrorlake.mm2.mirror_topics import CheckpointTopic, Heartbeats
from mirrorlake.naming.naming import Naming
from mirrorlake.naming.policy import HEARTBEATS
from mirrorlake.naming.selection import TopicSelection
from tests.support.clusters import ClusterPair, own_topics
from tests.support.control import own_configs
from tests.support.kafka import create_topic, partition_count, read_topic, record_count, topics_of
from tests.support.mirror_client import ask_mirror_client
from tests.support.replication import FLOW, write_topology

pytestmark = pytest.mark.slow

CHECKPOINTS = [
    MirrorCheckpoint("g1", "east.orders", 0, 1_234_567_890_123, 42),
    MirrorCheckpoint("g1", "east.orders", 7, upstream=10, downstream=0, metadata="by hand"),
    MirrorCheckpoint("g1", "east.payments", 0, 5, 5),
    MirrorCheckpoint("gré", "east.orders", 0, upstream=1, downstream=2**40, metadata="mé"),
]


@pytest.fixture
def own(clusters: ClusterPair) -> Iterator[ClusterPair]:
    """The clusters; topics that a test makes are gone behind it, since flows of other tests would
    mirror heartbeats."""
    with own_topics(clusters):
        yield clusters


def setup(
    directory: Path, clusters: ClusterPair, **settings: object
) -> tuple[Topology, Connections]:
    loud = {"emit_checkpoints_enabled": True, "emit_heartbeats_enabled": True}
    topology = load_topology(
        write_topology(directory, clusters.east, clusters.west, {**loud, **settings})
    )
    return topology, Connections(topology)


def test_one_hop(own: ClusterPair, tmp_path: Path) -> None:
    topology, connections = setup(tmp_path, own)
    flow = topology.flow(FLOW)
    create_topic(own.west, "east.heartbeats")  # as the flow does, which mirrors the source's
    create_topic(own.west, "east.orders", 8)
    log = MemoryLog()
    heartbeats = Heartbeats(flow, connections, log)
    planned = [(alias, topic.name) for alias, topic in heartbeats.missing()]
    assert planned == [("east", "heartbeats"), ("west", "heartbeats")]
    sent = heartbeats.beat()
    assert heartbeats.missing() == []
    topic = CheckpointTopic(flow, connections, log)
    assert topic.publish(CHECKPOINTS) == len(CHECKPOINTS)
    made = [(change.resource, change.after) for _, change in log.rows]
    assert made == [
        ("heartbeats on cluster east", "partitions=1, factor=1"),
        ("heartbeats", "partitions=1, factor=1"),
        ("east.checkpoints.internal", "partitions=1, factor=1"),
    ]
    answer = ask_mirror_client(own.west, "east", "g1", "gré", "nobody")
    g1 = {"east.orders/0": [42, ""], "east.orders/7": [0, "by hand"], "east.payments/0": [5, ""]}
    wanted = {"g1": g1, "gré": {"east.orders/0": [2**40, "mé"]}, "nobody": {}}
    assert answer["translateOffsets"] == answer["remoteConsumerOffsets"] == wanted
    assert answer["checkpointTopics"] == ["east.checkpoints.internal"]
    assert answer["heartbeatTopics"] == ["east.heartbeats", "heartbeats"]
    assert answer["upstreamClusters"] == ["east"]
    assert answer["replicationHops"] == {"east": 1, "nobody": -1}
    assert {"east.orders", "east.heartbeats"} <= set(answer["remoteTopics"])
    for address in (own.east, own.west):
        ((record,),) = read_topic(address, "heartbeats")
        assert decode_heartbeat(record.key, record.value) == sent
        assert (sent.source, sent.target) == ("east", "west")
        assert abs(record.timestamp - sent.timestamp) < 60_000


def test_a_pipe_of_two(own: ClusterPair, tmp_path: Path) -> None:
    """The last cluster of pipes east -> mid -> west and a -> b -> west, with the names that the
    flows give there."""
    for first, second in (("east", "mid"), ("a", "b")):
        aliases = frozenset({first, second, "west"})
        naming = Naming("default", second, aliases)
        for topic in (HEARTBEATS, Naming("default", first, aliases).target_topic(HEARTBEATS)):
            assert TopicSelection((), (), naming, "west").selects(topic)
            create_topic(own.west, naming.target_topic(topic))
    topology, connections = setup(tmp_path, own)
    topic = CheckpointTopic(topology.flow(FLOW), connections, MemoryLog())
    topic.publish([MirrorCheckpoint("g", "mid.east.orders", 0, 3, 9)])
    answer = ask_mirror_client(own.west, "east", "g")
    assert answer["upstreamClusters"] == ["a", "b", "east", "mid"]
    assert answer["replicationHops"] == {"a": 2, "b": 1, "east": 2, "mid": 1, "nobody": -1}
    assert answer["translateOffsets"] == {"g": {"mid.east.orders/0": [9, ""]}}


@pytest.mark.parametrize(
    ("enabled", "name"), [(True, "east_checkpoints_internal"), (False, "east.checkpoints.internal")]
)
def test_another_separator(own: ClusterPair, tmp_path: Path, enabled: bool, name: str) -> None:
    topology, connections = setup(
        tmp_path,
        own,
        replication_policy_separator="_",
        replication_policy_internal_topic_separator_enabled=enabled,
    )
    create_topic(own.west, "east_heartbeats")
    topic = CheckpointTopic(topology.flow(FLOW), connections, MemoryLog())
    topic.publish([MirrorCheckpoint("g", "east_orders", 1, 3, 4)])
    assert topic.name == name
    answer = ask_mirror_client(own.west, "east", "g", separator="_", internal_separator=enabled)
    assert answer["checkpointTopics"] == [name]
    assert answer["translateOffsets"] == {"g": {"east_orders/1": [4, ""]}}
    assert (answer["upstreamClusters"], answer["replicationHops"]["east"]) == (["east"], 1)


def test_the_last_checkpoint_wins_and_nothing_is_written_twice(
    own: ClusterPair, tmp_path: Path
) -> None:
    topology, connections = setup(tmp_path, own)
    topic = CheckpointTopic(topology.flow(FLOW), connections, MemoryLog())
    assert topic.publish([]) == 0
    assert partition_count(own.west, topic.name) == 1, "made even for nothing: clients wait for it"
    assert own_configs(own.west, topic.name)["cleanup.policy"] == "compact"
    first, second = (
        MirrorCheckpoint("g", "east.t", 0, 10, 20),
        MirrorCheckpoint("g", "east.t", 0, upstream=5, downstream=8, metadata="rewound"),
    )
    other = MirrorCheckpoint("g", "east.t", 1, 1, 1)
    assert topic.publish([MirrorCheckpoint("g", "east.t", 2, 7, -1)]) == 0, (
        "there is no position below 0"
    )
    assert [
        topic.publish(some) for some in ([first, other], [first, other], [second, other], [second])
    ] == [2, 0, 1, 0]
    (records,) = read_topic(own.west, topic.name)
    assert [(record.key, record.value) for record in records] == [
        encode_checkpoint(sent) for sent in (first, other, second)
    ]
    answer = ask_mirror_client(own.west, "east", "g")
    assert answer["translateOffsets"]["g"] == {"east.t/0": [8, "rewound"], "east.t/1": [1, ""]}


def test_many_checkpoints_at_once(own: ClusterPair, tmp_path: Path) -> None:
    topology, connections = setup(tmp_path, own)
    topic = CheckpointTopic(topology.flow(FLOW), connections, MemoryLog())
    many = [
        MirrorCheckpoint(f"g{n % 500}", f"east.t{n % 200}", n // 500, n, n) for n in range(100_000)
    ]
    assert topic.publish(many) == len(set(many))
    assert record_count(own.west, topic.name) == len(many)


def test_switched_off_writes_nothing(own: ClusterPair, tmp_path: Path) -> None:
    topology, connections = setup(tmp_path, own, emit_checkpoints_enabled=False)
    topic = CheckpointTopic(topology.flow(FLOW), connections, MemoryLog())
    assert topic.publish(CHECKPOINTS) == 0
    assert topic.name not in topics_of(own.west)


def test_a_topic_of_another_shape_is_used_as_it_is(own: ClusterPair, tmp_path: Path) -> None:
    create_topic(own.west, "heartbeats", 3)
    topology, connections = setup(tmp_path, own)
    Heartbeats(topology.flow(FLOW), connections, MemoryLog()).beat()
    assert [len(records) for records in read_topic(own.west, "heartbeats")] == [1, 0, 0]


def test_a_topic_that_a_broker_made_by_itself_keeps_its_checkpoints(
    own: ClusterPair, tmp_path: Path
) -> None:
    """A client that asked before the first checkpoint had it made, by the broker's defaults."""
    topology, connections = setup(tmp_path, own)
    log = MemoryLog()
    topic = CheckpointTopic(topology.flow(FLOW), connections, log)
    create_topic(own.west, topic.name, 3)
    assert topic.publish(CHECKPOINTS) == len(CHECKPOINTS)
    assert own_configs(own.west, topic.name) == {"cleanup.policy": "compact"}
    assert [change.after for _, change in log.rows] == ["cleanup.policy=compact"]
    assert [len(records) for records in read_topic(own.west, topic.name)] == [
        len(CHECKPOINTS),
        0,
        0,
    ]


def test_an_end_that_is_away_does_not_hinder_the_other(own: ClusterPair, tmp_path: Path) -> None:
    file = write_topology(tmp_path, "127.0.0.1:9", own.west, {})
    topology = load_topology(file)
    with pytest.raises(ClusterUnreachable, match="east"):
        Heartbeats(topology.flow(FLOW), Connections(topology), MemoryLog()).beat()
    assert record_count(own.west, "heartbeats") == 1
