"""A chunk of records on its way to the target: sent at the speed of C, its target offsets told by few acknowledgements.

A chunk's target offsets are consecutive unless somebody else writes into the topic, so the first and the last one tell
them all.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import length_hint
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from mirrorlake.errors import TargetRecreated, TargetRefused
from mirrorlake.offsets.runs import Segment, segments_of
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.patience import CALL_SECONDS, Patience
from mirrorlake.produce.provenance import Provenance, stamped
from mirrorlake.produce.stage_files import disordered

#: How long a producer may take to hear of a partition that was just added, seconds.
NEW_PARTITION_SECONDS = 10.0
_NOT_SEEN_YET = (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)
#: Errors beside those that Kafka calls retriable that trying again may mend: the topic is then made, if need be.
_PASSING = (KafkaError._PURGE_QUEUE, KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT, *_NOT_SEEN_YET)


@dataclass
class Chunk:
    """Consecutive staged rows of one partition that go into one transaction."""

    plan: PartitionPlan
    rows: pa.RecordBatch
    offsets: np.ndarray


class Interleaved(Exception):
    """Somebody else wrote into the target partition between our records; offsets have to be asked for one by one."""


def size_of(chunks: Iterable[Chunk]) -> int:
    """The size of the rows of chunks, Arrow's bytes."""
    return sum(int(chunk.rows.nbytes) for chunk in chunks)


class Delivery:
    """One chunk on its way: sends its rows, and learns their target offsets from the first and last acknowledgement."""

    def __init__(self, chunk: Chunk, ask_each: bool, provenance: Provenance | None, patience: Patience) -> None:
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
            repeat(None),  # on_delivery by position: the argument before, its deprecated name, is what counts
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
        raise disordered(chunk.plan, int(offsets[0]))


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
        )
