"""Starts a broker, sends usual requests, stops it: Java's class archive gets the classes.

Run by `spark/class_archive.py` in its own process; its data is thrown away.
"""

import tempfile
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo

TOPIC = "warmup"
_SECONDS = 30.0


def warm_up(directory: Path) -> None:
    """Make a topic, write to it in a transaction, read it, and commit a group's position."""
    with EmbeddedCluster(TOPIC, directory) as cluster:
        client = {"bootstrap.servers": cluster.bootstrap_servers}
        ClusterAdmin(TOPIC, client).create_topics([TopicInfo(TOPIC, 1, 1)])
        producer = Producer({**client, "transactional.id": TOPIC, "compression.type": "lz4"})
        producer.init_transactions(_SECONDS)
        producer.begin_transaction()
        producer.produce(TOPIC, b"value", b"key")
        producer.commit_transaction(_SECONDS)
        consumer = Consumer({**client, "group.id": TOPIC, "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        consumer.consume(1, _SECONDS)
        consumer.commit(asynchronous=False)
        consumer.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        warm_up(Path(folder))
