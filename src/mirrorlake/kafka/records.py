"""Single records of a cluster, read without a group's position."""

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.values import Row
from mirrorlake.offsets.positions import TopicAndPartition

#: How long a cluster may take to give one record of each partition, seconds.
READ_SECONDS = 60.0
_SETTINGS = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    # Of each partition one record is wanted; where its batch is larger, the client asks for more by itself.
    "fetch.message.max.bytes": 64 << 10,
    "queued.min.messages": 1,
    "fetch.wait.max.ms": 50,
}


def first_rows(
    alias: str, settings: Mapping[str, str | int | bool], offsets: Mapping[TopicAndPartition, int]
) -> dict[TopicAndPartition, Row]:
    """The first committed record of each partition at or behind an offset; missing where there is none.

    Raises ClusterUnreachable when the cluster does not give them in time, KafkaException when it refuses.
    """
    consumer = Consumer({**settings, **_SETTINGS, "group.id": f"mirrorlake-land-{alias}-compare"})
    waiting, found = dict(offsets), dict[TopicAndPartition, Row]()
    deadline = time.monotonic() + READ_SECONDS
    try:
        consumer.assign([TopicPartition(*key, offset) for key, offset in offsets.items()])
        while waiting:
            message = consumer.poll(0.5)
            if message is None:
                if time.monotonic() > deadline:
                    raise ClusterUnreachable(
                        f"cluster {alias} did not give single records within {READ_SECONDS:.0f} s; they are asked for "
                        "again",
                        alias=alias,
                    )
                continue
            key = (message.topic(), message.partition())
            if waiting.pop(key, None) is None:
                continue
            consumer.incremental_unassign([TopicPartition(*key)])
            error = message.error()
            if error is None:
                epoch = message.leader_epoch()
                found[key] = Row(message.offset(), message.timestamp()[1], message.key(), message.value(), epoch)
            elif error.code() not in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):
                raise KafkaException(error)
    finally:
        consumer.close()
    return found
