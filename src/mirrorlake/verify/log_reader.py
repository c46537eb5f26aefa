"""Reading a range of offsets of one partition, as record batches: what is committed, and nothing of a group."""

import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from mirrorlake.errors import ClusterUnreachable, ClusterUnusable
from mirrorlake.kafka.refusals import reason_of
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.verify.digest import RECORDS
from mirrorlake.verify.throttle import Throttle

logger = logging.getLogger(__name__)

#: How long a cluster may be silent, seconds.
SILENCE_SECONDS = 60.0
#: What one batch may hold: records, and about so many bytes.
BATCH_RECORDS, BATCH_BYTES = 10_000, 16 << 20
_SETTINGS: Mapping[str, Any] = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "queued.max.messages.kbytes": 32 << 10,
    "fetch.message.max.bytes": 4 << 20,
    "fetch.wait.max.ms": 50,
}


class Bounds(NamedTuple):
    """Where a log begins and ends: the first offset there, and the one behind the last one."""

    start: int
    end: int


class LogReader:
    """Reads one cluster, with one consumer. Not thread safe.

    A range that begins where the one before it ended is read on, so that what the client has fetched ahead is not
    fetched twice.
    """

    def __init__(self, alias: str, settings: Mapping[str, Any], throttle: Throttle) -> None:
        self._alias = alias
        self._throttle = throttle
        own = {"group.id": f"mirrorlake-verify-{alias}", "logger": logger}
        self._consumer = Consumer({**settings, **_SETTINGS, **own})
        self._average = 1_000
        self._ahead: list[Message] = []
        self._next: tuple[TopicAndPartition, int] | None = None
        #: Where the log of the partition that was read last began.
        self.start = 0

    def bounds(self, key: TopicAndPartition) -> Bounds:
        """Where a partition's log begins and ends now; an empty one where there is no such partition. Raises
        ClusterUnusable."""
        try:
            return Bounds(*self._consumer.get_watermark_offsets(TopicPartition(*key), SILENCE_SECONDS))
        except KafkaException as error:
            code = error.args[0].code()
            if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC):
                return Bounds(0, 0)
            if code in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
                raise self._silent(key) from error
            raise self._refused(error.args[0]) from error

    def read(self, key: TopicAndPartition, first: int, end: int) -> Iterator[pa.RecordBatch]:
        """The committed records from offset `first` to in front of `end`, as far as the log has them, as RECORDS.

        Raises ClusterUnusable when the cluster falls silent, or refuses.
        """
        at, trimmed = first, True
        while trimmed:
            bounds = self.bounds(key)
            self.start = bounds.start
            at, stop = max(at, bounds.start), min(end, bounds.end)
            if at >= stop:
                return
            try:
                for messages in self._messages(key, at, stop):
                    at = messages[-1].offset() + 1
                    yield self._taken(messages)
                trimmed = False
            except _Trimmed:  # retention was quicker
                self._next = None

    def close(self) -> None:
        """Leave the cluster."""
        self._consumer.close()

    def _taken(self, messages: list[Message]) -> pa.RecordBatch:
        batch = _batch(messages)
        self._average = max(1, batch.nbytes // len(messages))
        self._throttle.took(batch.nbytes)
        return batch

    def _messages(self, key: TopicAndPartition, first: int, end: int) -> Iterator[list[Message]]:
        """Lists of messages, none of them empty. Raises _Trimmed where the log begins behind `first` by now."""
        goes_on, self._next = self._next == (key, first), None
        if not goes_on:
            self._ahead = []
            self._consumer.assign([TopicPartition(*key, first)])
        deadline = time.monotonic() + SILENCE_SECONDS
        ended = False
        while not ended:
            found, ended = (self._ahead, False) if self._ahead else self._polled()
            self._ahead = []
            if found or ended:
                deadline = time.monotonic() + SILENCE_SECONDS
            elif time.monotonic() > deadline:
                raise self._silent(key)
            if found and found[-1].offset() >= end - 1:
                wanted = [message for message in found if message.offset() < end]
                self._ahead, self._next = found[len(wanted) :], None if ended else (key, end)
                found, ended = wanted, True
            if found:
                yield found

    def _polled(self) -> tuple[list[Message], bool]:
        """What has come, and whether the log ends behind it."""
        found = self._consumer.consume(1, 0.5)  # as soon as something is there
        found += self._consumer.consume(max(1, min(BATCH_RECORDS, BATCH_BYTES // self._average)), 0)
        ended = False
        for error in (message.error() for message in found if message.error() is not None):
            if error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise _Trimmed
            ended = ended or error.code() == KafkaError._PARTITION_EOF
            if error.code() != KafkaError._PARTITION_EOF and not error.retriable():
                raise self._refused(error)
        return [message for message in found if message.error() is None], ended

    def _refused(self, error: KafkaError) -> ClusterUnusable:
        return ClusterUnusable(f"cluster {self._alias} cannot be read: {reason_of(error)}", alias=self._alias)

    def _silent(self, key: TopicAndPartition) -> ClusterUnreachable:
        return ClusterUnreachable(
            f"cluster {self._alias} gives no records of {key[0]}-{key[1]} within {SILENCE_SECONDS:.0f} s; what was "
            "compared until now is kept, run verify again",
            alias=self._alias,
        )


class _Trimmed(Exception):
    """The log begins behind the offset that is to be read by now."""


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
    pairs: list[tuple[str, bytes | None]] = []
    for message in messages:
        pairs += message.headers() or ()
        ends.append(len(pairs))
    kind = RECORDS.field("headers").type.value_type
    columns = [pa.array([name for name, _ in pairs], pa.string()), pa.array([value for _, value in pairs], pa.binary())]
    flat = pa.StructArray.from_arrays(columns, fields=list(kind))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), flat)
