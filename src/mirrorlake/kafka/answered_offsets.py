"""Offsets that brokers answered, as opposed to what librdkafka puts in place of one."""

from confluent_kafka import KafkaError, KafkaException


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
