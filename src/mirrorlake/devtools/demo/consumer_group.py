"""The demo's consumer group: it reads at east, loses it, and resumes at west where it stopped."""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer

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


def read_as_group(
    bootstrap_servers: str, topic: str, partitions: int, at_most: int | None = None
) -> Counter[bytes]:
    """Read as the group, up to `at_most` records or to the ends, commit, leave; return values."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    values: Counter[bytes] = Counter()
    ended: set[int] = set()
    silent = 0
    with closing(consumer):
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
