"""End-to-end latency: a producer at a steady pace, and a read_committed consumer at the target."""

import math
import threading
import time
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from mirrorlake.devtools.bench.contestants import Job, Running
from mirrorlake.devtools.bench.payload import PARTITIONS
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.processes import cpu_seconds

_START_SECONDS = 180.0
_DRAIN_SECONDS = 60.0
#: Records a second until the first one has arrived.
_TRICKLE = 10
_STAMP = 20


@dataclass(frozen=True)
class Pace:
    """A latency run's load: records a second, bytes a record, seconds of warm-up and measuring."""

    records_per_second: int = 1000
    record_bytes: int = 200
    warm_up_seconds: float = 20.0
    seconds: float = 30.0


@dataclass(frozen=True)
class Latency:
    """End-to-end latency in ms of the records sent during the measurement, and the contestant's
    busy cores; `lost` records did not arrive within a minute."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    records: int
    lost: int
    cores: float = 0.0


class PacedProducer(threading.Thread):
    """Sends a trickle, then at a steady pace until it is stopped; each value starts with its send
    time, epoch ns."""

    def __init__(
        self, bootstrap_servers: str, places: Sequence[TopicAndPartition], pace: Pace
    ) -> None:
        super().__init__(name="paced producer", daemon=True)
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "compression.type": "lz4",
            "linger.ms": 1,
        }
        self._producer = Producer(settings)
        self._places = places
        self._pace = pace
        self._filler = b'{"status":"shipped","note":"' + b"standard parcel " * (
            pace.record_bytes // 16
        )
        self._stop_asked = threading.Event()
        self._full_pace = threading.Event()
        self.sent_at_ns: list[int] = []

    def run(self) -> None:
        """Send; after a stall of this machine, late records go at once, with actual send times."""
        while not self._full_pace.is_set() and not self._stop_asked.wait(1 / _TRICKLE):
            self._send(self._places[0])
        start = time.monotonic()
        for number in count():
            delay = start + number / self._pace.records_per_second - time.monotonic()
            if (delay > 0.0005 and self._stop_asked.wait(delay)) or self._stop_asked.is_set():
                break
            self._send(self._places[number % len(self._places)])
        self._producer.flush(30)

    def _send(self, place: TopicAndPartition) -> None:
        topic, partition = place
        now = time.time_ns()
        value = str(now).zfill(_STAMP).encode() + self._filler
        self._producer.produce(topic, value[: self._pace.record_bytes], partition=partition)
        self._producer.poll(0)
        self.sent_at_ns.append(now)

    def full_pace(self) -> None:
        """Go from the trickle to the full pace, so that a slow start leaves no backlog."""
        self._full_pace.set()

    def stop(self) -> None:
        """Stop after everything is sent."""
        self._stop_asked.set()
        self.join()


def measure_latency(
    running: Running,
    job: Job,
    target: ClusterAdmin,
    pace: Pace,
    places: Sequence[TopicAndPartition] = (),
) -> Latency:
    """Send a trickle until a record arrives, warm up at the full pace, then measure; over all
    partitions of the job's topic, or over the `places` given. Raises ReplicationError."""
    places = places or [(job.topic, partition) for partition in range(PARTITIONS)]
    producer = PacedProducer(job.source, places, pace)
    producer.start()
    try:
        there = [(f"{job.alias}.{topic}", partition) for topic, partition in places]
        topics = {topic for topic, _ in there}
        running.wait_until(
            lambda: topics <= target.topics().keys(),
            _START_SECONDS,
            f"did not make all of {', '.join(sorted(topics))}",
        )
        return _consume(running, _consumer(job, there, target), producer, pace)
    finally:
        producer.stop()


def _consume(running: Running, consumer: Consumer, producer: PacedProducer, pace: Pace) -> Latency:
    """Read until all that was sent while measuring has arrived; some may arrive twice."""
    with closing(consumer):
        first = _poll_until_first(running, consumer)
        producer.full_pace()
        begin = first + int(pace.warm_up_seconds * 1e9)
        end = begin + int(pace.seconds * 1e9)
        latencies: dict[tuple[TopicAndPartition, int], float] = {}
        cpu: list[float] = []
        while time.time_ns() < end + int(_DRAIN_SECONDS * 1e9):
            if len(cpu) < 2 and time.time_ns() > (begin, end)[len(cpu)]:
                cpu.append(cpu_seconds(running.pids))
            arrival = _poll(consumer)
            if arrival is not None and begin <= arrival[2] < end:
                latencies.setdefault((arrival[1], arrival[2]), (arrival[0] - arrival[2]) / 1e6)
            if time.time_ns() > end and len(latencies) >= _sent(producer, begin, end):
                break
            if arrival is None:
                running.check()
        cores = (cpu[1] - cpu[0]) / pace.seconds if len(cpu) == 2 else 0.0
        return latency_of(_sent(producer, begin, end), [*latencies.values()], round(cores, 2))


def _sent(producer: PacedProducer, begin: int, end: int) -> int:
    return bisect_left(producer.sent_at_ns, end) - bisect_left(producer.sent_at_ns, begin)


def _poll_until_first(running: Running, consumer: Consumer) -> int:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        arrival = _poll(consumer)
        if arrival is not None:
            return arrival[0]
        running.check()
    raise ReplicationError(
        f"no record came through {running.name} in {_START_SECONDS:.0f} s: see {running.log}"
    )


def _poll(consumer: Consumer) -> tuple[int, TopicAndPartition, int] | None:
    """Return the next record's (arrival ns, place, send time ns)."""
    message = consumer.poll(0.1)
    now = time.time_ns()
    if message is None:
        return None
    if message.error() is not None:
        if message.error().fatal():
            raise KafkaException(message.error())
        # a new topic whose partitions have no leader yet, or a reconnect: librdkafka retries
        return None
    return now, (message.topic(), message.partition()), int(message.value()[:_STAMP])


def _consumer(job: Job, places: Sequence[TopicAndPartition], target: ClusterAdmin) -> Consumer:
    """A consumer that begins at the current ends."""
    settings = {
        "bootstrap.servers": job.target,
        "group.id": "bench-latency",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings)
    ends = target.end_offsets(places, skip_silent=True)
    consumer.assign([TopicPartition(*place, ends.get(place, 0)) for place in places])
    return consumer


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that at least `share` of all values do not exceed; nan if there are none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def latency_of(sent: int, latencies_ms: Sequence[float], cores: float = 0.0) -> Latency:
    """The percentiles of the records that arrived, of `sent` ones."""
    p50, p95, p99, top = (
        round(percentile(latencies_ms, share), 1) for share in (0.5, 0.95, 0.99, 1.0)
    )
    arrived = len(latencies_ms)
    return Latency(p50, p95, p99, top, records=arrived, lost=sent - arrived, cores=cores)
