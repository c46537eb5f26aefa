"""Offsets that brokers answered, as opposed to what librdkafka puts in place of one."""

from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from mirrorlake.offsets.positions import TopicAndPartition


class Bounds(NamedTuple):
    """Where a log begins and ends: the first offset there, and the one behind the last one."""

    start: int
    end: int


def answered_offset(offset: int) -> int:
    """An offset of a log as a broker answered it.

    librdkafka ends a question without an error, and with OFFSET_INVALID (-1001) for an offset,
    where a partition lost its leader while it was asked. No log begins or ends there: taken for an
    end, it would be that of a log that went back.

    Raises:
        KafkaException: it is none (LEADER_NOT_AVAILABLE, which is tried again).
    """
    if offset < 0:
        raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
    return offset


def log_bounds(consumer: Consumer, key: TopicAndPartition, seconds: float) -> Bounds:
    """Where a partition's log begins and ends now, as an answer says that comes in so many seconds.
    Raises KafkaException."""
    bounds = consumer.get_watermark_offsets(TopicPartition(*key), seconds)
    return Bounds(*map(answered_offset, bounds))
