"""Handing rows to a producer that takes no more for a moment, and what is made of the offsets that
it tells."""

from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.kafka.error_classes import ErrorClass
from mirrorlake.produce import delivery as delivery_module
from mirrorlake.produce.delivery import Chunk, Delivery, deliveries, parts_of
from mirrorlake.produce.patience import Patience


class Taker:
    """A producer that takes `at_once` rows at a time, and tells what it is told to."""

    exact = True

    def __init__(self, count: int, at_once: int = 100, not_taken: KafkaError | None = None) -> None:
        self.count, self.at_once, self.not_taken = count, at_once, not_taken
        self.taken = self.polls = 0
        self.targets = np.arange(count)

    def send(self) -> None:
        self.taken = min(self.count, self.taken + self.at_once)
        if self.taken < self.count and self.not_taken is not None:
            raise KafkaException(self.not_taken)
        if self.taken < self.count:
            raise BufferError

    def poll(self, _seconds: float) -> None:
        self.polls += 1

    def refused(self) -> np.ndarray | None:
        return None

    def offsets(self) -> np.ndarray:
        return self.targets

    def __len__(self) -> int:
        return self.taken


def delivery(taker: Any) -> Delivery:
    plan: Any = SimpleNamespace(topic="t", target_topic="east.t", partition=2)
    rows = pa.record_batch({"offset": pa.array(range(taker.count))})
    chunk = Chunk(plan, rows, np.arange(10, 10 + 2 * taker.count, 2))
    return Delivery(chunk, taker, Patience())


@given(st.integers(1, 30), st.integers(1, 7))
def test_rows_are_handed_over_until_all_are_taken(count: int, at_once: int) -> None:
    taker: Any = Taker(count, at_once)
    delivery(taker).send(taker)
    assert taker.taken == count and taker.polls == -(-count // at_once) - 1


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40))
def test_each_row_has_its_offset(steps: list[int]) -> None:
    """Also where others write between."""
    taker: Any = Taker(len(steps))
    taker.targets = np.cumsum(steps)
    sent = delivery(taker)
    sent.send(taker)
    pairs = [
        (segment.source_first + number * segment.stride, segment.target_first + number)
        for segment in sent.segments()
        for number in range(segment.record_count)
    ]
    assert pairs == list(
        zip(range(10, 10 + 2 * len(steps), 2), taker.targets.tolist(), strict=True)
    )


def test_a_row_that_is_not_taken_is_refused() -> None:
    """By the producer itself; the rows in front of it are on their way."""
    taker: Any = Taker(
        5, at_once=3, not_taken=KafkaError(KafkaError._STATE, "no more in this transaction")
    )
    sent = delivery(taker)
    assert sent.refusal() is None
    assert not sent.send(taker)
    refusal = sent.refusal()
    assert refusal is not None and (refusal.first, refusal.last, refusal.kind) == (
        3,
        3,
        ErrorClass.PRODUCER,
    )
    assert refusal.error.str() == "no more in this transaction"


class Keeper:
    """A producer that notes which rows it was given for which place."""

    def __init__(self) -> None:
        self.given: list[tuple[tuple[str, int], list[bytes]]] = []
        self.calls = 0

    def shipments(
        self, places: list[tuple[str, int]], counts: list[int], rows: pa.RecordBatch, *_: Any
    ) -> list[None]:
        self.calls += 1
        values, at = rows["value"].to_pylist(), 0
        for place, count in zip(places, counts, strict=True):
            self.given.append((place, values[at : at + count]))
            at += count
        assert at == len(values)
        return [None] * len(counts)


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=12), st.integers(1, 20))
def test_chunks_that_are_made_ready_together_stay_what_they_are(
    sizes: list[tuple[int, bool]], joined: int
) -> None:
    """In their order, whatever columns the files had that they are of; a large one by itself."""
    chunks = []
    for number, (count, has_exact) in enumerate(sizes):
        plan: Any = SimpleNamespace(target_topic=f"east.{number}", partition=number)
        columns = {
            "key": pa.nulls(count, pa.binary()),
            "value": pa.array([b"%d-%d" % (number, row) for row in range(count)], pa.binary()),
            "headers": pa.nulls(count, pa.list_(pa.binary())),
            **({"timestamp_ms": pa.array(range(count))} if has_exact else {}),
        }
        chunks.append(Chunk(plan, pa.record_batch(columns), np.arange(count)))
    keeper: Any = Keeper()
    with mock.patch.object(delivery_module, "_JOINED_ROWS", joined):
        made = list(deliveries(chunks, keeper, None, Patience()))
    assert [one.chunk for one in made] == chunks
    assert keeper.given == [
        ((f"east.{number}", number), [b"%d-%d" % (number, row) for row in range(count)])
        for number, (count, _) in enumerate(sizes)
    ]
    if joined >= 20 and len({has for _, has in sizes}) == 1:
        assert keeper.calls == 1 or sum(count for count, _ in sizes) > joined


@given(st.data())
def test_chunks_are_cut_at_offsets(data: st.DataObject) -> None:
    """Of any partition: all rows, in order, on the right side."""
    offsets = np.array(sorted(data.draw(st.sets(st.integers(0, 60), min_size=1))))
    at = data.draw(st.integers(1, len(offsets)))
    rows = pa.record_batch({"offset": pa.array(offsets)})
    plan: Any = None
    chunks = [
        Chunk(plan, rows.slice(start, end - start), offsets[start:end])
        for start, end in ((0, at), (at, len(offsets)))
        if end > start
    ]
    first = data.draw(st.integers(0, 60))
    last = data.draw(st.integers(first, 60))
    parts = [
        [n for chunk in part for n in chunk.rows["offset"].to_pylist()]
        for part in parts_of(chunks, first, last)
    ]
    wanted = offsets.tolist()
    assert parts == [
        [n for n in wanted if n < first],
        [n for n in wanted if first <= n <= last],
        [n for n in wanted if n > last],
    ]


def test_what_is_not_acknowledged_is_no_success() -> None:
    taker: Any = Taker(3)
    taker.targets = np.array([0, -1, 2])
    sent = delivery(taker)
    sent.send(taker)
    with pytest.raises(KafkaException, match="not acknowledged"):
        sent.segments()
