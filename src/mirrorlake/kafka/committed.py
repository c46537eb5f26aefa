"""What a group has committed in partitions: offsets and their metadata.

Queried by a consumer: an AdminClient's `list_consumer_group_offsets` (librdkafka 2.16) crashes the
process if the group's coordinator is not there yet.
"""

import logging
from collections.abc import Collection
from contextlib import closing

from confluent_kafka import Consumer, KafkaException, TopicPartition

from mirrorlake.kafka.client_settings import Settings
from mirrorlake.offsets.positions import Committed, TopicAndPartition

logger = logging.getLogger(__name__)

#: How long to wait for an answer, seconds.
ANSWER_SECONDS = 30.0


def committed_by(
    client: Settings, group: str, keys: Collection[TopicAndPartition]
) -> dict[TopicAndPartition, Committed]:
    """What a group has committed, by a client of its own; see `committed_positions`.

    read_committed waits for positions of transactions that are still being committed (KIP-447).
    """
    settings = {"group.id": group, "isolation.level": "read_committed", "enable.auto.commit": False}
    if not keys:
        return {}
    with closing(Consumer({**client, **settings, "logger": logger})) as consumer:
        return committed_positions(consumer, keys, ANSWER_SECONDS)


def committed_positions(
    consumer: Consumer, keys: Collection[TopicAndPartition], seconds: float
) -> dict[TopicAndPartition, Committed]:
    """What a consumer's group has committed, where there is a position. Raises KafkaException."""
    answers = consumer.committed([TopicPartition(*key) for key in sorted(keys)], seconds)
    for answer in answers:
        if answer.error is not None:
            raise KafkaException(answer.error)
    return {
        (answer.topic, answer.partition): Committed(answer.offset, answer.metadata or "")
        for answer in answers
        if answer.offset >= 0
    }
