"""Writes to the source while the demo runs."""

import json
import threading

from confluent_kafka import Producer


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
