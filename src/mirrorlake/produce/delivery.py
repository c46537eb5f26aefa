"""A chunk of records on its way to the target: handed to the producer, and mapped to the offsets that it got."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import TargetLost, TargetRefused
from mirrorlake.offsets.runs import Segment, segments_of
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.patience import CALL_SECONDS, Patience
from mirrorlake.produce.provenance import Provenance
from mirrorlake.produce.record_producer import RecordProducer, Shipment
from mirrorlake.produce.stage_files import disordered

#: How long a producer may take to hear of a partition that was just added, seconds.
NEW_PARTITION_SECONDS = 10.0
_NOT_SEEN_YET = (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)
#: Errors beside those that Kafka calls retriable that trying again may help: the topic is then made, if need be.
_PASSING = (KafkaError._PURGE_QUEUE, KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT, *_NOT_SEEN_YET)


@dataclass
class Chunk:
    """Consecutive staged rows of one partition that go into one transaction."""

    plan: PartitionPlan
    rows: pa.RecordBatch
    offsets: np.ndarray


def size_of(chunks: Iterable[Chunk]) -> int:
    """The size of the rows of chunks, Arrow's bytes."""
    return sum(int(chunk.rows.nbytes) for chunk in chunks)


class Delivery:
    """One chunk on its way: hands its rows to the producer, and learns their target offsets."""

    def __init__(self, chunk: Chunk, provenance: Provenance | None, patience: Patience) -> None:
        self.chunk = chunk
        self._patience = patience
        self._headers = (None, None) if provenance is None else (provenance.added, provenance.removed)
        self._shipment: Shipment | None = None

    def send(self, producer: RecordProducer) -> None:
        """Hand all rows to the producer. Raises TargetRefused, KafkaException."""
        plan, deadline = self.chunk.plan, time.monotonic() + NEW_PARTITION_SECONDS
        self._shipment = producer.shipment(plan.target_topic, plan.partition, self.chunk.rows, *self._headers)
        while True:
            try:
                self._shipment.send()
                break
            except (BufferError, KafkaException) as error:
                self._make_room(producer, error, deadline)
        producer.poll(0)

    def _make_room(self, producer: RecordProducer, error: Exception, deadline: float) -> None:
        """Wait until the producer may take a record that it did not take. Raises what is no matter of waiting."""
        if isinstance(error, BufferError):
            producer.poll(0.1)
            self._patience.check(len(producer))
            return
        if error.args[0].code() not in _NOT_SEEN_YET or time.monotonic() > deadline:
            raise self._refused(error.args[0]) from error
        # A partition that was added a moment ago: the producer knows the topic as it was.
        producer.refresh(self.chunk.plan.target_topic, CALL_SECONDS)
        producer.poll(0.05)

    def was_refused(self) -> bool:
        """Whether it is known already that the target refused a row."""
        return self._shipment is not None and self._shipment.refusal() is not None

    def segments(self) -> list[Segment]:
        """The chunk's segments. Raises TargetRefused or KafkaException when a record was not acknowledged, OnceMore
        when the producer does not know where each is."""
        assert self._shipment is not None
        error = self._shipment.refusal()
        if error is not None:
            raise self._refused(error)
        targets, offsets = self._shipment.offsets(), self.chunk.offsets
        if bool(np.any(targets < 0)):
            raise self._refused(KafkaError(KafkaError._TIMED_OUT, "a record was not acknowledged"))
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


def check_rising(chunk: Chunk, previous: int | None) -> None:
    """Raise LayoutError unless a chunk's offsets rise and lie above `previous`."""
    offsets = chunk.offsets
    if (previous is not None and int(offsets[0]) <= previous) or bool(np.any(np.diff(offsets) <= 0)):
        raise disordered(chunk.plan, int(offsets[0]))


def check_target_rises(chunk: Chunk, segments: Sequence[Segment]) -> None:
    """Raise TargetLost unless a chunk's target offsets lie behind all that the map has of the target topic.
    Who hears of it asks whether the topic is another one."""
    plan, first = chunk.plan, segments[0].target_first
    if plan.floor.target is not None and first < plan.floor.target:
        raise TargetLost(
            f"{plan.target_topic}-{plan.partition} took a record at offset {first}, below {plan.floor.target}, where "
            "the map ends: the target has lost what it had there",
            target_offset=first,
            topic=plan.topic,
            partition=plan.partition,
            first_offset=int(chunk.offsets[0]),
            last_offset=int(chunk.offsets[-1]),
        )
