"""Which producer is taken, and the one of Python's objects: each row once, in order, by few
acknowledgements."""

import logging
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake import native
from mirrorlake.native import selfcheck
from mirrorlake.native.producer import Producer
from mirrorlake.produce.python_producer import PythonProducer, PythonShipment, new_producer
from mirrorlake.produce.record_producer import OffsetsUnknown

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
MOCK = {"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": 1, "log_level": 2}


class FullNowAndThen:
    """A producer whose queue is full at the calls of these numbers: what librdkafka does when the
    broker is slow."""

    def __init__(self, full_at: set[int]) -> None:
        self.full_at, self.calls = full_at, 0
        self.taken: list[tuple[bytes, Any]] = []
        self.told: list[tuple[bytes, Any]] = []

    def produce(
        self, topic: str, value: bytes, key: object, partition: int, callback: Any, *rest: Any
    ) -> None:
        self.calls += 1
        if self.calls in self.full_at:
            raise BufferError
        self.taken.append((value, rest[-1]))
        if callback is not None:
            self.told.append((value, callback))


class At:
    """A message that was acknowledged."""

    def __init__(self, offset: int) -> None:
        self.offset = lambda: offset


def rows(count: int, headers: list[Any] | None = None) -> pa.RecordBatch:
    """Rows that are told apart by their value."""
    return pa.record_batch(
        {
            "key": pa.nulls(count, pa.binary()),
            "value": pa.array([b"%d" % number for number in range(count)]),
            "timestamp": pa.array(range(count), pa.timestamp("us")),
            "headers": pa.nulls(count, HEADERS) if headers is None else pa.array(headers, HEADERS),
        }
    )


def shipment(taker: Any, batch: pa.RecordBatch, *headers: Any) -> PythonShipment:
    owner: Any = SimpleNamespace(ask_each=False, produce=taker.produce)
    return PythonShipment(owner, ("t", 2), batch, *(headers or (None, None)))


@given(st.integers(1, 30), st.sets(st.integers(1, 40)))
def test_each_row_is_taken_once_and_in_order(count: int, full_at: set[int]) -> None:
    taker = FullNowAndThen(full_at)
    sent = shipment(taker, rows(count))
    for _ in range(len(full_at) + 1):
        try:
            sent.send()
            break
        except BufferError:
            continue
    values = [b"%d" % number for number in range(count)]
    assert [value for value, _ in taker.taken] == values
    assert [value for value, _ in taker.told] == ([values[0], values[-1]] if count > 1 else values)
    assert sent.offsets().max() < 0
    for number, (_, tell) in zip((7, 6 + count), taker.told, strict=False):
        tell(None, At(number))
    assert sent.offsets().tolist() == list(range(7, 7 + count))


def test_offsets_with_somebody_elses_between_are_asked_for_one_by_one() -> None:
    taker = FullNowAndThen(set())
    sent = shipment(taker, rows(3))
    sent.send()
    for number, (_, tell) in zip((7, 10), taker.told, strict=True):
        tell(None, At(number))
    with pytest.raises(OffsetsUnknown):
        sent.offsets()
    assert sent._owner.ask_each


def test_the_header_is_added_behind_all_others_and_stripped_whole() -> None:
    listed: list[Any] = [
        [{"key": "a", "value": b"1"}, {"key": "p", "value": b"far"}, {"key": "a", "value": None}],
        [{"key": "p", "value": b"far"}],
        [],
        None,
    ]
    taker = FullNowAndThen(set())
    for added, removed in ((None, None), (("p", b"here"), None), (None, "p")):
        shipment(taker, rows(4, listed), added, removed).send()
    a, far, none, here = ("a", b"1"), ("p", b"far"), ("a", None), ("p", b"here")
    assert [headers for _, headers in taker.taken] == [
        *([a, far, none], [far], None, None),
        *([a, far, none, here], [far, here], [here], [here]),
        *([a, none], None, None, None),
    ]


def test_the_header_is_stripped_beside_a_name_that_is_no_utf_8() -> None:
    """Where a row of a batch has such a name the names of all its rows are bytes."""
    odd, far = {"key": "\ufffd", "value": b"1"}, {"key": "p", "value": b"far"}
    names = pa.array([[b"\xff", b"p"], None], pa.list_(pa.binary()))
    batch = rows(2, [[odd, far], [far]]).append_column("header_names", names)
    taker = FullNowAndThen(set())
    shipment(taker, batch, None, "p").send()
    assert [headers for _, headers in taker.taken] == [[(b"\xff", b"1")], None]


def test_the_native_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(native.SWITCH, raising=False)
    group: Any = None
    assert isinstance(new_producer(MOCK, lambda _event: None, group), Producer)


def test_where_it_cannot_be_the_other_one_is_and_the_log_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(native.SWITCH, raising=False)
    monkeypatch.setattr(selfcheck, "problem", lambda: "there is no such library")
    selfcheck._warn.cache_clear()
    group: Any = None
    for _ in range(3):
        assert isinstance(new_producer(MOCK, lambda _event: None, group), PythonProducer)
    (said,) = [record for record in caplog.records if record.name == selfcheck.__name__]
    assert said.levelno == logging.WARNING and "there is no such library" in said.getMessage()


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(native.SWITCH, "off")
    assert not selfcheck.usable("produced")
