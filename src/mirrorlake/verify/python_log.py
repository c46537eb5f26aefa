"""A partition's log read by confluent-kafka's consumer, where the native reader cannot be used: the
same answers, at several times the cost. Partitions are assigned with offsets, so no right on a
group is needed."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from mirrorlake.kafka.refusals import Complaints, is_about_group
from mirrorlake.native.reader import ClusterSilent
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.verify.digest import RECORDS

#: What one batch may hold: records, and about so many bytes.
BATCH_RECORDS, BATCH_BYTES = 10_000, 16 << 20
#: How long an answer of any broker is waited for where a partition is silent, seconds.
_ANYBODY_SECONDS = 5.0
_SETTINGS: Mapping[str, Any] = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "queued.max.messages.kbytes": 32 << 10,
    "fetch.message.max.bytes": 4 << 20,
    "fetch.wait.max.ms": 50,
}


class PythonLog:
    """Reads one cluster. A range that begins where the one before it ended is read on."""

    def __init__(self, settings: Mapping[str, Any], patience_seconds: float) -> None:
        self._complaints = Complaints()
        self._consumer = Consumer({**settings, **_SETTINGS, "error_cb": self._complaints.note})
        self._patience = patience_seconds
        self._average = 1_000
        self._ahead: list[Message] = []
        self._next: tuple[TopicAndPartition, int] | None = None

    def read(self, key: TopicAndPartition, first: int, end: int) -> Iterator[pa.RecordBatch]:
        """The committed records from `first` to in front of `end`, which the log has, as RECORDS.

        Raises KafkaException: `_AUTO_OFFSET_RESET` where the log begins behind `first`,
        `_TIMED_OUT` where the partition is silent; ClusterSilent where none of the brokers answers.
        """
        for messages in self._messages(key, first, end):
            batch = _batch(messages)
            self._average = max(1, batch.nbytes // len(messages))
            yield batch

    def close(self) -> None:
        """Leave the cluster."""
        self._consumer.close()

    def _messages(self, key: TopicAndPartition, first: int, end: int) -> Iterator[list[Message]]:
        """Lists of messages, none of them empty."""
        goes_on, self._next = self._next == (key, first), None
        if not goes_on:
            self._ahead = []
            self._consumer.assign([TopicPartition(*key, first)])
        deadline = time.monotonic() + self._patience
        ended = False
        while not ended:
            messages, ended = (self._ahead, False) if self._ahead else self._polled()
            self._ahead = []
            if messages or ended:
                deadline, self._complaints.last = time.monotonic() + self._patience, None
            elif time.monotonic() > deadline:
                raise self._silent(key)
            if messages and messages[-1].offset() >= end - 1:
                wanted = [message for message in messages if message.offset() < end]
                self._ahead, self._next = messages[len(wanted) :], None if ended else (key, end)
                messages, ended = wanted, True
            if messages:
                yield messages

    def _silent(self, key: TopicAndPartition) -> KafkaException:
        """Why nothing comes: whether any broker answers says whether it is about the partition."""
        try:
            self._consumer.list_topics(key[0], _ANYBODY_SECONDS)
        except KafkaException as error:
            return ClusterSilent(self._complaints.last or error.args[0])
        return KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def _polled(self) -> tuple[list[Message], bool]:
        """What has come, and whether the log ends behind it."""
        messages = self._consumer.consume(1, 0.5)  # as soon as something is there
        messages += self._consumer.consume(
            max(1, min(BATCH_RECORDS, BATCH_BYTES // self._average)), 0
        )
        ended = False
        for error in (message.error() for message in messages if message.error() is not None):
            ended = ended or error.code() == KafkaError._PARTITION_EOF
            if (
                error.code() != KafkaError._PARTITION_EOF
                and not error.retriable()
                and not is_about_group(error)
            ):
                raise KafkaException(error)
        return [message for message in messages if message.error() is None], ended


def _batch(messages: list[Message]) -> pa.RecordBatch:
    columns = [
        pa.array([message.offset() for message in messages], pa.int64()),
        pa.array([message.timestamp()[1] for message in messages], pa.int64()),
        pa.array([message.key() for message in messages], pa.binary()),
        pa.array([message.value() for message in messages], pa.binary()),
        _headers(messages),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS)


def _headers(messages: list[Message]) -> pa.Array:
    """Headers as a column, without a mapping for each."""
    ends: list[int] = [0]
    pairs: list[tuple[bytes | None, bytes | None]] = []
    for message in messages:
        pairs += _pairs(message)
        ends.append(len(pairs))
    kind = RECORDS.field("headers").type.value_type
    columns = [
        pa.array([name for name, _ in pairs], pa.binary()),
        pa.array([value for _, value in pairs], pa.binary()),
    ]
    flat = pa.StructArray.from_arrays(columns, fields=list(kind))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), flat)


def _pairs(message: Message) -> list[tuple[bytes | None, bytes | None]]:
    """The headers of a record. Where a name is no UTF-8 confluent-kafka gives none of them: one
    without a name, which no staged record has, so that no reader takes it for the same."""
    try:
        return [(name.encode(), value) for name, value in message.headers() or ()]
    except SystemError:
        return [(None, None)]
