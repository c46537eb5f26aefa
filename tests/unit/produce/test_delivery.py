"""Handing rows to a producer that takes no more for a moment, and what is made of the offsets that it tells."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.errors import TargetRefused
from mirrorlake.produce.delivery import Chunk, Delivery
from mirrorlake.produce.patience import Patience


class Taker:
    """A producer that takes `at_once` rows at a time, and tells what it is told to."""

    def __init__(self, count: int, at_once: int = 100, error: KafkaError | None = None) -> None:
        self.count, self.at_once, self.error = count, at_once, error
        self.taken = self.polls = 0
        self.targets = np.arange(count)

    def shipment(self, *_rows: object) -> "Taker":
        return self

    def send(self) -> None:
        self.taken = min(self.count, self.taken + self.at_once)
        if self.taken < self.count:
            raise BufferError

    def poll(self, _seconds: float) -> None:
        self.polls += 1

    def refusal(self) -> KafkaError | None:
        return self.error

    def offsets(self) -> np.ndarray:
        return self.targets

    def __len__(self) -> int:
        return self.taken


def delivery(count: int) -> Delivery:
    plan: Any = SimpleNamespace(topic="t", target_topic="east.t", partition=2)
    rows = pa.record_batch({"offset": pa.array(range(count))})
    return Delivery(Chunk(plan, rows, np.arange(10, 10 + 2 * count, 2)), provenance=None, patience=Patience())


@given(st.integers(1, 30), st.integers(1, 7))
def test_rows_are_handed_over_until_all_are_taken(count: int, at_once: int) -> None:
    taker: Any = Taker(count, at_once)
    delivery(count).send(taker)
    assert taker.taken == count and taker.polls == -(-count // at_once)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40))
def test_each_row_has_its_offset(steps: list[int]) -> None:
    """Whoever else writes between."""
    taker: Any = Taker(len(steps))
    taker.targets = np.cumsum(steps)
    sent = delivery(len(steps))
    sent.send(taker)
    pairs = [
        (segment.source_first + number * segment.stride, segment.target_first + number)
        for segment in sent.segments()
        for number in range(segment.record_count)
    ]
    assert pairs == list(zip(range(10, 10 + 2 * len(steps), 2), taker.targets.tolist(), strict=True))


def test_what_is_refused_and_what_is_tried_again() -> None:
    for code, raised in ((KafkaError.MSG_SIZE_TOO_LARGE, TargetRefused), (KafkaError._MSG_TIMED_OUT, KafkaException)):
        taker: Any = Taker(3, error=KafkaError(code))
        sent = delivery(3)
        assert not sent.was_refused()
        sent.send(taker)
        assert sent.was_refused()
        with pytest.raises(raised):
            sent.segments()


def test_what_is_not_acknowledged_is_no_success() -> None:
    taker: Any = Taker(3)
    taker.targets = np.array([0, -1, 2])
    sent = delivery(3)
    sent.send(taker)
    with pytest.raises(KafkaException, match="not acknowledged"):
        sent.segments()
