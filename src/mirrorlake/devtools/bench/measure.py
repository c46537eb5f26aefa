"""Measures a run: the target's end offsets and CPU of process trees until every record is there."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from mirrorlake.devtools.bench.contestants import Job, Running, TableRows
from mirrorlake.devtools.bench.payload import PARTITIONS
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.processes import cpu_seconds, memory_mib

POLL_SECONDS = 0.2
#: How long to wait after a flow's start before measuring it, seconds.
SETTLE_SECONDS = 60.0
IDLE_SECONDS = 60.0
_START_SECONDS = 900.0
#: Hides librdkafka's reports of events that it drops when a client ends.
QUIET = {"log_level": 3}
#: Words in the command lines of mirrorlake's driver and of Spark's Python workers.
DRIVER, WORKERS = "mirrorlake.cli.main", "pyspark.worker"
_NEW_TOPIC = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_LEADER_EPOCH,  # the leader does not know yet that it is one (KIP-320)
    }
)


@dataclass(frozen=True)
class Sample:
    """One sample: offsets at the targets, rows in the stage to wait for, CPU seconds so far, and
    resident memory of mirrorlake's Python driver and of Spark's workers (0 for contestants
    without)."""

    at: float
    written: int
    committed: int
    landed: int
    cpu: float
    brokers_cpu: float
    driver_mib: float = 0.0
    workers_mib: float = 0.0


@dataclass(frozen=True)
class Race:
    """A measured run. `first_read`: when its first batch was planned, None if it stages nothing."""

    contestant: str
    records: int
    samples: tuple[Sample, ...]
    first_read: float | None


def watch(
    running: Running,
    job: Job,
    targets: Sequence[ClusterAdmin],
    brokers: list[int],
    *,
    records: int,
    timeout: float,
) -> Race:
    """Sample until all records are committed at each target, and in the stage if there is one.

    Transaction markers take offsets too, so targets are done when they have at least as many
    offsets as records and no transaction is open. Raises ReplicationError when a process ends or
    time is up.
    """
    rows = TableRows(running.table) if running.table is not None else None
    samples: list[Sample] = []
    first_read: float | None = None

    def done() -> bool:
        nonlocal first_read
        first_read = first_read or running.reading_since()
        ends = (ends_of(target, job.target_topic, job.partitions) for target in targets)
        written, committed = map(sum, zip((0, 0), *ends, strict=True))
        samples.append(
            Sample(
                time.time(),
                written=written,
                committed=committed,
                landed=rows.refresh() if rows is not None else 0,
                cpu=cpu_seconds(running.pids),
                brokers_cpu=cpu_seconds(brokers),
                driver_mib=memory_mib(running.pids, DRIVER),
                workers_mib=memory_mib(running.pids, WORKERS),
            )
        )
        return finished(samples[-1], records, len(targets), rows is not None)

    running.wait_until(done, timeout, f"was not done after {timeout:.0f} s", POLL_SECONDS)
    return Race(running.name, records, tuple(samples), first_read)


def finished(sample: Sample, records: int, targets: int, staged: bool) -> bool:
    """Return whether a sample shows the end: all records at each of the targets."""
    at_target = sample.committed >= records * targets and sample.committed == sample.written
    return at_target and (not staged or sample.landed >= records)


def ends_of(target: ClusterAdmin, topic: str, partitions: int = PARTITIONS) -> tuple[int, int]:
    """The offsets written and committed; 0 for a topic without all its partitions or leaders."""
    info = target.topics().get(topic)
    if info is None or info.partitions < partitions:
        return 0, 0
    keys = [(topic, partition) for partition in range(partitions)]
    try:
        committed = sum(target.end_offsets(keys).values())
        written = sum(target.end_offsets(keys, committed=False).values())
    except KafkaException as error:
        if error.args[0].code() not in _NEW_TOPIC:
            raise
        return 0, 0
    return written, committed


def seconds_of(work: Callable[[], object]) -> float:
    """The seconds that `work` takes."""
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


@contextmanager
def started(
    job: Job,
    target: ClusterAdmin,
    start: Callable[[Job], Running],
    wanted: Mapping[TopicAndPartition, int],
) -> Iterator[tuple[Running, float]]:
    """Run a contestant during the block; yields it, and the seconds until the `wanted` offsets."""
    began = time.monotonic()
    running = start(job)
    try:
        wait_until_there(running, target, job, wanted)
        yield running, round(time.monotonic() - began, 1)
    finally:
        running.stop()


def wait_until_there(
    running: Running, target: ClusterAdmin, job: Job, wanted: Mapping[TopicAndPartition, int]
) -> None:
    """Wait until the target has the `wanted` offsets of each partition. Raises ReplicationError."""

    def there() -> bool:
        ends = mirror_ends(target, job, wanted)
        return all(ends.get(place, 0) >= count for place, count in wanted.items())

    running.wait_until(there, _START_SECONDS, f"was not done after {_START_SECONDS:.0f} s")


def started_again(
    job: Job, target: ClusterAdmin, start: Callable[[Job], Running], place: TopicAndPartition
) -> float:
    """Write a record, restart a contestant, and return the seconds until it is at the target."""
    there = mirror_ends(target, job, [place]).get(place, 0)
    send(job.source, [place])
    with started(job, target, start, {place: there + 1}) as (_, seconds):
        return seconds


def mirror_ends(
    target: ClusterAdmin, job: Job, places: Sequence[TopicAndPartition] | Mapping[Any, int]
) -> dict[TopicAndPartition, int]:
    """The end offsets of the mirrors of partitions; missing mirrors are left out."""
    topics = target.topics()
    names = {(f"{job.alias}.{topic}", partition): (topic, partition) for topic, partition in places}
    there = [place for place in names if place[0] in topics]
    ends = target.end_offsets(there, skip_silent=True)
    return {names[place]: end for place, end in ends.items()}


def idle_cores(
    running: Running, settle: float = SETTLE_SECONDS, seconds: float = IDLE_SECONDS
) -> float:
    """The cores of an idle flow, over `seconds` after its start has settled."""
    pause = threading.Event()
    pause.wait(settle)
    before, began = cpu_seconds(running.pids), time.monotonic()
    pause.wait(seconds)
    cores = round((cpu_seconds(running.pids) - before) / (time.monotonic() - began), 3)
    running.check()
    return cores


def own_memory(running: Running) -> int:
    """Resident memory of all processes, without mapped files, MiB."""
    programs = ("python", "java")
    return round(sum(memory_mib(running.pids, None, name, own=True) for name in programs))


def send(bootstrap_servers: str, places: Sequence[TopicAndPartition]) -> None:
    """Write one record to each of the given partitions, as often as each is listed."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 20, **QUIET})
    for number, (topic, partition) in enumerate(places):
        producer.produce(topic, b"%d" % number, partition=partition)
        producer.poll(0)
    if left := producer.flush(180):
        raise ReplicationError(f"{left:,} records could not be written")
