"""Offsets that brokers reported, as opposed to librdkafka's placeholders for them."""

from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from mirrorlake.offsets.positions import TopicAndPartition


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
