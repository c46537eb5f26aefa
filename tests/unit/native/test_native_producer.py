"""The native producer's care for memory, on librdkafka's own mock broker: rows stay as long as
librdkafka needs them, and no longer."""

import gc
import logging
import subprocess
import sys
import weakref
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.native.outgoing import Outgoing
from mirrorlake.native.producer import Producer, _Client
from tests.support.mock_kafka import mock_brokers
from tests.support.native_rows import MOCK, SLOW, rows
from tests.support.waiting import until


def kept(producer: Producer) -> list[Outgoing]:
    """What a producer keeps for librdkafka."""
    return producer._client.kept


def test_rows_are_kept_until_they_are_acknowledged() -> None:
    with mock_brokers({"t": 1}, 1) as kafka:
        kafka.down(1)
        producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0, "log_level": 0})
        shipment = producer.shipment("t", 0, rows([b"a", b"b"]))
        shipment.send()
        assert len(kept(producer)) == 1 and shipment.offsets().max() < 0 and len(producer) >= 2
        assert producer.flush(0.01) >= 2 and kept(producer), "none is acknowledged"
        kafka.up(1)
        assert producer.flush(60) == 0
        assert shipment.offsets().tolist() == [0, 1] and shipment.refused() is None
        assert not kept(producer)


def test_a_producer_that_is_thrown_away_takes_its_rows_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    producer = Producer(SLOW)
    for _ in range(20):
        producer.shipment("t", 0, rows([b"x" * 1_000] * 1_000)).send()
    memory = [weakref.ref(outgoing) for outgoing in kept(producer)]
    client = weakref.ref(producer._client)
    gc.collect()
    assert all(ref() is not None for ref in memory)
    thrown_away, in_time = Event(), list[bool]()
    destroy = _Client._destroy

    def destroyed_later(own: _Client) -> None:
        in_time.append(thrown_away.wait(20))
        destroy(own)

    monkeypatch.setattr(_Client, "_destroy", destroyed_later)
    del producer
    thrown_away.set()
    gc.collect()
    until(lambda: client() is None and not any(ref() for ref in memory))
    assert in_time and all(in_time), "who throws it away waits for it"


def test_it_is_not_destroyed_while_somebody_is_inside() -> None:
    with mock_brokers({"t": 1}, 1) as kafka:
        kafka.down(1)
        producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0, "log_level": 0})
        producer.shipment("t", 0, rows([b"x"] * 10)).send()
        client, left = weakref.ref(producer._client), list[int]()
        entered = Event()

        def flushed(own: Producer) -> None:
            entered.set()
            left.append(own.flush(60))

        inside = Thread(target=flushed, args=(producer,))
        inside.start()
        del producer
        assert entered.wait(20)
        gc.collect()
        assert inside.is_alive() and client() is not None
        kafka.up(1)  # what ends the call is an answer, which a destroyed client would not get
        inside.join(60)
        assert left == [0]
        del inside
    until(lambda: client() is None)


def test_what_is_given_up_says_so() -> None:
    producer = Producer(SLOW)
    shipment = producer.shipment("t", 0, rows([b"x"] * 10))
    shipment.send()
    producer.purge()
    assert producer.flush(10) == 0
    refused = shipment.refused()
    purged = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}
    assert refused is not None and set(refused.tolist()) <= purged and shipment.offsets().max() < 0


def test_a_full_queue_takes_the_rest_later() -> None:
    producer = Producer({**MOCK, "queue.buffering.max.messages": 7})
    shipment = producer.shipment("t", 0, rows([b"%d" % number for number in range(100)]))
    times = 0
    while True:
        try:
            shipment.send()
            break
        except BufferError:
            times += 1
            producer.poll(0.1)
    assert times and producer.flush(10) == 0
    assert shipment.offsets().tolist() == list(range(100))


def test_rows_of_some_partitions_are_made_ready_together() -> None:
    """Each knows what became of its own rows, also where the queue was full in between, or one of
    another partition was refused."""
    limits = {"queue.buffering.max.messages": 7, "message.max.bytes": 20_000}
    producer = Producer({**MOCK, **limits})
    places, counts = [("t", 0), ("u", 1), ("t", 2)], [9, 12, 4]
    values = [b"%d" % number for number in range(25)]
    values[14] = b"x" * 30_000
    first, second, third = producer.shipments(places, counts, rows(values))
    for shipment, count in ((first, 9), (second, 5), (third, 4)):
        while shipment.taken < count:
            try:
                shipment.send()
            except BufferError:
                producer.poll(0.1)
            except KafkaException as refused:
                assert refused.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert producer.flush(10) == 0
    assert first.offsets().tolist() == list(range(9)) and first.refused() is None
    assert second.taken == 5 and second.offsets().tolist()[:5] == list(range(5))
    assert third.offsets().tolist() == list(range(4)) and third.refused() is None


@pytest.mark.parametrize("settings", [{"no.such": 1}, {"acks": "perhaps"}])
def test_settings_that_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(KafkaException) as refused:
        Producer({**MOCK, **settings})
    assert next(iter(settings)) in str(refused.value)


def test_what_a_state_does_not_allow_is_said_by_kafkas_code() -> None:
    producer = Producer({**MOCK, "transactional.id": "t"})
    with pytest.raises(KafkaException) as refused:
        producer.begin_transaction()
    assert refused.value.args[0].name() == "_STATE"
    producer.init_transactions(10)
    with pytest.raises(KafkaException) as refused:
        producer.shipment("t", 0, rows([b"x"])).send()
    assert refused.value.args[0].name() == "_STATE"


def test_lines_come_to_the_one_who_polls(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    producer = Producer({**MOCK, "debug": "broker"}, logger=logging.getLogger("lines"))
    producer.refresh(None, 10)
    assert not caplog.records
    producer.poll(0.1)
    assert caplog.records and {record.name for record in caplog.records} == {"lines"}


def test_no_rows_are_all_acknowledged() -> None:
    producer = Producer(MOCK)
    shipment = producer.shipment("t", 0, rows([]))
    shipment.send()
    assert (
        producer.flush(1) == 0 and shipment.offsets().tolist() == [] and shipment.refused() is None
    )


def test_the_rows_of_a_slice_are_its_own() -> None:
    """What is handed over begins at the slice, in every buffer."""
    values = [None if number % 3 == 0 else b"%d" % number for number in range(40)]
    outgoing = Outgoing(rows(values).slice(9, 5))
    assert outgoing.rows.count == 5 and outgoing.rows.value.shift == 9 and len(outgoing.slots) == 5
    assert not outgoing.rows.key.valid or outgoing.rows.key.shift == 9
    assert not outgoing.rows.header_ends, "where no row has headers, none are looked at"


ENDINGS = """
import gc, sys
import pyarrow as pa
from mirrorlake.native.producer import Producer
from tests.support.native_rows import SLOW, rows
from tests.support.waiting import until
producers = [Producer(SLOW) for _ in range(4)]
for producer in producers:
    producer.shipment("t", 0, rows([b"x" * 100_000] * 50)).send()
    producer.poll(0.05)
if sys.argv[1] == "thrown away":
    del producer, producers
    gc.collect()
"""


@pytest.mark.parametrize("how", ["alive", "thrown away"])
def test_a_process_may_end_while_rows_are_on_their_way(how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDINGS, how], timeout=60, capture_output=True, check=False
    )
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_memory_does_not_grow_with_what_was_sent() -> None:
    """1.2 GB in records of 10 MB, each transaction acknowledged before the next."""
    import psutil

    producer = Producer({**MOCK, "message.max.bytes": 100_000_000, "compression.type": "lz4"})
    value, sizes = b"x" * 10_000_000, []
    for _ in range(40):
        producer.shipment("t", 0, rows([value] * 3)).send()
        assert producer.flush(30) == 0
        sizes.append(psutil.Process().memory_info().rss)
    assert max(sizes[20:]) < max(sizes[:20]) + (64 << 20), np.array(sizes) >> 20
