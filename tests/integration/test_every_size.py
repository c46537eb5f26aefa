"""A million records of every size from nothing to 10 MB: they arrive, and nobody's memory grows
with them."""

import random
import time
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

import mirrorlake
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic
from tests.support.replication import finish, start_run, write_topology

RECORDS, LARGEST, PARTITIONS = 1_000_000, 10_000_000, 4
#: What a Python process of the run may have, MiB: a worker holds what it gathers for a file, what
#: it has fetched ahead and a transaction. Without the stage's files that it has mapped: those pages
#: are the system's to take.
MOST_MIB = 1_500


@pytest.mark.slow
def test_a_million_records_of_every_size(
    clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    """Most are small, a thousand have more than 1 MB: 5 GB in all. `verify` then proves each by its
    content."""
    create_topic(clusters.east, topic_name, PARTITIONS, max_message_bytes=str(LARGEST + 10_000))
    load(clusters.east, topic_name)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    run = start_run(topology, "--once")
    most = watched(run.pid)
    assert finish(run) == 0, (tmp_path / "run.log").read_text()[-2_000:]
    assert max(most.values()) < MOST_MIB, most
    proven = mirrorlake.open(topology).verify()
    assert (proven.differences, proven.records, proven.proven) == ([], RECORDS, RECORDS)


def load(bootstrap: str, topic: str) -> None:
    """Sizes by a power law: as many records between 10 and 100 B as between 1 and 10 MB would be
    too many bytes."""
    dice = random.Random(19)
    data = dice.randbytes(LARGEST)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "message.max.bytes": LARGEST + 10_000,
            "linger.ms": 20,
            "batch.size": 1 << 20,
        }
    )
    for number in range(RECORDS):
        size = LARGEST if number == RECORDS // 2 else int(LARGEST * dice.random() ** 2_000)
        while True:
            try:
                producer.produce(topic, data[:size], partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0


def watched(pid: int) -> dict[int, float]:
    """The most memory that each Python process of a run has had until its end, MiB by process
    id."""
    most: dict[int, float] = {}
    root = psutil.Process(pid)
    while root.is_running() and root.status() != psutil.STATUS_ZOMBIE:
        for process in (root, *root.children(recursive=True)):
            try:
                if "python" in process.name():
                    memory = process.memory_info()
                    most[process.pid] = max(
                        most.get(process.pid, 0.0), (memory.rss - memory.shared) / 2**20
                    )
            except psutil.NoSuchProcess:
                continue  # it has ended meanwhile
        time.sleep(0.3)
    return most
