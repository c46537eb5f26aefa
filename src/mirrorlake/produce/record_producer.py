"""What a shard needs of a producer: rows in, transactions out, and each row's target offset.

`native/producer.py` and `produce/python_producer.py` implement it; the latter chooses one.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from mirrorlake.offsets.positions import TopicAndPartition


class OffsetsUnknown(Exception):
    """The sent records must not be committed: it is unknown what became of some. If they are sent
    again, it will be known. `refused`: whether rows were refused."""

    def __init__(self, refused: bool = False) -> None:
        super().__init__()
        self.refused = refused


class Shipment(Protocol):
    """Rows of one partition on their way to it. `taken` counts those handed over, from the first
    on. Refusals are `exact` if each refused row is known (`RecordProducer.look_closer`)."""

    @property
    def taken(self) -> int: ...

    @property
    def exact(self) -> bool: ...

    def send(self) -> None:
        """Hand over the rows that were not taken yet.

        Raises BufferError if the producer's queue is full, or KafkaException for a row that it does
        not take; another call goes on from there.
        """

    def refused(self) -> np.ndarray | None:
        """The error code of each refused row, 0 for the others; None if none was refused."""

    def offsets(self) -> np.ndarray:
        """Each row's target offset, below 0 if not acknowledged. Raises OffsetsUnknown."""


class RecordProducer(Protocol):
    """A producer of rows. Methods of `confluent_kafka.Producer` keep their names and errors."""

    def init_transactions(self, seconds: float) -> None:
        """Fence the producer that had this `transactional.id`, and end its open transaction."""

    def begin_transaction(self) -> None:
        """Begin a transaction."""

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicAndPartition, tuple[int, str]], group: str, seconds: float
    ) -> None:
        """Commit positions of a group, with their metadata, in the transaction."""

    def commit_transaction(self, seconds: float) -> None:
        """Commit the transaction."""

    def abort_transaction(self, seconds: float) -> None:
        """Abort the transaction."""

    def failure(self) -> KafkaError | None:
        """The first error after which a transaction can only be aborted; None if there was none."""

    def look_closer(self) -> None:
        """Ask for each row's outcome until a transaction commits: shipments are `exact` then."""

    def shipments(
        self,
        places: Sequence[TopicAndPartition],
        counts: Sequence[int],
        rows: pa.RecordBatch,
        added: tuple[str, bytes] | None,
        removed: str | None,
    ) -> Sequence[Shipment]:
        """Make rows of some partitions ready to be sent, `counts` of each in a row; `added` is a
        header that each record gets, `removed` the name of headers that are dropped."""

    def flush(self, seconds: float) -> int:
        """Wait until all rows are acknowledged; returns how many are not when the time is over."""

    def poll(self, seconds: float) -> int:
        """Serve acknowledgements."""

    def refresh(self, topic: str | None, seconds: float) -> None:
        """Ask a broker for a topic's metadata, or any answer. Raises KafkaException without one."""

    def __len__(self) -> int:
        """How many rows are not acknowledged."""
