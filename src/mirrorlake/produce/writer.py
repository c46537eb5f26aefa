"""One shard's producer: records in, transactions out, and the exact target offset of every record.

Each transaction (DESIGN.md, "Exactly once, in order") has the records and, by
`send_offsets_to_transaction`, the flow's position on the *target* partition, with metadata that
names what was written since the map was last appended to (`produce/flow_positions.py`). Kafka
commits both or neither.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException

from mirrorlake import failpoints
from mirrorlake.errors import TargetRefused
from mirrorlake.kafka.answered_offsets import committed_positions, log_bounds
from mirrorlake.kafka.client_pool import Breadth
from mirrorlake.kafka.error_classes import ErrorClass, class_of
from mirrorlake.offsets.positions import Committed, TopicAndPartition
from mirrorlake.offsets.runs import Segment, Written
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.culprit import (
    TopicDenied,
    check_refused,
    is_reason_known,
    refused_again,
    topic_denied,
)
from mirrorlake.produce.deadline import within
from mirrorlake.produce.delivery import (
    Chunk,
    Delivery,
    check_target_rises,
    deliveries,
    record_count,
    size_of,
)
from mirrorlake.produce.flow_positions import (
    MetadataFull,
    PositionsBehind,
    metadata_of,
    positions_behind,
)
from mirrorlake.produce.pace import Pace
from mirrorlake.produce.patience import CALL_SECONDS, Patience
from mirrorlake.produce.python_producer import new_producer
from mirrorlake.produce.record_producer import OffsetsUnknown
from mirrorlake.produce.report import Ended
from mirrorlake.produce.spec import PRODUCER_SETTINGS, Target
from mirrorlake.produce.target_log import first_record, records_from, with_open_transactions

logger = logging.getLogger(__name__)

#: How often to check for acknowledgements, seconds.
LOOK_SECONDS = 1.0
#: The same once records were refused: the first refusal is known within moments.
REFUSED_LOOK_SECONDS = 0.2
#: How long one call waits for the end of an aborted transaction before another continues it, s.
ABORT_SECONDS = 2.0
#: How long a fresh producer waits for the target's first answer, seconds.
ANSWER_SECONDS = 5.0


class TooSlow(Exception):
    """The target does not take a transaction while it may be open: try smaller ones."""


class ShardWriter:
    """A producer with one `transactional.id`. Not thread safe; kept in a Python worker between
    batches. `pace` limits the size of its transactions; it outlives the producer."""

    def __init__(self, target: Target, pace: Pace | None = None) -> None:
        self.target = target
        self.pace = pace or Pace()
        self._patience = Patience()
        #: Whether it cannot write any more: the next one fences it, and asks how far the flow is.
        self.over = False
        #: The target partitions whose position this producer has asked for.
        self.asked: set[TopicAndPartition] = set()
        self._breadth = Breadth()
        settings: dict[str, Any] = {**PRODUCER_SETTINGS, **target.client, **target.producer}
        if target.transactional:
            settings["transactional.id"] = target.transactional_id
        else:
            # Records may wait in the queue for as long as the broker acknowledges others.
            settings.setdefault("message.timeout.ms", 0)
        # Half of the broker's timeout of a transaction: the other half is for the calls at its end.
        self._open_seconds = int(settings["transaction.timeout.ms"]) / 2_000
        # read_committed waits for positions of transactions that are being committed (KIP-447).
        group = {"group.id": target.group_id, "isolation.level": "read_committed", "logger": logger}
        self._group = Consumer({**target.client, **group})
        self._producer = new_producer(settings, self._patience, self._group)
        self._refused_before = False
        self._ended = Ended()
        if target.transactional:
            # Fails soon if no broker answers: a retried task must not hold a core for long.
            self._producer.refresh(None, ANSWER_SECONDS)
            # Fences the producer that had this id before, and ends its open transaction.
            self._producer.init_transactions(CALL_SECONDS)

    def is_outgrown(self, partitions: int) -> bool:
        """Whether another producer suits a batch of so many partitions better. Ask once a batch."""
        return self._breadth.is_outgrown(len(self.asked), partitions)

    def positions(self, keys: Sequence[TopicAndPartition]) -> Mapping[TopicAndPartition, Committed]:
        """The flow's committed (position, metadata) by (target topic, partition); keys without one
        are left out. Raises KafkaException."""
        committed = committed_positions(self._group, keys, CALL_SECONDS)
        self.asked.update(keys)
        return committed

    def with_open_transactions(
        self, starts: Mapping[TopicAndPartition, int]
    ) -> frozenset[TopicAndPartition]:
        """See `target_log.with_open_transactions`."""
        return with_open_transactions(self._group, self.target, starts)

    def first_record(self, key: TopicAndPartition, start: int) -> int | None:
        """See `target_log.first_record`."""
        return first_record(self._group, self.target, key, start)

    def end(self, key: TopicAndPartition) -> int:
        """The end of a target partition's log. Raises KafkaException."""
        return log_bounds(self._group, key, CALL_SECONDS).end

    def records_from(
        self, key: TopicAndPartition, start: int, end: int | None
    ) -> Iterator[pa.RecordBatch]:
        """See `target_log.records_from`."""
        return records_from(self._group, self.target, key, start, end)

    def commit_positions(
        self, ends: Sequence[tuple[PartitionPlan, int, Sequence[Written]]]
    ) -> None:
        """Commit positions (next source offsets) without a record, each with what the map lacks.

        Raises MetadataFull, TopicDenied (nothing was committed), KafkaException.
        """
        offsets = {
            plan.target_key: (position, metadata_of(plan, written))
            for plan, position, written in ends
        }
        self._producer.begin_transaction()
        try:
            self._send_offsets(offsets)
        except TopicDenied:
            self._abort_denied()
            raise
        self._commit()

    def take_ended(self) -> Ended:
        """The counts of transactions that ended since the last call."""
        ended, self._ended = self._ended, Ended()
        return ended

    def _commit(self) -> None:
        self._producer.commit_transaction(self._patience.call_seconds())
        self._ended.transactions += 1

    def _send_offsets(self, offsets: PositionsBehind) -> None:
        group = self.target.group_id
        try:
            within(
                self._patience.offsets_seconds(),
                lambda seconds: self._producer.send_offsets_to_transaction(offsets, group, seconds),
                "send_offsets_to_transaction",
            )
        except KafkaException as error:
            if denied := topic_denied(error, "READ"):
                raise denied from error
            raise

    def refusal_of(self, chunk: Chunk) -> TargetRefused | None:
        """The target's refusal of a chunk, None if it takes it, tried in an aborted transaction.

        Raises TopicDenied, KafkaException. Only for targets that are written to in transactions.
        """
        try:
            self.write([chunk], None)
        except TargetRefused as refusal:
            return refusal
        except TooSlow:
            pass
        return None

    def write(
        self, chunks: Sequence[Chunk], written: Mapping[TopicAndPartition, Sequence[Written]] | None
    ) -> list[tuple[Chunk, list[Segment]]]:
        """Write chunks in one transaction; `written` is what each (source topic, partition) has in
        its metadata. With None it only tries, and aborts.

        Returns each chunk with its segments. Raises MetadataFull or TooSlow (nothing was written;
        fewer records may fit), TargetRefused, TopicDenied, KafkaException.
        """
        while True:
            try:
                done = self._transaction(chunks, written)
                self._refused_before = False
                return done
            except OffsetsUnknown as again:
                self._abort()
                self._producer.look_closer()
                self._refused_before = refused_again(again)
            except TopicDenied:
                self._abort_denied()
                self._refused_before = True
                raise
            except (MetadataFull, TooSlow, TargetRefused) as error:
                if self.target.transactional:
                    self._abort()
                self._refused_before = refused_again(error)
                raise
            except KafkaException:
                if not (self._refused_before and self.target.transactional):
                    raise
                # Refused records leave a hole in the producer's sequence. librdkafka (2.16) notices
                # it in the next transaction, fails that, and takes a new epoch when it is aborted;
                # a fenced producer is refused one.
                self._refused_before = False
                self._abort()

    def _transaction(
        self, chunks: Sequence[Chunk], written: Mapping[TopicAndPartition, Sequence[Written]] | None
    ) -> list[tuple[Chunk, list[Segment]]]:
        begun = time.monotonic()
        self._patience.start()
        if self.target.transactional:
            self._producer.begin_transaction()
        results: list[Delivery] = []
        for result in deliveries(chunks, self._producer, self.target.provenance, self._patience):
            results.append(result)
            if not result.send(self._producer):
                break
            self._producer.poll(0)
        failpoints.reached("mid-transaction")
        self._wait(results, begun)
        check_refused(
            results, self._producer.failure if self.target.transactional else lambda: None
        )
        # a delivery that was not even made ready follows one that is refused
        done = [(chunk, result.segments()) for chunk, result in zip(chunks, results, strict=True)]
        if written is None:
            self._abort()
            return done
        for chunk, segments in done:
            key = chunk.plan.key
            check_target_rises(chunk, segments, written.get(key, ()))
        if self.target.transactional:
            self._send_offsets(positions_behind(done, written))
            self._commit()
            failpoints.reached("kafka-committed")
        self.pace.measured(size_of(chunks), time.monotonic() - begun)
        return done

    def _abort(self) -> None:
        """Abort the transaction. Raises KafkaException.

        librdkafka (2.16) purges the records that wait, and then requeues those that were in flight
        and came back unwritten: so the call waits for records that it never sends. Another call
        continues the abort, and purges again.
        """
        end = time.monotonic() + self._patience.call_seconds()
        while True:
            try:
                self._producer.abort_transaction(ABORT_SECONDS)
                self._ended.aborts += 1
                return
            except KafkaException as error:
                if error.args[0].code() != KafkaError._TIMED_OUT or time.monotonic() > end:
                    raise

    def _abort_denied(self) -> None:
        """Abort a transaction to which a partition could not be added. If none was, the coordinator
        knows of none to end, and librdkafka (2.16) cannot recover: the producer is over."""
        try:
            if self.target.transactional:
                self._abort()
        except KafkaException as error:
            if class_of(error.args[0]) is not ErrorClass.PRODUCER:
                raise
            self.over = True

    def _wait(self, results: Sequence[Delivery], begun: float) -> None:
        """Wait for all acknowledgements. If rows were refused, wait only until the reason is known,
        or no more acknowledgements come: librdkafka sends nothing more in a failed transaction.
        Raises KafkaException when none come in, TooSlow when too few do."""
        chunks = [result.chunk for result in results]
        count, look, before = record_count(chunks), LOOK_SECONDS, 0
        while left := self._producer.flush(look):
            known = is_reason_known(results) if self.target.transactional else None
            if known or (known is False and left == before):
                return
            if known is False:
                look, before = REFUSED_LOOK_SECONDS, left
            seconds = time.monotonic() - begun
            slow = self.target.transactional and count > 1 and seconds > self._open_seconds
            if slow or self._patience.over(left):
                self.pace.failed(size_of(chunks) * max(0, count - left) // count, seconds)
            self._patience.check(left)
            if slow:
                logger.info(
                    "the target took %d of %d records in %.0f s: fewer at a time",
                    count - left,
                    count,
                    seconds,
                )
                raise TooSlow
