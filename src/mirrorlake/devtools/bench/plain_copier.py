"""A plain copier by librdkafka, which stages nothing, maps nothing and may write a record twice:
the upper bound of a machine.

    python -m mirrorlake.devtools.bench.plain_copier SOURCE TOPIC TARGET TARGET_TOPIC

Two processes, each with half of the partitions, read and send by mirrorlake's compiled loops: the
difference is the cost of staging, exactly once and the map.
"""

import multiprocessing
import signal
import sys
from collections.abc import Mapping

from confluent_kafka.admin import AdminClient

from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.native.producer import Producer
from mirrorlake.native.reader import NativeReader

_PROCESSES = 2
_SETTINGS: Settings = {
    "compression.type": "lz4",
    "enable.idempotence": True,
    "linger.ms": 20,
    "batch.size": 1 << 20,
    "queue.buffering.max.messages": 400_000,
    "queue.buffering.max.kbytes": 256 << 10,
}


def copy(source: str, target: str, target_topic: str, ends: Mapping[tuple[str, int], int]) -> None:
    """Copy partitions from their beginning to the given ends."""
    reader = NativeReader({"bootstrap.servers": source})
    producer = Producer({"bootstrap.servers": target, **_SETTINGS})
    for (_, partition), rows in reader.read({key: (0, end) for key, end in ends.items()}):
        shipment = producer.shipment(target_topic, partition, rows)
        while True:
            try:
                shipment.send()
                break
            except BufferError:
                producer.flush(0.05)
    while producer.flush(60.0):
        pass
    reader.close()


def main(source: str, topic: str, target: str, target_topic: str) -> None:
    """Copy the existing records, then wait to be ended."""
    partitions = len(
        AdminClient({"bootstrap.servers": source}).list_topics(topic, 30).topics[topic].partitions
    )
    ends = ClusterAdmin("source", {"bootstrap.servers": source}).end_offsets(
        [(topic, n) for n in range(partitions)]
    )
    ClusterAdmin("target", {"bootstrap.servers": target}).create_topics(
        [TopicInfo(target_topic, partitions, 1)]
    )
    shares = [
        {key: end for key, end in ends.items() if key[1] % _PROCESSES == n}
        for n in range(_PROCESSES)
    ]
    start = multiprocessing.get_context("spawn").Process
    copiers = [
        start(target=copy, args=(source, target, target_topic, share), daemon=True)
        for share in shares
    ]
    for copier in copiers:
        copier.start()
    for copier in copiers:
        copier.join()
        if copier.exitcode:
            sys.exit(copier.exitcode)
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
