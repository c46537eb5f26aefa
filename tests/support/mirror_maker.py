"""A real MirrorMaker 2, east -> west, that can be killed; and consumers that commit exactly what
they have read."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer

from mirrorlake.devtools.bench.contestants import Job, Running, start_mirrormaker
from tests.support.clusters import ClusterPair
from tests.support.kafka import NewRecord, send


class MirrorMaker:
    """MirrorMaker 2 in dedicated mode, with its own defaults but for what makes it start
    quickly."""

    def __init__(self, clusters: ClusterPair, topics: str, directory: Path) -> None:
        self._job = Job(clusters.east, clusters.west, topics, "east", directory, tuned=False)
        self._running: Running | None = None

    def start(self) -> None:
        """Start it."""
        self._running = start_mirrormaker(self._job)

    def kill(self) -> None:
        """End it by kill -9."""
        assert self._running is not None
        for process in self._running.processes:
            process.signal(signal.SIGKILL)
            process.wait(15)
        self._running = None

    @contextmanager
    def running(self) -> Iterator["MirrorMaker"]:
        """Started for the time of the block."""
        self.start()
        try:
            yield self
        finally:
            if self._running is not None:
                self.kill()


class Load:
    """Writes numbered records to topics until it is stopped; a tenth of them in transactions that
    are aborted."""

    def __init__(self, bootstrap: str, partitions: dict[str, int]) -> None:
        self._bootstrap, self._partitions = bootstrap, partitions
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.written: dict[str, set[bytes]] = {topic: set() for topic in partitions}

    @contextmanager
    def running(self) -> Iterator["Load"]:
        """Written for the time of the block."""
        self._thread.start()
        try:
            yield self
        finally:
            self.stop()

    def stop(self) -> None:
        """Write no more; all that was written is acknowledged."""
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        plain = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 5})
        other = Producer(
            {"bootstrap.servers": self._bootstrap, "transactional.id": f"load-{time.time_ns()}"}
        )
        other.init_transactions(30)
        turn = 0
        while not self._stop.is_set():
            aborts = turn % 10 == 9
            producer = other if turn % 10 > 7 else plain
            if producer is other:
                other.begin_transaction()
            for topic, partitions in self._partitions.items():
                for number in range(40):
                    value = f"{topic} {turn} {number}".encode()
                    send(
                        producer,
                        topic,
                        NewRecord(value, b"k%d" % (number % 7), number % partitions),
                    )
                    if not aborts:
                        self.written[topic].add(value)
            if producer is other:
                other.abort_transaction(30) if aborts else other.commit_transaction(30)
            plain.flush(30)
            turn += 1
            self._stop.wait(0.05)


class Reader:
    """A consumer group of one member that commits behind each batch it has read."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "session.timeout.ms": 6_000,
        }
        self.group = group
        #: What was read, phase by phase: the topic, and the values in their order.
        self.phases: list[tuple[str, list[bytes]]] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, topic: str, most: int | None = None) -> None:
        """Read a topic from where the group stands, until `end`, or until so many records were
        read."""
        values: list[bytes] = []
        self.phases.append((topic, values))
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, args=(topic, values, most), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop, and leave the group."""
        self._stop.set()
        self.join()

    def join(self) -> None:
        """Wait until it has left the group by itself."""
        assert self._thread is not None
        self._thread.join(60)
        assert not self._thread.is_alive()

    def read_to_the_end(self, topic: str, wanted: set[bytes], seconds: float = 90) -> None:
        """Read until all wanted values are among those read in all phases."""
        self.begin(topic)
        deadline = time.monotonic() + seconds
        while not wanted <= self.values() and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(1)  # what comes too much comes now
        self.end()

    def values(self) -> set[bytes]:
        """All that was read."""
        return {value for _, values in self.phases for value in list(values)}

    def _run(self, topic: str, values: list[bytes], most: int | None) -> None:
        consumer = Consumer(self._settings)
        consumer.subscribe([topic])
        try:
            while not self._stop.is_set() and (most is None or len(values) < most):
                room = 500 if most is None else min(500, most - len(values))
                found = consumer.consume(room, timeout=0.2)
                good = [message for message in found if message.error() is None]
                bad = [
                    m.error()
                    for m in found
                    if m.error() and m.error().code() != KafkaError._PARTITION_EOF
                ]
                assert not bad, bad
                if good:
                    values += [message.value() or b"" for message in good]
                    consumer.commit(asynchronous=False)
        finally:
            consumer.close()
