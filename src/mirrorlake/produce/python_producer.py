"""`record_producer.RecordProducer` by confluent-kafka: records become Python objects, handed over
by a loop in C.

Its target offsets follow from few acknowledgements: rows that were sent together get consecutive
offsets unless another producer writes into the partition, so the first and last give them all.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, repeat
from operator import length_hint
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    ThrottleEvent,
    TopicPartition,
)

from mirrorlake.native.exact import headers_of, times_to_send
from mirrorlake.native.producer import Producer as NativeProducer
from mirrorlake.native.producer import failure_of
from mirrorlake.native.selfcheck import usable
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.record_producer import OffsetsUnknown, RecordProducer

logger = logging.getLogger(__name__)

Headers = list[tuple[str | bytes, bytes | None]]


class PythonProducer:
    """See `record_producer.RecordProducer`. `group` is a client of the positions' group."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        throttle: Callable[[ThrottleEvent], None],
        lines: logging.Logger,
        group: Consumer,
    ) -> None:
        self._producer = Producer({**settings, "logger": lines, "throttle_cb": throttle})
        self._group = group
        #: Whether to ask for each row's acknowledgement: without transactions none is sent again.
        self.ask_each = "transactional.id" not in settings
        self._ask_each_for_now = False
        self.init_transactions = self._producer.init_transactions
        self.begin_transaction = self._producer.begin_transaction
        self.abort_transaction = self._producer.abort_transaction
        self.flush, self.poll = self._producer.flush, self._producer.poll
        self.produce = self._producer.produce

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicAndPartition, tuple[int, str]], group: str, seconds: float
    ) -> None:
        places = [TopicPartition(*place, *position) for place, position in offsets.items()]
        self._producer.send_offsets_to_transaction(
            places, self._group.consumer_group_metadata(), seconds
        )

    def commit_transaction(self, seconds: float) -> None:
        self._producer.commit_transaction(seconds)
        if self._ask_each_for_now:
            self.ask_each = self._ask_each_for_now = False

    def failure(self) -> KafkaError | None:
        return failure_of(self._producer)

    def look_closer(self) -> None:
        if not self.ask_each:
            self.ask_each = self._ask_each_for_now = True

    def shipments(
        self,
        places: Sequence[TopicAndPartition],
        counts: Sequence[int],
        rows: pa.RecordBatch,
        added: tuple[str, bytes] | None,
        removed: str | None,
    ) -> "list[PythonShipment]":
        return [
            PythonShipment(self, place, rows.slice(end - count, count), added, removed)
            for place, count, end in zip(places, counts, accumulate(counts), strict=True)
        ]

    def refresh(self, topic: str | None, seconds: float) -> None:
        self._producer.list_topics(topic, timeout=seconds)

    def __len__(self) -> int:
        return len(self._producer)


class PythonShipment:
    """Implements `record_producer.Shipment`."""

    def __init__(
        self,
        owner: PythonProducer,
        place: TopicAndPartition,
        rows: pa.RecordBatch,
        added: tuple[str, bytes] | None,
        removed: str | None,
    ) -> None:
        self._owner, (self._topic, partition) = owner, place
        self._ask_each = owner.ask_each
        self._count = rows.num_rows
        #: Whether each row's acknowledgement is seen.
        self.exact = self._ask_each or self._count <= 2
        self._targets = np.full(self._count if self._ask_each else 2, -1, dtype=np.int64)
        self._codes: np.ndarray | None = None
        self._columns: list[Any] = [
            _objects(rows.column("key")),
            repeat(partition),
            self._callbacks(self._count),
            # on_delivery by position: what counts is the argument before, its deprecated name
            repeat(None),
            times_to_send(rows).tolist(),
            _headers(headers_of(rows), added, removed),
        ]
        self._values = rows.column("value").to_pylist()

    @property
    def taken(self) -> int:
        return int(self._count - len(self._values))

    def send(self) -> None:
        """Hand over rows not taken yet. Most of a worker's time goes here, so the loop is in C."""
        left = iter(self._values)
        try:
            deque(map(self._owner.produce, repeat(self._topic), left, *self._columns), maxlen=0)
        except (BufferError, KafkaException):
            at = len(self._values) - length_hint(left) - 1  # the record that was not taken
            self._values = self._values[at:]
            self._columns = [
                column[at:] if isinstance(column, list) else column for column in self._columns
            ]
            raise
        self._values, self._columns = [], []

    def refused(self) -> np.ndarray | None:
        """See `record_producer.Shipment`: of rows that are known to be refused."""
        return self._codes

    def offsets(self) -> np.ndarray:
        """Each row's offset. Raises OffsetsUnknown if not consecutive, and not all asked for."""
        if self._ask_each or bool(np.any(self._targets < 0)):
            return self._targets
        first, last = self._targets.tolist()
        if last - first != self._count - 1:
            logger.info("another producer writes to %s; asking for every offset", self._topic)
            self._owner.ask_each = True
            raise OffsetsUnknown
        return np.arange(first, last + 1)

    def _callbacks(self, count: int) -> list[Callable[[KafkaError | None, Message], None] | None]:
        """The acknowledgement callbacks: for the first and the last row, or for each."""

        def into(row: int, slots: int | slice) -> Callable[[KafkaError | None, Message], None]:
            def acknowledged(error: KafkaError | None, message: Message) -> None:
                if error is None:
                    self._targets[slots] = message.offset()
                    return
                if self._codes is None:
                    self._codes = np.zeros(count, dtype=np.int64)
                self._codes[row] = error.code()

            return acknowledged

        if self._ask_each:
            return [into(index, index) for index in range(count)]
        if count == 1:
            return [into(0, slice(0, 2))]
        return [into(0, 0), *([None] * (count - 2)), into(count - 1, 1)]


def _objects(column: pa.Array) -> list[Any] | Iterator[None]:
    """A column as Python objects; none are made if all are null, as keys often are."""
    return repeat(None) if column.null_count == len(column) else column.to_pylist()


def _headers(
    column: pa.Array, added: tuple[str, bytes] | None, removed: str | None
) -> list[Headers | None] | Iterator[None]:
    """The headers of each row as confluent-kafka takes them; None for a row that has none."""
    if column.null_count == len(column) and added is None:
        return repeat(None)
    more = [] if added is None else [added]
    gone = () if removed is None else (removed, removed.encode())  # names may be bytes, all of them
    return [
        [(header["key"], header["value"]) for header in row or () if header["key"] not in gone]
        + more
        or None
        for row in column.to_pylist()
    ]


def new_producer(
    settings: Mapping[str, Any], throttle: Callable[[ThrottleEvent], None], group: Consumer
) -> RecordProducer:
    """The native producer or, where that cannot be used, one of confluent-kafka's; `group` is a
    client of the group of its positions."""
    if usable("produced"):
        return NativeProducer(settings, throttle, logger)
    return PythonProducer(settings, throttle, logger, group)
