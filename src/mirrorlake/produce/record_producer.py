"""What writing a shard needs of a producer: rows in, Kafka transactions out, and the target offset
of every row.

`native/producer.py` and `produce/python_producer.py` are such; `produce/producers.py` says which
one is taken.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from mirrorlake.offsets.positions import TopicAndPartition


class OffsetsUnknown(Exception):
    """What was sent must not be committed: what became of some of it is not known. Sent again, it
    will be. `refused` says whether rows were refused."""

    def __init__(self, refused: bool = False) -> None:
        super().__init__()
        self.refused = refused


class Shipment(Protocol):
    """Rows of one partition on their way to it. `taken` is how many were handed over: the first
    ones. What was refused is `exact` where each refused row is known; else another attempt knows
    (`RecordProducer.look_closer`)."""

    @property
    def taken(self) -> int: ...

    @property
    def exact(self) -> bool: ...

    def send(self) -> None:
        """Hand over the rows that were not taken yet.

        Raises BufferError where the producer's queue is full, else KafkaException for the row that
        it does not take; another call goes on with it.
        """

    def refused(self) -> np.ndarray | None:
        """The code of the error of each row that was refused, 0 for the others; None where none
        was."""

    def offsets(self) -> np.ndarray:
        """The target's offset of each row, below 0 where it is not acknowledged. Raises
        OffsetsUnknown."""


class RecordProducer(Protocol):
    """A producer of rows; what `confluent_kafka.Producer` has too it has under that name, with
    those errors."""

    def init_transactions(self, seconds: float) -> None:
        """Fence the producer that had this `transactional.id`, and end what they left open."""

    def begin_transaction(self) -> None:
        """Begin a transaction."""

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicAndPartition, tuple[int, str]], group: str, seconds: float
    ) -> None:
        """Commit positions of a group, with their metadata, with the transaction."""

    def commit_transaction(self, seconds: float) -> None:
        """Commit."""

    def abort_transaction(self, seconds: float) -> None:
        """Abort."""

    def failure(self) -> KafkaError | None:
        """The first error after which the open transaction can only be aborted; None where there
        was none."""

    def look_closer(self) -> None:
        """Ask for what becomes of each row until a transaction is committed: shipments are `exact`
        then."""

    def shipments(
        self,
        places: Sequence[TopicAndPartition],
        counts: Sequence[int],
        rows: pa.RecordBatch,
        added: tuple[str, bytes] | None,
        removed: str | None,
    ) -> Sequence[Shipment]:
        """Rows of some partitions, `counts` of each behind one another, made ready to be sent:
        `added` is a header that each record gets, `removed` the name of those that go."""

    def flush(self, seconds: float) -> int:
        """Wait until all rows are acknowledged; returns how many are not when the time is over."""

    def poll(self, seconds: float) -> int:
        """Serve acknowledgements."""

    def refresh(self, topic: str | None, seconds: float) -> None:
        """Ask a broker how a topic is now, or anything at all. Raises KafkaException when none
        answers."""

    def __len__(self) -> int:
        """How many rows are not acknowledged."""
