"""Handing rows to a producer that takes no more for a moment: each once, in order, first and last with a callback."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.produce.delivery import Chunk, Delivery
from mirrorlake.produce.patience import Patience

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class FullNowAndThen:
    """A producer whose queue is full at the calls of these numbers: what librdkafka does when the broker is slow."""

    def __init__(self, full_at: set[int]) -> None:
        self.full_at, self.calls = full_at, 0
        self.taken: list[bytes] = []
        self.told: list[bytes] = []

    def produce(self, topic: str, value: bytes, key: object, partition: int, callback: Any, *_: object) -> None:
        self.calls += 1
        if self.calls in self.full_at:
            raise BufferError
        self.taken.append(value)
        if callback is not None:
            self.told.append(value)

    def poll(self, _seconds: float) -> None:
        pass

    def __len__(self) -> int:
        return len(self.taken)


@given(st.integers(1, 30), st.sets(st.integers(1, 40)))
def test_each_row_is_taken_once_and_in_order(count: int, full_at: set[int]) -> None:
    values = [b"%d" % number for number in range(count)]
    rows = pa.record_batch(
        {
            "key": pa.nulls(count, pa.binary()),
            "value": pa.array(values),
            "timestamp": pa.array(range(count), pa.timestamp("us")),
            "headers": pa.nulls(count, HEADERS),
        }
    )
    plan: Any = SimpleNamespace(target_topic="t", partition=2)
    producer: Any = FullNowAndThen(full_at)
    Delivery(Chunk(plan, rows, np.arange(count)), ask_each=False, provenance=None, patience=Patience()).send(producer)
    assert producer.taken == values
    assert producer.told == ([values[0], values[-1]] if count > 1 else values)
