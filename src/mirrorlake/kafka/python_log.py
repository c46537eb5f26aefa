"""A `Log` by confluent-kafka's consumer, for where the native reader cannot be used: the same rows,
at several times the cost. Partitions are assigned with offsets, so it needs no right on a group.

`native/reader.py` defines when a range is over.
"""

import logging
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from operator import methodcaller
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from mirrorlake.kafka.refusals import is_about_group
from mirrorlake.native import PATIENCE_SECONDS
from mirrorlake.native.columns import HEADERS, SCHEMA
from mirrorlake.native.consumer_settings import SEND_SIZE, consumer_settings
from mirrorlake.native.reader import KEPT
from mirrorlake.native.received import bytes_received
from mirrorlake.native.silence import ClusterSilent, Complaints, Silence, no_record
from mirrorlake.offsets.positions import Ranges, TopicAndPartition

logger = logging.getLogger(__name__)

#: As the end of a range of `messages`: wherever the log ends. Without the first offset: none.
LOG_END = 2**63 - 1
#: The most that one batch holds: records, and approximately bytes.
_BATCH_RECORDS, _BATCH_BYTES = 10_000, 16 << 20
#: How long to wait for an answer of any broker when partitions are silent, seconds.
_ANY_BROKER_SECONDS = 5.0
#: Required by the consumer, but nothing is read from or committed to this group.
_GROUP = "mirrorlake-reads"


class PythonLog:
    """See `Log`. A range that begins where the partition's last one ended continues it."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        keep: bool = False,
        patience_seconds: float = PATIENCE_SECONDS,
        small_answers: bool = False,
    ) -> None:
        self._keep = keep
        self._complaints = Complaints()
        # At the ends of logs it would otherwise query the brokers fifty times a second.
        waiting = {"fetch.wait.max.ms": 500} if keep else {}
        effective = consumer_settings({**waiting, **settings}, small_answers)
        received = partial(bytes_received, int(effective[SEND_SIZE]))
        self._silence = Silence(patience_seconds, received)
        group = {"group.id": settings.get("group.id") or _GROUP}
        own = {"logger": logger, "error_cb": self._complaints.note}
        self._consumer = Consumer({**effective, **group, **own})
        self._average = 1_000  # bytes of a record
        #: The next offset of each assigned partition, and log ends as the client reports them.
        self._next: dict[TopicAndPartition, int] = {}
        self._log_ends: dict[TopicAndPartition, int] = {}
        self._ahead: list[Message] = []

    def read(self, ranges: Ranges) -> Iterator[tuple[TopicAndPartition, pa.RecordBatch]]:
        for key, messages in self.messages(ranges):
            batch = _batch(messages)
            self._average = max(1, batch.nbytes // len(messages))
            yield key, batch

    def messages(self, ranges: Ranges) -> Iterator[tuple[TopicAndPartition, list[Message]]]:
        """The same as `Message`s, in non-empty lists. The caller may `leave` a partition."""
        ends = {key: end for key, (first, end) in ranges.items() if first < end}
        self.keep_prefetched(ends)
        self._assign({key: ranges[key][0] for key in ends})
        taken, self._ahead = self._ahead, []
        finished = False
        self._silence.heard()
        try:
            while True:
                yield from self._sorted(taken, ends).items()
                over = [key for key in self._next if self._is_over(key, ends[key])]
                if finished := len(over) == len(self._next):
                    return
                if over and (not self._keep or len(self._ahead) > KEPT):
                    self.leave(over)
                if taken := self._take():
                    self._complaints.last = None
                    self._silence.heard()
                elif self._silence.is_too_long():
                    raise self._silent(ends)
        finally:
            if not (finished and self._keep):
                self.leave(list(self._next))

    def leave(self, keys: Collection[TopicAndPartition]) -> None:
        """Stop reading some partitions, and drop what was fetched of them."""
        if keys:
            self._consumer.incremental_unassign([TopicPartition(*key) for key in keys])
            for key in keys:
                self._next.pop(key)
                self._log_ends.pop(key, None)
            self._ahead = [message for message in self._ahead if _place(message) in self._next]

    def keep_prefetched(self, keys: Collection[TopicAndPartition]) -> None:
        self.leave([key for key in self._next if key not in keys])

    def pause(self) -> None:
        """See `Log`: how much was fetched ahead is not known, so it is kept."""

    def close(self) -> None:
        self._next.clear()  # an unfinished reading then has nothing left to leave
        self._consumer.close()

    def _assign(self, firsts: Mapping[TopicAndPartition, int]) -> None:
        """Read partitions from these offsets on; reassign those that stand elsewhere."""
        moved = {key: first for key, first in firsts.items() if self._next.get(key) != first}
        self.leave([key for key in moved if key in self._next])
        if moved:
            places = [TopicPartition(*key, first) for key, first in moved.items()]
            self._consumer.incremental_assign(places)
            self._next.update(moved)

    def _sorted(
        self, taken: list[Message], ends: Mapping[TopicAndPartition, int]
    ) -> dict[TopicAndPartition, list[Message]]:
        """The records within the ranges, by partition; those behind them are kept for later."""
        records: dict[TopicAndPartition, list[Message]] = {}
        for message in taken:
            key, error = _place(message), message.error()
            if error is not None:
                self._take_error(key, error, message.offset(), ends)
            elif key not in self._next:
                continue
            elif message.offset() < ends[key]:
                records.setdefault(key, []).append(message)
                self._next[key] = message.offset() + 1
            else:
                self._ahead.append(message)
                self._next[key] = ends[key]
        return records

    def _take_error(
        self,
        key: TopicAndPartition,
        error: KafkaError,
        offset: int,
        ends: Mapping[TopicAndPartition, int],
    ) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            if key in self._next:
                self._log_ends[key] = offset
        elif key not in self._next:
            if not is_about_group(error):
                self._complaints.note(error)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET and ends[key] == LOG_END:
            self.leave([key])
        elif not is_about_group(error):
            text = f"{key[0]}-{key[1]} cannot be read from offset {self._next[key]}: {error.str()}"
            raise KafkaException(KafkaError(error.code(), text))

    def _is_over(self, key: TopicAndPartition, end: int) -> bool:
        """Whether a range has no more records to come."""
        log_end = self._log_ends.get(key, -1)
        if self._next[key] < end <= log_end:
            self._next[key] = end
        return self._next[key] >= end or (end == LOG_END and log_end >= 0)

    def _take(self) -> list[Message]:
        """Take what has arrived, as soon as anything has."""
        messages: list[Message] = self._consumer.consume(1, 0.5)
        room = max(1, min(_BATCH_RECORDS, _BATCH_BYTES // self._average))
        return messages + self._consumer.consume(room, 0) if messages else messages

    def _silent(self, ends: Mapping[TopicAndPartition, int]) -> KafkaException:
        """Why nothing arrives; if any broker answers, only the partitions are concerned."""
        silent = self._silence.seconds
        try:
            self._consumer.list_topics(next(iter(self._next))[0], _ANY_BROKER_SECONDS)
        except KafkaException as error:
            return ClusterSilent(self._complaints.last or error.args[0])
        waiting = [f"{t}-{p}" for t, p in self._next if not self._is_over((t, p), ends[t, p])]
        return no_record(waiting, silent, self._complaints.last)


def _place(message: Message) -> TopicAndPartition:
    return message.topic(), message.partition()


def _batch(messages: list[Message]) -> pa.RecordBatch:
    kinds, times = zip(*(message.timestamp() for message in messages), strict=True)
    columns = [
        [message.partition() for message in messages],
        [message.offset() for message in messages],
        times,
        [kind - 1 for kind in kinds],  # confluent-kafka counts from "none"
        [message.key() for message in messages],
        [message.value() for message in messages],
    ]
    arrays = [
        pa.array(column, pa.int64()).view(field.type)
        if pa.types.is_timestamp(field.type)
        else pa.array(column, field.type)
        for column, field in zip(columns, SCHEMA, strict=False)
    ]
    return pa.RecordBatch.from_arrays([*arrays, _headers(messages)], schema=SCHEMA)


def _headers(messages: list[Message]) -> pa.Array:
    """Headers as a column, without a mapping for each."""
    ends: list[int | None] = []
    pairs: list[tuple[str | None, bytes | None]] = []
    for message in messages:
        of_record = _pairs(message)
        ends.append(len(pairs) if of_record else None)  # a list without a start offset is null
        pairs += of_record
    if not pairs:
        return pa.nulls(len(messages), HEADERS)
    kind = HEADERS.value_type
    columns = [
        pa.array(column, field.type)
        for column, field in zip(zip(*pairs, strict=True), kind, strict=True)
    ]
    flat = pa.StructArray.from_arrays(columns, fields=list(kind))
    return pa.ListArray.from_arrays(pa.array([*ends, len(pairs)], pa.int32()), flat, HEADERS)


def _pairs(message: Message) -> list[tuple[str | None, bytes | None]]:
    """The headers of a record. If a name is not UTF-8, confluent-kafka gives none: then a nameless
    one, which no staged record has, so that no reader takes the two for equal."""
    try:
        return list(_headers_of(message) or ())
    except SystemError:
        return [(None, None)]


#: `Message.headers` leaves an exception set beside its answer. Called this way Python checks for
#: that; a direct call in hot code may not, and the exception comes up lines later.
_headers_of = methodcaller("headers")
