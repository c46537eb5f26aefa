"""A source of three brokers of which one may be away: what has one copy only is then without a
leader."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from tests.support.frozen import frozen
from tests.support.traps import closes, trap
from tests.support.waiting import until

POSITIONS = "__consumer_offsets"
#: One copy of each group's positions: groups whose coordinator is away are away with it.
ONE_COPY = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "6"}


class ThreeBrokers:
    """A cluster whose brokers are taken away, and come back, one by one."""

    def __init__(self, directory: Path) -> None:
        self.cluster = EmbeddedCluster(
            "east", directory, brokers=3, properties=ONE_COPY, heap="256m"
        )
        self._admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    @property
    def address(self) -> str:
        """All brokers, for clients."""
        return self.cluster.bootstrap_servers

    def leaders(self, topic: str) -> dict[int, int]:
        """The node that leads each partition of a topic, -1 for none, as the cluster says now."""
        found = self._admin.list_topics(timeout=20).topics[topic]
        return {number: place.leader for number, place in found.partitions.items()}

    def coordinators(self, groups: Iterable[str]) -> dict[str, int]:
        """The nodes that have the positions of groups."""
        partitions = self.leaders(POSITIONS)
        return {group: partitions[_java_hash(group) % len(partitions)] for group in groups}

    def kill(self, node: int) -> None:
        """Kill a broker with kill -9; returns when the others know that it is away."""
        self.cluster.kill(node)
        until(lambda: node not in self.leaders(POSITIONS).values(), seconds=60)

    def bring_back(self, node: int) -> None:
        """Start a broker that was killed; returns when it leads again what only it has."""
        self.cluster.start_broker(node)
        until(lambda: -1 not in self.leaders(POSITIONS).values(), seconds=60)

    @contextmanager
    def away(self, node: int, how: str) -> Iterator[None]:
        """A broker that is `dead`, `frozen`, or `refusing`, for the time of the block: something
        else takes connections in its place, and closes them. (What answers as HTTP does is no case
        for it: Kafka's Java client takes the first four bytes for a length, KAFKA-4493, and Spark's
        JVM ends for want of memory.)"""
        if how == "frozen":
            with frozen([self.cluster.pids[node]]):
                yield
            return
        self.kill(node)
        with ExitStack() as sockets:
            if how == "refusing":
                port = int(self.address.split(",")[node].rpartition(":")[2])
                sockets.enter_context(trap(closes(Path()), port))
            yield
        self.bring_back(node)


@contextmanager
def three_brokers(directory: Path) -> Iterator[ThreeBrokers]:
    """Three brokers for the time of the block."""
    made = ThreeBrokers(directory)
    with made.cluster:
        yield made


def _java_hash(text: str) -> int:
    """`Utils.abs(text.hashCode())` of Kafka's group coordinator, for ASCII."""
    value = 0
    for letter in text:
        value = (31 * value + ord(letter)) & 0xFFFFFFFF
    return 0 if value == 1 << 31 else abs(value - (1 << 32) if value >> 31 else value)
