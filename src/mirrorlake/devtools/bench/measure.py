"""Measures a run: watches the target's end offsets and the CPU time of process trees until every
record is there."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException

from mirrorlake.devtools.bench.contestants import Job, Running, TableRows
from mirrorlake.devtools.bench.payload import PARTITIONS
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.processes import cpu_seconds, memory_mib

POLL_SECONDS = 0.2
#: By which words of their commands mirrorlake's driver and Spark's Python workers are recognized.
DRIVER, WORKERS = "mirrorlake.cli.main", "pyspark.worker"
_NEW_TOPIC = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_LEADER_EPOCH,  # a leader that does not know yet that it is one (KIP-320)
    }
)


@dataclass(frozen=True)
class Sample:
    """What was seen at one time: offsets at the targets, rows in the stage to wait for, CPU seconds
    so far, those of executors in processes of their own among them, and the resident memory of
    mirrorlake's Python driver, and of the workers of those that run Spark (0 for the others)."""

    at: float
    written: int
    committed: int
    landed: int
    cpu: float
    brokers_cpu: float
    driver_mib: float = 0.0
    workers_mib: float = 0.0
    executors_cpu: float = 0.0


@dataclass(frozen=True)
class Race:
    """One measured run. `first_read` is when the contestant planned its first batch, None where it
    stages nothing."""

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
    executors: Callable[[], float] = lambda: 0.0,
) -> Race:
    """Sample until all records are committed at each target, and in the stage where there is one to
    wait for.

    Transactions add markers that count as offsets, so targets are done when they hold as many
    offsets as records and none is open. `executors` gives the CPU seconds of executors so far.
    Raises ReplicationError when a process ends or time is up.
    """
    rows = TableRows(running.table) if running.table is not None else None
    samples: list[Sample] = []
    first_read: float | None = None
    there: list[ClusterAdmin] = []
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while not samples or not finished(samples[-1], records, len(targets), rows is not None):
        running.check()
        if time.monotonic() > deadline:
            raise ReplicationError(
                f"{running.name} was not done after {timeout:.0f} s: see {running.log}"
            )
        first_read = first_read or running.reading_since()
        landed = rows.refresh() if rows is not None else 0
        there += [
            target
            for target in targets
            if target not in there and is_there(target, job.target_topic, job.partitions)
        ]
        ends = (ends_of(target, job.target_topic, job.partitions) for target in there)
        written, committed = map(sum, zip((0, 0), *ends, strict=True))
        samples.append(
            Sample(
                time.time(),
                written=written,
                committed=committed,
                landed=landed,
                cpu=cpu_seconds(running.pids),
                brokers_cpu=cpu_seconds(brokers),
                driver_mib=memory_mib(running.pids, DRIVER),
                workers_mib=memory_mib(running.pids, WORKERS),
                executors_cpu=executors(),
            )
        )
        pause.wait(POLL_SECONDS)
    return Race(running.name, records, tuple(samples), first_read)


def finished(sample: Sample, records: int, targets: int, staged: bool) -> bool:
    """Return whether a sample shows the end: all records at each of so many targets."""
    at_target = sample.committed >= records * targets and sample.committed == sample.written
    return at_target and (not staged or sample.landed >= records)


def is_there(target: ClusterAdmin, topic: str, partitions: int = PARTITIONS) -> bool:
    """Whether a target has a contestant's topic with all its partitions."""
    info = target.topics().get(topic)
    return info is not None and info.partitions >= partitions


def ends_of(target: ClusterAdmin, topic: str, partitions: int = PARTITIONS) -> tuple[int, int]:
    """Give the offsets written and committed; none for a topic so new that its partitions have no
    leader yet."""
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
    """How long it takes."""
    begun = time.monotonic()
    work()
    return time.monotonic() - begun
