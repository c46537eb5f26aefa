"""A chunk of records on its way to the target: handed to the producer, mapped to target offsets."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import TargetLost, TargetRefused
from mirrorlake.kafka.error_classes import ErrorClass, class_of
from mirrorlake.lake.row_sizes import arrow_bytes, grouped
from mirrorlake.native.outgoing import SENT
from mirrorlake.offsets.runs import Segment, Written, is_dense, segments_of
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.patience import CALL_SECONDS, Patience
from mirrorlake.produce.provenance import Provenance
from mirrorlake.produce.record_producer import RecordProducer, Shipment

#: How long a producer may take to see a partition that was just added, seconds.
NEW_PARTITION_SECONDS = 10.0
_NOT_SEEN_YET = (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)
#: The classes of errors that name what is refused. Rows refused for another error only follow such
#: a one, or the producer or the cluster has failed.
NAMED_CLASSES = (ErrorClass.RECORD, ErrorClass.TOPIC)
#: Chunks with fewer rows are made ready together, up to this many rows and bytes: otherwise a few
#: rows of each of hundreds of partitions cost as much as thousands of rows each.
_JOINED_ROWS, _JOINED_BYTES = 4_096, 4 << 20


@dataclass
class Chunk:
    """Consecutive staged rows of one partition that go into one transaction."""

    plan: PartitionPlan
    rows: pa.RecordBatch
    offsets: np.ndarray

    @cached_property
    def size(self) -> int:
        """The size of the rows in Arrow, approximately."""
        return arrow_bytes(self.rows)


@dataclass(frozen=True)
class Refusal:
    """Why rows of a chunk were refused, and which: `first` to `last`, both included."""

    error: KafkaError
    kind: ErrorClass
    first: int
    last: int


def size_of(chunks: Iterable[Chunk]) -> int:
    """The size of the chunks' rows in Arrow, approximately."""
    return sum(chunk.size for chunk in chunks)


def record_count(chunks: Iterable[Chunk]) -> int:
    """The number of rows of chunks."""
    return sum(len(chunk.offsets) for chunk in chunks)


def halves_of(chunks: list[Chunk]) -> tuple[list[Chunk], list[Chunk]]:
    """Cut chunks that did not fit into one transaction in two."""
    if len(chunks) > 1:
        middle = len(chunks) // 2
        return chunks[:middle], chunks[middle:]
    (chunk,) = chunks
    middle = len(chunk.offsets) // 2
    return [_slice(chunk, 0, middle)], [_slice(chunk, middle, len(chunk.offsets))]


def parts_of(
    chunks: Iterable[Chunk], first: int, last: int
) -> tuple[list[Chunk], list[Chunk], list[Chunk]]:
    """A partition's chunks below some source offsets, from `first` to `last`, and above."""
    parts: tuple[list[Chunk], list[Chunk], list[Chunk]] = ([], [], [])
    for chunk in chunks:
        start, end = (int(at) for at in np.searchsorted(chunk.offsets, [first, last + 1]))
        bounds = (0, start, end, len(chunk.offsets))
        for part, begin, stop in zip(parts, bounds, bounds[1:], strict=False):
            if stop > begin:
                part.append(_slice(chunk, begin, stop))
    return parts


def _slice(chunk: Chunk, start: int, end: int) -> Chunk:
    return Chunk(chunk.plan, chunk.rows.slice(start, end - start), chunk.offsets[start:end])


class Delivery:
    """One chunk on its way: hands its rows to the producer, and learns their target offsets."""

    def __init__(self, chunk: Chunk, shipment: Shipment, patience: Patience) -> None:
        self.chunk = chunk
        self._patience = patience
        self._shipment = shipment
        self._not_taken: KafkaError | None = None

    def send(self, producer: RecordProducer) -> bool:
        """Hand all rows to the producer that made the shipment; False if it does not take one
        (`refusal` has the reason). Raises KafkaException."""
        deadline = time.monotonic() + NEW_PARTITION_SECONDS
        while True:
            try:
                self._shipment.send()
                break
            except BufferError:
                producer.poll(0.1)
                self._patience.check(len(producer))
            except KafkaException as error:
                if error.args[0].code() not in _NOT_SEEN_YET or time.monotonic() > deadline:
                    self._not_taken = error.args[0]
                    return False
                # A partition was just added: the producer has the topic's old metadata.
                producer.refresh(self.chunk.plan.target_topic, CALL_SECONDS)
                producer.poll(0.05)
        return True

    @property
    def exact(self) -> bool:
        """Whether each refused row is known."""
        return self._shipment.exact

    def refusal(self) -> Refusal | None:
        """Why rows were refused, as far as is known by now; None if none were. An error of a record
        comes first, then one of the topic, then the one that came first."""
        codes = self._codes()
        if codes is None:
            return None
        order = list(dict.fromkeys(codes[codes != 0].tolist()))  # as they came
        kinds = {code: class_of(self._error(code)) for code in order}
        code = next(
            (code for kind in NAMED_CLASSES for code in order if kinds[code] is kind), order[0]
        )
        rows = np.flatnonzero(codes == code)
        return Refusal(self._error(code), kinds[code], int(rows[0]), int(rows[-1]))

    def _codes(self) -> np.ndarray | None:
        """The code of each refused row, 0 for the others."""
        codes = self._shipment.refused()
        if self._not_taken is not None:
            none = np.zeros(len(self.chunk.offsets), dtype=np.int64)
            codes = none if codes is None else codes.copy()
            codes[self._shipment.taken] = self._not_taken.code()
        return codes

    def _error(self, code: int) -> KafkaError:
        known = self._not_taken
        return known if known is not None and known.code() == code else KafkaError(code)

    def segments(self) -> list[Segment]:
        """The chunk's segments, if nothing was refused. Raises KafkaException if a record was not
        acknowledged, OffsetsUnknown if the producer does not know every offset."""
        targets, offsets = self._shipment.offsets(), self.chunk.offsets
        if targets.min(initial=0) < 0:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "a record was not acknowledged"))
        if is_dense(targets):
            return segments_of(offsets, int(targets[0]))
        breaks = np.flatnonzero(np.diff(targets) != 1) + 1
        bounds = [0, *breaks.tolist(), len(targets)]
        return [
            segment
            for start, end in zip(bounds, bounds[1:], strict=False)
            for segment in segments_of(offsets[start:end], int(targets[start]))
        ]

    def refused(self, refusal: Refusal) -> TargetRefused:
        """A refusal of records as an error that names their offsets."""
        plan, error = self.chunk.plan, refusal.error
        first, last = int(self.chunk.offsets[refusal.first]), int(self.chunk.offsets[refusal.last])
        return TargetRefused(
            f"the target refused records of {plan.topic}-{plan.partition} between offsets {first} "
            f"and {last} for topic {plan.target_topic}: {error.str()}; change the target's limits "
            "or permissions, then run again",
            topic=plan.topic,
            partition=plan.partition,
            first_offset=first,
            last_offset=last,
            reason=error.name(),
        )


def deliveries(
    chunks: Iterable[Chunk],
    producer: RecordProducer,
    provenance: Provenance | None,
    patience: Patience,
) -> Iterator[Delivery]:
    """Make chunks ready for a producer, in their order, small ones several at a time."""
    headers = (None, None) if provenance is None else (provenance.added, provenance.removed)
    most = _JOINED_ROWS, _JOINED_BYTES
    for group in grouped(chunks, lambda one: (len(one.offsets), one.size), _are_alike, most):
        places = [(chunk.plan.target_topic, chunk.plan.partition) for chunk in group]
        counts = [len(chunk.offsets) for chunk in group]
        shipments = producer.shipments(places, counts, _joined(group), *headers)
        for chunk, shipment in zip(group, shipments, strict=True):
            yield Delivery(chunk, shipment, patience)


def _are_alike(one: Chunk, other: Chunk) -> bool:
    return bool(one.rows.schema == other.rows.schema)


def _joined(group: Sequence[Chunk]) -> pa.RecordBatch:
    """The rows of chunks in a row, with the columns that are sent; of one chunk not copied."""
    if len(group) == 1:
        return group[0].rows
    table = pa.Table.from_batches([chunk.rows for chunk in group])
    sent = table.select([name for name in SENT if name in table.schema.names])
    (batch,) = sent.combine_chunks().to_batches()
    return batch


def check_target_rises(
    chunk: Chunk, segments: Sequence[Segment], written: Sequence[Written]
) -> None:
    """Raise TargetLost unless a chunk's target offsets lie behind all that the flow has written to
    the target topic: what the map has, and what is `written` and not in it yet. The code that gets
    the error checks whether the topic is another one."""
    plan, first = chunk.plan, segments[0].target_first
    ends = [one.target_first + one.record_count for one in written]
    end = max([plan.floor.target or 0, *ends])
    if first < end:
        raise TargetLost(
            f"{plan.target_topic}-{plan.partition} took a record at offset {first}, below {end}, "
            "where the flow's records end: the target has lost what it had there",
            target_offset=first,
            topic=plan.topic,
            partition=plan.partition,
            first_offset=int(chunk.offsets[0]),
            last_offset=int(chunk.offsets[-1]),
        )
