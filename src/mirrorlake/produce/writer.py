"""One shard's producer: records in, Kafka transactions out, and the exact target offset of every record.

The rules of DESIGN section 3, for each transaction: the records, and with `send_offsets_to_transaction` the flow's
position on the *target* partition, with metadata that names what was written since the map was last appended to
(`core.runs.Written`). Kafka commits both or neither.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import length_hint
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    ThrottleEvent,
    TopicPartition,
)

from mirrorlake import crash
from mirrorlake.core.batch import PartitionPlan
from mirrorlake.core.pace import Pace
from mirrorlake.core.runs import Segment, Written, encode_written, segments_of
from mirrorlake.errors import LayoutError, TargetRecreated, TargetRefused
from mirrorlake.produce.provenance import Provenance, may_be_of, stamped

logger = logging.getLogger(__name__)

#: How long the target may be silent, not acknowledge a single record, before the task gives up and is tried again,
#: seconds. Tasks that wait for a target that is gone hold the cores that other flows need.
CALL_SECONDS = 20.0
#: How often it is looked whether acknowledgements came in, seconds.
LOOK_SECONDS = 1.0
#: How long a fresh producer waits for the target's first answer, seconds.
ANSWER_SECONDS = 5.0
#: How long a producer may take to hear of a partition that was just added, seconds.
NEW_PARTITION_SECONDS = 10.0
_NOT_SEEN_YET = (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)
#: Errors beside those that Kafka calls retriable that trying again may mend: the topic is then made, if need be.
_PASSING = (KafkaError._PURGE_QUEUE, KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT, *_NOT_SEEN_YET)
#: Kafka's default for `offset.metadata.max.bytes`, less some room.
METADATA_BYTES = 4_000
#: Ours where librdkafka's defaults are made for small producers; a cluster's `producer` block overrides them.
PRODUCER_SETTINGS: Mapping[str, str | int | bool] = {
    "acks": "all",
    "enable.idempotence": True,
    "compression.type": "lz4",
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 1_048_576,
    "message.max.bytes": 100_000_000,  # the broker decides what is too large
    "transaction.timeout.ms": 60_000,
}


#: Settings of the client that reads the target's end.
_READER: Mapping[str, str | int | bool] = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
}


@dataclass(frozen=True)
class Target:
    """How a shard reaches its target: rendered librdkafka settings and the names it goes by there."""

    client: Mapping[str, str | int | bool]
    producer: Mapping[str, str | int | bool]
    group_id: str
    transactional_id: str
    shard_count: int
    transactional: bool
    provenance: Provenance | None = None


@dataclass
class Chunk:
    """Consecutive staged rows of one partition that go into one transaction."""

    plan: PartitionPlan
    rows: pa.RecordBatch
    offsets: np.ndarray


class Interleaved(Exception):
    """Somebody else wrote into the target partition between our records; offsets have to be asked for one by one."""


class MetadataFull(Exception):
    """What was written since the map was last appended to does not fit into the group's metadata any more."""


class TooSlow(Exception):
    """The target does not take a transaction within the time that one may be open: smaller ones have to do."""


class _Patience:
    """Tells a target that is slow from one that is gone: as long as acknowledgements come in, it is waited for.

    It is also the producer's `throttle_cb`: a broker that holds a client to a quota says for how long it will not read
    from it, and is not gone meanwhile.
    """

    def __init__(self) -> None:
        self._muted_until = 0.0
        self._left = 0
        self._since = time.monotonic()

    def __call__(self, event: ThrottleEvent) -> None:
        # Answers on other connections, which are not held up, say 0 meanwhile.
        self._muted_until = max(self._muted_until, time.monotonic() + event.throttle_time)

    def call_seconds(self) -> float:
        """How long one call to the target may take, seconds."""
        return CALL_SECONDS + max(0.0, self._muted_until - time.monotonic())

    def start(self) -> None:
        """The time of silence counts from now on."""
        self._left, self._since = 0, time.monotonic()

    def over(self, left: int) -> bool:
        """Whether there was no acknowledgement for too long; `left` records have none yet."""
        now = time.monotonic()
        if left < self._left:
            self._since = now
        self._left = left
        return now - max(self._since, self._muted_until) > CALL_SECONDS

    def check(self, left: int) -> None:
        """Raise KafkaException when there was no acknowledgement for too long."""
        if self.over(left):
            raise KafkaException(
                KafkaError(
                    KafkaError._TIMED_OUT,
                    f"{left} records are not acknowledged, and none was for {CALL_SECONDS:.0f} s",
                )
            )


class ShardWriter:
    """A producer with one `transactional.id`. Not thread safe; kept in a Python worker between batches.

    `pace` is how large its transactions may be; it outlives the producer.
    """

    def __init__(self, target: Target, pace: Pace | None = None) -> None:
        self.target = target
        self.pace = pace or Pace()
        self._patience = _Patience()
        #: The target partitions of which this producer has asked for the position.
        self.asked: set[tuple[str, int]] = set()
        settings: dict[str, Any] = {**PRODUCER_SETTINGS, **target.client, **target.producer}
        settings |= {"logger": logger, "throttle_cb": self._patience}
        if target.transactional:
            settings["transactional.id"] = target.transactional_id
        else:
            # Records may wait in the producer's queue for as long as others are acknowledged.
            settings.setdefault("message.timeout.ms", 0)
        # Half of the time after which the broker ends a transaction: the other half is for the calls at its end.
        self._open_seconds = int(settings["transaction.timeout.ms"]) / 2_000
        self._producer = Producer(settings)
        # read_committed makes it wait for positions of transactions that are still being committed (KIP-447).
        group = {"group.id": target.group_id, "isolation.level": "read_committed", "logger": logger}
        self._group = Consumer({**target.client, **group})
        self._ask_each = False
        self._refused_before = False
        if target.transactional:
            # So that a task that is tried again does not hold a core for long where nobody answers.
            self._producer.list_topics(timeout=ANSWER_SECONDS)
            # Fences whoever had this id before, and ends the transaction that they left open.
            self._producer.init_transactions(CALL_SECONDS)

    def positions(self, keys: Sequence[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, str]]:
        """The flow's committed (position, metadata) of (target topic, partition) keys; those without are left out.

        Asked of the consumer: an AdminClient's `list_consumer_group_offsets` (librdkafka 2.16) crashes the process when
        the group's coordinator is not there yet.
        """
        found = self._group.committed([TopicPartition(topic, partition) for topic, partition in keys], CALL_SECONDS)
        for item in found:
            if item.error is not None:
                raise KafkaException(item.error)
        self.asked.update(keys)
        return {(item.topic, item.partition): (item.offset, item.metadata or "") for item in found if item.offset >= 0}

    def first_record(self, topic: str, partition: int, start: int) -> int | None:
        """The offset of the first committed record at or behind `start` that may be this flow's; None where there is
        none. With provenance headers a record without the flow's own is somebody else's."""
        _, high = self._group.get_watermark_offsets(TopicPartition(topic, partition), CALL_SECONDS)
        if high <= start:
            return None
        reader = Consumer({**self.target.client, **_READER, "group.id": self.target.group_id, "logger": logger})
        try:
            reader.assign([TopicPartition(topic, partition, start)])
            while True:
                messages = reader.consume(10_000, CALL_SECONDS)
                if not messages:
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{topic}-{partition} could not be read"))
                for message in messages:
                    error = message.error()
                    if error is not None and error.code() == KafkaError._PARTITION_EOF:
                        return None
                    if error is not None:
                        raise KafkaException(error)
                    if may_be_of(message.headers(), self.target.provenance):
                        return int(message.offset())
        finally:
            reader.close()

    def commit_positions(self, ends: Sequence[tuple[PartitionPlan, int, Sequence[Written]]]) -> None:
        """Commit positions (next source offsets) without writing a record, each with what the map does not have yet."""
        offsets = [
            TopicPartition(plan.target_topic, plan.partition, position, self._metadata(plan, written))
            for plan, position, written in ends
        ]
        self._producer.begin_transaction()
        self._producer.send_offsets_to_transaction(
            offsets, self._group.consumer_group_metadata(), self._patience.call_seconds()
        )
        self._producer.commit_transaction(self._patience.call_seconds())

    def _metadata(self, plan: PartitionPlan, written: Sequence[Written]) -> str:
        """The metadata of a position. Raises MetadataFull."""
        text = encode_written(written, self.target.shard_count, plan.generation, plan.floor.target_generation)
        if len(text) > METADATA_BYTES:
            raise MetadataFull
        return text

    def write(
        self, chunks: Sequence[Chunk], written: Mapping[tuple[str, int], Sequence[Written]]
    ) -> list[tuple[Chunk, list[Segment]]]:
        """Write chunks in one transaction; `written` is what each (source topic, partition) has in its metadata.

        Returns each chunk with its segments. Raises MetadataFull or TooSlow (nothing was written, fewer records may
        be), TargetRefused, KafkaException.
        """
        while True:
            try:
                done = self._transaction(chunks, written)
                self._refused_before = False
                return done
            except Interleaved:
                # Nothing of it is visible. Once more, and from now on with the offset of each record.
                logger.info("another producer writes to %s; asking for every offset", chunks[0].plan.target_topic)
                self._producer.abort_transaction(self._patience.call_seconds())
                self._ask_each = True
            except (MetadataFull, TooSlow, TargetRefused) as error:
                if self.target.transactional:
                    self._producer.abort_transaction(self._patience.call_seconds())
                self._refused_before = isinstance(error, TargetRefused)
                raise
            except KafkaException:
                if not (self._refused_before and self.target.transactional):
                    raise
                # Refused records leave a hole in the producer's sequence. librdkafka (2.16) finds that out with the
                # next transaction, fails it, and takes a new epoch when it is aborted; who is fenced is refused that.
                self._refused_before = False
                self._producer.abort_transaction(self._patience.call_seconds())

    def _transaction(
        self, chunks: Sequence[Chunk], written: Mapping[tuple[str, int], Sequence[Written]]
    ) -> list[tuple[Chunk, list[Segment]]]:
        begun = time.monotonic()
        self._patience.start()
        if self.target.transactional:
            self._producer.begin_transaction()
        ask_each = self._ask_each or not self.target.transactional
        results = [_Delivery(chunk, ask_each, self.target.provenance, self._patience) for chunk in chunks]
        for result in results:
            result.send(self._producer)
        crash.reached("mid-transaction")
        self._wait(chunks, begun)
        done = [(result.chunk, result.segments()) for result in results]
        for chunk, segments in done:
            check_target_rises(chunk, segments)
        if self.target.transactional:
            self._producer.send_offsets_to_transaction(
                self._offsets(done, written), self._group.consumer_group_metadata(), self._patience.call_seconds()
            )
            self._producer.commit_transaction(self._patience.call_seconds())
            crash.reached("kafka-committed")
        self.pace.measured(size_of(chunks), time.monotonic() - begun)
        return done

    def _wait(self, chunks: Sequence[Chunk], begun: float) -> None:
        """Wait for all acknowledgements. Raises KafkaException when none come in, TooSlow when too few do."""
        count = sum(len(chunk.offsets) for chunk in chunks)
        while left := self._producer.flush(LOOK_SECONDS):
            seconds = time.monotonic() - begun
            slow = self.target.transactional and count > 1 and seconds > self._open_seconds
            if slow or self._patience.over(left):
                self.pace.failed(size_of(chunks) * max(0, count - left) // count, seconds)
            self._patience.check(left)
            if slow:
                logger.info("the target took %d of %d records in %.0f s: fewer at a time", count - left, count, seconds)
                raise TooSlow

    def _offsets(
        self, done: Sequence[tuple[Chunk, list[Segment]]], written: Mapping[tuple[str, int], Sequence[Written]]
    ) -> list[TopicPartition]:
        """The positions to commit: offset = next source offset, metadata = what the map does not have yet."""
        ends: dict[tuple[str, int], tuple[Chunk, list[Written]]] = {}
        for chunk, segments in done:
            key = (chunk.plan.topic, chunk.plan.partition)
            known = ends[key][1] if key in ends else list(written.get(key, ()))
            ends[key] = (chunk, add_written(known, segments))
        offsets = []
        for chunk, items in ends.values():
            metadata = self._metadata(chunk.plan, items)
            position = int(chunk.offsets[-1]) + 1
            offsets.append(TopicPartition(chunk.plan.target_topic, chunk.plan.partition, position, metadata))
        return offsets


def add_written(written: list[Written], segments: Sequence[Segment]) -> list[Written]:
    """Add segments to what has been written, joining where target offsets go on."""
    items = list(written)
    for segment in segments:
        last = items[-1] if items else None
        if last is not None and last.target_first + last.record_count == segment.target_first:
            items[-1] = Written(last.source_first, last.target_first, last.record_count + segment.record_count)
        else:
            items.append(Written(segment.source_first, segment.target_first, segment.record_count))
    return items


def size_of(chunks: Iterable[Chunk]) -> int:
    """The size of the rows of chunks, Arrow's bytes."""
    return sum(int(chunk.rows.nbytes) for chunk in chunks)


class _Delivery:
    """One chunk on its way: sends its rows, and learns their target offsets from the first and last acknowledgement."""

    def __init__(self, chunk: Chunk, ask_each: bool, provenance: Provenance | None, patience: _Patience) -> None:
        self.chunk = chunk
        self._patience = patience
        self._provenance = provenance
        self._ask_each = ask_each
        count = len(chunk.offsets)
        self._targets = np.full(count if ask_each else 2, -1, dtype=np.int64)
        self._error: KafkaError | None = None

    def send(self, producer: Producer) -> None:
        """Hand all rows to the producer: where most of a worker's time goes, so the loop over records is one in C."""
        rows, topic, partition = self.chunk.rows, self.chunk.plan.target_topic, self.chunk.plan.partition
        times = pc.fill_null(rows.column("timestamp").cast(pa.timestamp("ms"), safe=False).cast(pa.int64()), 0)
        columns = [
            _objects(rows.column("key")),
            repeat(partition),
            self._callbacks(rows.num_rows),
            repeat(None),  # on_delivery's place: by place, the one before, its elder name, is what counts
            times.to_pylist(),
            _headers(rows.column("headers"), self._provenance),
        ]
        values, deadline = rows.column("value").to_pylist(), time.monotonic() + NEW_PARTITION_SECONDS
        while True:
            left = iter(values)
            try:
                deque(map(producer.produce, repeat(topic), left, *columns), maxlen=0)
                break
            except (BufferError, KafkaException) as error:
                at = len(values) - length_hint(left) - 1  # the record that was not taken
                values, columns = values[at:], [item[at:] if isinstance(item, list) else item for item in columns]
                self._make_room(producer, error, deadline)
        producer.poll(0)

    def _make_room(self, producer: Producer, error: Exception, deadline: float) -> None:
        """Wait until the producer may take a record that it did not take. Raises what is no matter of waiting."""
        if isinstance(error, BufferError):
            producer.poll(0.1)
            self._patience.check(len(producer))
            return
        if error.args[0].code() not in _NOT_SEEN_YET or time.monotonic() > deadline:
            raise self._refused(error.args[0]) from error
        # A partition that was added a moment ago: the producer knows the topic as it was.
        producer.list_topics(self.chunk.plan.target_topic, timeout=CALL_SECONDS)
        producer.poll(0.05)

    def _callbacks(self, count: int) -> list[Callable[[KafkaError | None, Message], None] | None]:
        """What to call when a row is acknowledged: for the first and the last row, or for each."""

        def into(slots: int | slice) -> Callable[[KafkaError | None, Message], None]:
            def acknowledged(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    self._error = self._error or error
                else:
                    self._targets[slots] = message.offset()

            return acknowledged

        if self._ask_each:
            return [into(index) for index in range(count)]
        if count == 1:
            return [into(slice(0, 2))]
        return [into(0), *([None] * (count - 2)), into(1)]

    def segments(self) -> list[Segment]:
        """The chunk's segments. Raises Interleaved when its target offsets are not consecutive and were not all asked
        for, TargetRefused when a record was not acknowledged."""
        if self._error is not None:
            raise self._refused(self._error)
        targets, offsets = self._targets, self.chunk.offsets
        if bool(np.any(targets < 0)):
            raise self._refused(KafkaError(KafkaError._TIMED_OUT, "a record was not acknowledged"))
        if int(targets[-1] - targets[0]) == len(offsets) - 1:
            return segments_of(offsets, int(targets[0]))
        if not self._ask_each:
            raise Interleaved
        breaks = np.flatnonzero(np.diff(targets) != 1) + 1
        bounds = [0, *breaks.tolist(), len(targets)]
        return [
            segment
            for start, end in zip(bounds, bounds[1:], strict=False)
            for segment in segments_of(offsets[start:end], int(targets[start]))
        ]

    def _refused(self, error: KafkaError) -> TargetRefused | KafkaException:
        if error.retriable() or error.fatal() or error.code() in _PASSING:
            return KafkaException(error)
        plan = self.chunk.plan
        first, last = int(self.chunk.offsets[0]), int(self.chunk.offsets[-1])
        return TargetRefused(
            f"the target refused records of {plan.topic}-{plan.partition} between offsets {first} and {last} for topic "
            f"{plan.target_topic}: {error.str()}; change the target's limits or permissions, then run again",
            topic=plan.topic,
            partition=plan.partition,
            first_offset=first,
            last_offset=last,
            reason=error.name(),
        )


def _objects(column: pa.Array) -> list[Any] | Iterator[None]:
    """A column as Python's objects; nothing is made where all are null, as keys often are."""
    return repeat(None) if column.null_count == len(column) else column.to_pylist()


def _headers(
    column: pa.Array, provenance: Provenance | None
) -> list[list[tuple[str, bytes | None]] | None] | Iterator[None]:
    """The headers of each row as confluent-kafka takes them; None for a row that has none."""
    if column.null_count == len(column) and provenance is None:
        return repeat(None)
    rows = column.to_pylist()
    return [stamped([(header["key"], header["value"]) for header in row or ()], provenance) or None for row in rows]


def check_rising(chunk: Chunk, previous: int | None) -> None:
    """Raise LayoutError unless a chunk's offsets rise and lie above `previous`."""
    offsets = chunk.offsets
    if (previous is not None and int(offsets[0]) <= previous) or bool(np.any(np.diff(offsets) <= 0)):
        raise LayoutError(
            f"the stage does not hold {chunk.plan.topic}-{chunk.plan.partition} in rising order near offset "
            f"{int(offsets[0])}; reading it sorted",
            topic=chunk.plan.topic,
            partition=chunk.plan.partition,
        )


def check_target_rises(chunk: Chunk, segments: Sequence[Segment]) -> None:
    """Raise TargetRecreated unless a chunk's target offsets lie behind all that the map has of the target topic."""
    plan, first = chunk.plan, segments[0].target_first
    if plan.floor.target is not None and first < plan.floor.target:
        raise TargetRecreated(
            f"{plan.target_topic}-{plan.partition} took a record at offset {first}, below {plan.floor.target}, where "
            "the map ends: the topic was made again at the target; decide with mirrorlake resolve",
            topic=plan.topic,
            partition=plan.partition,
            first_offset=int(chunk.offsets[0]),
            last_offset=int(chunk.offsets[-1]),
            reason="target_recreated",
        )
