"""Single records of a cluster, read without a group's position, and without a right on a group:
partitions are assigned with offsets, so that it does not matter if the coordinator of a group,
which librdkafka asks for at any rate, refuses."""

import time
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from mirrorlake.errors import AuthenticationFailed, ClusterUnreachable
from mirrorlake.kafka.refusals import Complaints, is_about_group, is_refusal, unusable
from mirrorlake.kafka.values import Row
from mirrorlake.offsets.positions import TopicAndPartition

#: How long a cluster may take to give one record of each partition, seconds.
READ_SECONDS = 60.0
_SETTINGS = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    # Of each partition one record is wanted; where its batch is larger, the client asks for more by
    # itself.
    "fetch.message.max.bytes": 64 << 10,
    "queued.min.messages": 1,
    "fetch.wait.max.ms": 50,
}


def first_rows(
    alias: str, settings: Mapping[str, str | int | bool], offsets: Mapping[TopicAndPartition, int]
) -> dict[TopicAndPartition, Row]:
    """The first committed record of each partition at or behind an offset; missing where there is
    none.

    Raises ClusterUnusable when the cluster does not give them in time, KafkaException when it
    refuses.
    """
    complaints = Complaints()
    group = {"group.id": f"mirrorlake-land-{alias}-compare", "error_cb": complaints.note}
    consumer = Consumer({**settings, **_SETTINGS, **group})
    waiting, rows = dict(offsets), dict[TopicAndPartition, Row]()
    deadline = time.monotonic() + READ_SECONDS
    try:
        consumer.assign([TopicPartition(*key, offset) for key, offset in offsets.items()])
        while waiting:
            message = consumer.poll(0.5)
            if message is None:
                if time.monotonic() > deadline:
                    raise _silent(alias, settings, complaints)
                continue
            key = (message.topic(), message.partition())
            if waiting.pop(key, None) is None:
                continue
            consumer.incremental_unassign([TopicPartition(*key)])
            error = message.error()
            if error is None:
                epoch = message.leader_epoch()
                rows[key] = Row(
                    message.offset(), message.timestamp()[1], message.key(), message.value(), epoch
                )
            elif error.code() not in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):
                raise KafkaException(error)
    finally:
        consumer.close()
    return rows


def first_records(
    alias: str,
    settings: Mapping[str, str | int | bool],
    bounds: Mapping[TopicAndPartition, tuple[int, int]],
    wanted: Callable[[int], bool],
) -> dict[TopicAndPartition, tuple[int, int]]:
    """The first committed record of each partition whose time, ms, is wanted, within a first offset
    and an end: its offset and its time. Missing where there is none.

    Raises ClusterUnusable when the cluster is silent, KafkaException when it refuses.
    """
    complaints = Complaints()
    own = {**_SETTINGS, "fetch.message.max.bytes": 1 << 20, "queued.min.messages": 100_000}
    group = {"group.id": f"mirrorlake-land-{alias}-compare", "error_cb": complaints.note}
    consumer = Consumer({**settings, **own, **group})
    waiting, matching = dict(bounds), dict[TopicAndPartition, tuple[int, int]]()
    heard = time.monotonic()
    try:
        consumer.assign([TopicPartition(*key, first) for key, (first, _) in bounds.items()])
        while waiting:
            messages = consumer.consume(10_000, 0.5)
            heard = time.monotonic() if messages else heard
            if time.monotonic() - heard > READ_SECONDS:
                raise _silent(alias, settings, complaints)
            for message in messages:
                key, error = (message.topic(), message.partition()), message.error()
                ends = (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET)
                if error is not None and error.code() not in ends and not is_about_group(error):
                    raise KafkaException(error)
                if key not in waiting:
                    continue
                if (
                    error is None
                    and message.offset() < waiting[key][1]
                    and wanted(message.timestamp()[1])
                ):
                    matching[key] = (message.offset(), message.timestamp()[1])
                if error is not None or key in matching or message.offset() >= waiting[key][1] - 1:
                    del waiting[key]
                    consumer.incremental_unassign([TopicPartition(*key)])
    finally:
        consumer.close()
    return matching


def _silent(
    alias: str, settings: Mapping[str, str | int | bool], complaints: Complaints
) -> AuthenticationFailed | ClusterUnreachable:
    """Why a cluster gives no records, as far as the client says."""
    if complaints.last is not None and is_refusal(complaints.last):
        return unusable(alias, settings, complaints.last)
    return ClusterUnreachable(
        f"cluster {alias} did not give single records within {READ_SECONDS:.0f} s; they are asked "
        "for again",
        alias=alias,
    )
