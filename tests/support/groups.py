"""The control task of consumer groups, without the replicator around it."""

import socket
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from mirrorlake.config.topology import load_topology
from mirrorlake.groups.group_sync import GroupTurns
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.other_logs import OtherLogs
from mirrorlake.mm2.mirror_topics import CheckpointTopic
from mirrorlake.offsets.positions import TopicAndPartition
from tests.support.replication import FLOW
from tests.support.waiting import until

#: There is no coordinator yet, it loads, or it is another broker.
_COORDINATOR_MOVES = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


@dataclass(frozen=True)
class NotRunning:
    """A flow to its groups, `groups.running_flow.RunningFlow`, while it does not run: which topics
    it mirrors is known, how far it is only the lake tells."""

    mirrors: Callable[[str], bool]
    landed: int = 0

    def refuses(self, _topic: str) -> bool:
        return False

    def losses(self) -> int:
        return 0

    def passes_over(self) -> int:
        return 0

    def other_logs(self) -> OtherLogs:
        return OtherLogs("east", frozenset(), {})

    def generation(self, _key: TopicAndPartition) -> int:
        return self.landed

    def generations(self) -> int:
        return self.landed

    def target_generation(self, _topic: str) -> int | None:
        return 0

    def check_targets(self) -> None:
        """Nobody watches them."""

    def reached(self, _keys: Iterable[TopicAndPartition]) -> None:
        return None


def checkpoints_of(topology: Path, lake: Lake, generation: int = 0) -> GroupTurns:
    """The task as a replicator that has just started has it; it knows nothing but the lake.
    `generation` is the one that is landed of every partition."""
    connections = Connections(load_topology(topology))
    flow = connections.topology.flow(FLOW)
    event_log = EventLog(lake)
    published = CheckpointTopic(flow, connections, event_log)
    running = NotRunning(flow.selection.selects, generation)
    return GroupTurns(flow, Deployment(lake, connections, event_log), running, published)


def commit_all(
    bootstrap: str, topic: str, groups: Iterable[str], position: int, partitions: int = 3
) -> None:
    """Groups that stand at a position in every partition of a topic."""
    for group in groups:
        consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
        )
        places = [TopicPartition(topic, number, position) for number in range(partitions)]
        until(partial(_committed, consumer, places), "the group's coordinator takes positions")
        consumer.close()


def _committed(consumer: Consumer, places: list[TopicPartition]) -> bool:
    """Commit, unless the coordinator is not there yet, as where its broker has just begun."""
    try:
        consumer.commit(offsets=places, asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() not in _COORDINATOR_MOVES:
            raise
        return False
    return True


def delete_groups(bootstrap: str, groups: Iterable[str]) -> None:
    """Delete groups without members, each once its coordinator, which may have come back just now,
    has loaded it."""
    admin, left = AdminClient({"bootstrap.servers": bootstrap}), set(groups)

    def without_deleted() -> set[str]:
        for group, future in admin.delete_consumer_groups(sorted(left), request_timeout=20).items():
            try:
                future.result(30)
                left.discard(group)
            except KafkaException as error:
                if error.args[0].code() not in _COORDINATOR_MOVES:
                    raise
        return left

    until(without_deleted, gives=set(), seconds=60)


def commit_nameless(bootstrap: str, topic: str, position: int) -> None:
    """Commit a position in partition 0 for the group "", as old clients may (OffsetCommit v2),
    which none of today's does: by the bytes of the request."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    partitions = struct.pack(">iiq", 1, 0, position) + text("")
    # No generation, no member, and the broker's own retention of positions.
    body = text("") + struct.pack(">i", -1) + text("") + struct.pack(">q", -1)
    body += struct.pack(">i", 1) + text(topic) + partitions
    request = struct.pack(">hhi", 8, 2, 1) + text("old") + body
    host, port = bootstrap.split(",")[0].rsplit(":", 1)

    def answered() -> int:
        with socket.create_connection((host, int(port)), 20) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.makefile("rb")
            (size,) = struct.unpack(">i", answer.read(4))
            return int(struct.unpack(">h", answer.read(size)[-2:])[0])

    # A fresh broker makes its topic of positions for who asks for a coordinator, and then takes a
    # moment to load it.
    commit_all(bootstrap, topic, [f"{topic}-named"], position, partitions=1)
    until(lambda: answered() not in _COORDINATOR_MOVES, "the broker coordinates the group")
    assert (code := answered()) == 0, f"the broker answers {code}"


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    )
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def position(bootstrap: str, group: str, topic: str) -> int | None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, 0)], 20)
    consumer.close()
    return found.offset if found.offset >= 0 else None
