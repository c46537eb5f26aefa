"""The demo's clients: a producer of orders, and the consumer group, which reads at east, loses it,
and resumes at west where it stopped."""

import json
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from confluent_kafka import Consumer, Producer

from mirrorlake.config.topology import Topology
from mirrorlake.errors import ReplicationError
from mirrorlake.failover.failover import MoveOptions, move_groups
from mirrorlake.groups.shared_topics import Direction
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake

GROUP = "shop"
#: How long a topic may stay silent before the group counts as stuck, seconds.
PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Moved:
    """What the group read: how many records after the move, and in all how many twice and never."""

    after: int
    twice: int
    never: int

    @property
    def exact(self) -> bool:
        """Whether it read each record once."""
        return not self.twice and not self.never


def consumer_of(
    bootstrap_servers: str, group: str, more: Mapping[str, int] = MappingProxyType({})
) -> Consumer:
    """A consumer of committed records from the start on, which tells where partitions end."""
    settings = {"bootstrap.servers": bootstrap_servers, "group.id": group}
    settings |= {"auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    flags = {"enable.auto.commit": False, "enable.partition.eof": True, "log_level": 0}
    return Consumer({**settings, **flags, **more})


def read_as_group(
    bootstrap_servers: str, topic: str, partitions: int, at_most: int | None = None
) -> Counter[bytes]:
    """Read as the group, up to `at_most` records or to the ends, commit, leave; return values."""
    values: Counter[bytes] = Counter()
    ended: set[int] = set()
    silent = 0
    with closing(consumer_of(bootstrap_servers, GROUP)) as consumer:
        consumer.subscribe([topic])
        while len(ended) < partitions and (at_most is None or values.total() < at_most):
            room = 10_000 if at_most is None else at_most - values.total()
            messages = consumer.consume(min(room, 10_000), timeout=1.0)
            silent = 0 if messages else silent + 1
            if silent > PATIENCE_SECONDS:
                raise ReplicationError(
                    f"group {GROUP} got nothing of {topic} for {PATIENCE_SECONDS} seconds"
                )
            for message in messages:
                if message.error() is None:
                    values[message.value() or b""] += 1
                else:
                    ended.add(message.partition() or 0)
        consumer.commit(asynchronous=False)
    return values


def move(lake: Lake, topology: Topology, flow: str) -> list[dict[str, Any]]:
    """As `mirrorlake failover --group shop`: a row per partition. Raises ReplicationError."""
    deployment = Deployment.opened(lake, Connections(topology))
    moves = move_groups(deployment, Direction(topology.flow(flow)), MoveOptions((GROUP,)))
    if not moves["complete"]:
        raise ReplicationError(f"group {GROUP} was not moved whole: {'; '.join(moves['left'])}")
    return list(moves["groups"])


def compare(before: Counter[bytes], after: Counter[bytes], wanted: set[bytes]) -> Moved:
    """Compare what the group read on both clusters with all records."""
    both = before + after
    twice = sum(count - 1 for count in both.values())
    return Moved(after.total(), twice, len(wanted - both.keys()))


class Feeder(threading.Thread):
    """Produces orders in the background, before the replicator starts and while it runs."""

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int, records: int) -> None:
        super().__init__(name="feeder", daemon=True)
        # quiet, because the cluster is killed in the end
        settings = {"compression.type": "lz4", "linger.ms": 5, "log_level": 0}
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, **settings})
        self._topic, self._partitions, self._records = topic, partitions, records
        self._pause = threading.Event()

    def run(self) -> None:
        """Produce; the second half slowly, so that records are in flight when the driver dies."""
        slow_from = self._records // 2
        for number in range(self._records):
            order = {"order": number, "item": f"item-{number % 97}", "quantity": number % 7 + 1}
            key = f"customer-{number % 1000}".encode()
            while True:
                try:
                    self._producer.produce(
                        self._topic, json.dumps(order), key, number % self._partitions
                    )
                    break
                except BufferError:
                    self._producer.poll(0.1)
            if number > slow_from and number % 200 == 0:
                self._producer.poll(0)
                self._pause.wait(0.1)
        self._producer.flush(60)
