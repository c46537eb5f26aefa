"""Records that go on coming while something is broken, and when they arrive."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from tests.support.kafka import numbered, write

#: How long a group of records is written after the one before, seconds.
_PAUSE = 0.1


class Load:
    """Writes into a topic until it is stopped; `written` counts."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.written = 0
        self._place = bootstrap, topic
        self._partitions = partitions
        self._ended = Event()
        self._thread = Thread(target=self._write, daemon=True)

    def _write(self) -> None:
        while not self._ended.wait(_PAUSE):
            write(*self._place, numbered(10, self._partitions, start=self.written))
            self.written += 10

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End it; all that was counted is there."""
        self._ended.set()
        self._thread.join()


@contextmanager
def load(bootstrap: str, topic: str, partitions: int) -> Iterator[Load]:
    """A load for the time of the block."""
    made = Load(bootstrap, topic, partitions)
    made.start()
    try:
        yield made
    finally:
        made.stop()


class Arrivals:
    """When records of a topic came to a consumer of committed ones, monotonic seconds."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.times: list[float] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "arrivals",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
            }
        )
        self._consumer.assign([TopicPartition(topic, n, OFFSET_END) for n in range(partitions)])
        self._ended = Event()
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._ended.is_set():
            if self._consumer.consume(1_000, timeout=0.2):
                self.times.append(time.monotonic())

    def longest_pause(self, since: float, until: float) -> float:
        """The longest time without a record between two moments, seconds."""
        inside = [at for at in self.times if since <= at <= until]
        marks = [since, *inside, until]
        return max(later - earlier for earlier, later in zip(marks, marks[1:], strict=False))

    def close(self) -> None:
        """End it."""
        self._ended.set()
        self._thread.join()
        self._consumer.close()
