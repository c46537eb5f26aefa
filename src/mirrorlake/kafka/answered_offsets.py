"""Offsets that a consumer asks brokers for: where logs begin and end, and committed ones."""

import logging
from collections.abc import Collection
from contextlib import closing
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from mirrorlake.kafka.client_settings import Settings
from mirrorlake.offsets.positions import Committed, TopicAndPartition

logger = logging.getLogger(__name__)

#: How long to wait for an answer, seconds.
ANSWER_SECONDS = 30.0


class Bounds(NamedTuple):
    """Where a log begins and ends: the first offset there, and the one behind the last one."""

    start: int
    end: int


def answered_offset(offset: int) -> int:
    """An offset of a log as a broker reported it.

    librdkafka reports no error, but OFFSET_INVALID (-1001) as the offset, if a partition lost its
    leader during the question. No log begins or ends there: as an end, it would mean that the log
    went back.

    Raises:
        KafkaException: it is not an offset (LEADER_NOT_AVAILABLE, which is tried again).
    """
    if offset < 0:
        raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
    return offset


def log_bounds(consumer: Consumer, key: TopicAndPartition, seconds: float) -> Bounds:
    """A partition's log bounds now, by an answer within so many seconds. Raises KafkaException."""
    bounds = consumer.get_watermark_offsets(TopicPartition(*key), seconds)
    return Bounds(*map(answered_offset, bounds))


def committed_by(
    client: Settings, group: str, keys: Collection[TopicAndPartition]
) -> dict[TopicAndPartition, Committed]:
    """What a group has committed, by a client of its own; see `committed_positions`.

    An AdminClient's `list_consumer_group_offsets` (librdkafka 2.16) crashes the process if the
    group's coordinator is not there yet. read_committed waits for positions of transactions that
    are still being committed (KIP-447).
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
