"""The control task of consumer groups, without the replicator around it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from mirrorlake.config.topology import load_topology
from mirrorlake.groups.checkpoint_sync import Checkpoints
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake
from mirrorlake.mm2.mirror_topics import CheckpointTopic
from mirrorlake.offsets.positions import TopicAndPartition
from tests.support.replication import FLOW


@dataclass(frozen=True)
class NotRunning:
    """A flow to its groups, `groups.running_flow.RunningFlow`, while it does not run: which topics it mirrors is known,
    how far it is only the lake tells."""

    mirrors: Callable[[str], bool]

    def topic_generation(self, _topic: str) -> int:
        return 0

    def target_generation(self, _topic: str) -> int | None:
        return 0

    def check_targets(self) -> None:
        """Nobody watches them."""

    def reached(self, _keys: Iterable[TopicAndPartition]) -> None:
        return None


def checkpoints_of(topology: Path, lake: Lake) -> Checkpoints:
    """The task as a replicator that has just started has it; it knows nothing but the lake."""
    connections = Connections(load_topology(topology))
    flow = connections.topology.flow(FLOW)
    event_log = EventLog(lake)
    published = CheckpointTopic(flow, connections, event_log)
    running = NotRunning(flow.selection.selects)
    return Checkpoints(flow, lake, connections, running, published, event_log)


def commit_all(bootstrap: str, topic: str, groups: Iterable[str], position: int, partitions: int = 3) -> None:
    """Groups that stand at a position in every partition of a topic."""
    for group in groups:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
        places = [TopicPartition(topic, number, position) for number in range(partitions)]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()


def delete_groups(bootstrap: str, groups: Iterable[str]) -> None:
    """Delete groups without members."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_consumer_groups(sorted(groups), request_timeout=20).values():
        future.result(30)
