"""What is too much for a column at a time is read in parts. The broker is librdkafka's mock, in
this process."""

import ctypes as C
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer, cimpl

from mirrorlake.native import columns
from mirrorlake.native.library import PRODUCER, library
from mirrorlake.native.reader import NativeReader

TOPIC, RECORDS = "t", 500


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A mock broker whose topic has RECORDS records in each of two partitions, each value 8
    bytes."""
    lib, found = library(), C.CDLL(cimpl.__file__)
    for name, taken in (("rd_kafka_handle_mock_cluster", 1), ("rd_kafka_mock_topic_create", 4)):
        getattr(found, name).argtypes = (C.c_void_p, C.c_char_p, C.c_int, C.c_int)[:taken]
    found.rd_kafka_handle_mock_cluster.restype = C.c_void_p
    found.rd_kafka_mock_cluster_bootstraps.argtypes = (C.c_void_p,)
    found.rd_kafka_mock_cluster_bootstraps.restype = C.c_char_p
    owner = lib.client(PRODUCER, {"test.mock.num.brokers": 1, "log_level": 2})
    cluster = found.rd_kafka_handle_mock_cluster(owner)
    found.rd_kafka_mock_topic_create(cluster, TOPIC.encode(), 2, 1)
    address = found.rd_kafka_mock_cluster_bootstraps(cluster).decode()
    producer = Producer({"bootstrap.servers": address, "log_level": 2})
    for number in range(RECORDS):
        for partition in (0, 1):
            producer.produce(TOPIC, b"%08d" % number, partition=partition, headers=[("n", None)])
    assert producer.flush(20) == 0
    yield address
    lib.destroy(owner)


def values(found: Iterator[tuple[Any, Any]]) -> dict[Any, list[bytes]]:
    gathered: dict[Any, list[bytes]] = {}
    for key, batch in found:
        batch.validate(full=True)
        assert sum(len(value) for value in batch.column("value").to_pylist()) <= columns.MAX_SIZE
        gathered.setdefault(key, []).extend(batch.column("value").to_pylist())
    return gathered


def expected(first: int, end: int) -> list[bytes]:
    return [b"%08d" % number for number in range(first, end)]


@pytest.mark.parametrize("most", [2**31 - 1, 1_000, 8])
def test_all_is_read_in_order_and_what_is_behind_the_end_is_kept(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(columns, "MAX_SIZE", most)
    both = [(TOPIC, 0), (TOPIC, 1)]
    used = NativeReader({"bootstrap.servers": bootstrap, "log_level": 2}, keep=True)
    try:
        for first, end in ((0, 123), (123, 200), (200, RECORDS)):
            assert values(used.read(dict.fromkeys(both, (first, end)))) == dict.fromkeys(
                both, expected(first, end)
            )
        again = used.read({both[0]: (0, RECORDS)})
        next(again)  # somebody who stops in the middle, with more at hand
        again.close()
        assert values(used.read({both[0]: (7, 20)})) == {both[0]: expected(7, 20)}
    finally:
        used.close()


@pytest.mark.parametrize("keep", [True, False])
def test_small_answers_have_all_too(bootstrap: str, keep: bool) -> None:
    """Whatever a cluster's client settings say of the largest messages."""
    settings = {"bootstrap.servers": bootstrap, "log_level": 2, "message.max.bytes": 10_000_000}
    used = NativeReader(settings, keep=keep, small_answers=True)
    try:
        for first, end in ((0, 123), (123, RECORDS)):
            assert values(used.read({(TOPIC, 0): (first, end)})) == {
                (TOPIC, 0): expected(first, end)
            }
    finally:
        used.close()


def test_a_record_that_no_column_holds_is_an_error(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "MAX_SIZE", 7)
    used = NativeReader({"bootstrap.servers": bootstrap, "log_level": 2})
    try:
        with pytest.raises(OverflowError):
            values(used.read({(TOPIC, 0): (0, 10)}))
    finally:
        used.close()


def test_an_error_says_which_offset_was_wanted(bootstrap: str) -> None:
    used = NativeReader({"bootstrap.servers": bootstrap, "log_level": 2})
    try:
        with pytest.raises(KafkaException, match=f"{TOPIC}-1 cannot be read from offset 9000: "):
            values(used.read({(TOPIC, 1): (9_000, 9_010)}))
    finally:
        used.close()
