"""Offsets of many partitions, asked for at once; a leader that does not answer holds up no other."""

import logging
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future

from confluent_kafka import OFFSET_END, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import ListOffsetsResultInfo, OffsetSpec

from mirrorlake.kafka.admin_connection import ANSWER_SECONDS, AdminConnection
from mirrorlake.kafka.answered_offsets import answered_offset
from mirrorlake.kafka.refusals import reason_of
from mirrorlake.offsets.positions import LogEnds, TopicAndPartition

logger = logging.getLogger(__name__)

#: What each partition's leader will answer.
OffsetRequests = Mapping[TopicAndPartition, "Future[ListOffsetsResultInfo]"]


def ask(
    connection: AdminConnection, partitions: Iterable[TopicAndPartition], spec: OffsetSpec, committed: bool
) -> OffsetRequests:
    """Ask for offsets; with `committed` the end is the last stable offset (read_committed). All requests at once."""
    request = {TopicPartition(topic, partition): spec for topic, partition in partitions}
    if not request:
        return {}
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    futures = connection.connected().client.list_offsets(request, isolation_level=level, request_timeout=ANSWER_SECONDS)
    return {(key.topic, key.partition): future for key, future in futures.items()}


def answered(connection: AdminConnection, asked: OffsetRequests) -> dict[TopicAndPartition, int]:
    """The offsets that were asked for. Partitions without a record of the time that was asked for are missing; those
    whose leader does not answer are, too, and a warning is logged."""
    offsets, silent = {}, {}
    for key, future in asked.items():
        try:
            offset = future.result().offset
            if offset != OFFSET_END:  # no record is so late
                offsets[key] = answered_offset(offset)
        except KafkaException as error:
            silent[key] = reason_of(error.args[0])
    if silent:
        (topic, partition), why = next(iter(silent.items()))
        logger.warning(
            "cluster %s does not report the offsets of %d partitions, such as %s-%d: %s",
            connection.alias,
            len(silent),
            topic,
            partition,
            why,
        )
    return offsets


def log_ends(
    connection: AdminConnection, partitions: Collection[TopicAndPartition]
) -> dict[TopicAndPartition, LogEnds]:
    """What is there of some partitions, up to the high watermark; those that do not answer are missing."""
    starts = ask(connection, partitions, OffsetSpec.earliest(), False)
    ends = ask(connection, partitions, OffsetSpec.latest(), False)
    logs = {}
    for key in partitions:
        try:
            start, end = answered_offset(starts[key].result().offset), ends[key].result()
            logs[key] = LogEnds(start, answered_offset(end.offset), _epoch(end))
        except KafkaException as error:
            logger.warning("cluster %s: offsets of %s-%d: %s", connection.alias, *key, reason_of(error.args[0]))
    return logs


def _epoch(info: ListOffsetsResultInfo) -> int | None:
    return None if info.leader_epoch is None or info.leader_epoch < 0 else int(info.leader_epoch)


def newest_times(
    connection: AdminConnection, partitions: Collection[TopicAndPartition]
) -> dict[TopicAndPartition, int]:
    """The newest timestamp (ms) of each partition; those without records, and those that do not answer, are missing."""
    times = {}
    for key, future in ask(connection, partitions, OffsetSpec.max_timestamp(), False).items():
        try:
            timestamp = future.result().timestamp
        except KafkaException as error:
            logger.warning("cluster %s: newest record of %s-%d: %s", connection.alias, *key, reason_of(error.args[0]))
            continue
        if timestamp >= 0:
            times[key] = timestamp
    return times
