"""What it takes to read some partitions does not grow with those that are assigned beside them."""

import ctypes as C
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from confluent_kafka import KafkaException

from mirrorlake.native.columns import MAX_SIZE
from mirrorlake.native.library import library
from mirrorlake.native.range_table import NOWHERE, RangeTable
from mirrorlake.native.reader import NativeReader
from mirrorlake.native.structures import Message, Surveyed
from tests.support.growth import LINEAR, SAME, growth, steps

NO_HEADERS, TOPIC = -156, 0x1000


class Messages:
    """Functions in librdkafka's place, and records of one topic for them."""

    def __init__(self) -> None:
        self._name = C.create_string_buffer(b"t")
        functions = (
            C.CFUNCTYPE(C.c_void_p, C.c_void_p)(lambda _topic: C.addressof(self._name)),
            C.CFUNCTYPE(C.c_int64, C.c_void_p, C.c_void_p)(lambda _message, _kind: 17),
            C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_void_p)(lambda _message, _out: NO_HEADERS),
            C.CFUNCTYPE(C.c_int)(lambda: 0),
            C.CFUNCTYPE(None, C.c_void_p)(lambda _message: None),
        )
        self._kept = functions
        self._api = (C.c_void_p * 9)(*(C.cast(each, C.c_void_p).value for each in functions))
        self.api = C.addressof(self._api)

    def __getattr__(self, name: str) -> Any:
        return getattr(library(), name)

    def of(self, partitions: list[int], offset: int) -> np.ndarray:
        """The addresses of a record of each partition."""
        self._records = [
            Message(err=0, rkt=TOPIC, partition=number, offset=offset) for number in partitions
        ]
        return np.array([C.addressof(record) for record in self._records], np.uint64)


@contextmanager
def reader(partitions: int) -> Iterator[NativeReader]:
    """A reader that has read a record of each partition, and keeps them all."""
    made = NativeReader({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, keep=True)
    used: Any = made
    messages = used._library = Messages()
    used._consumer.start = used._stop = lambda _: None

    def take(_most: int, _wait_ms: int = 0) -> int:
        rows = used._table.rows[used._open]
        if not len(rows):
            return 0
        addresses = messages.of(rows["partition"].tolist(), int(rows["next"][0]))
        used._messages[used._kept : used._kept + len(addresses)] = addresses
        return int(used._kept + len(addresses))

    used._take = take
    assert len(list(made.read({("t", n): (0, 1) for n in range(partitions)}))) == partitions
    yield made
    used._library, used._kept = library(), 0
    made.close()


def read_on(made: NativeReader, partitions: int) -> Callable[[], object]:
    return lambda: list(made.read({("t", n): (1, 2) for n in range(partitions)}))


def test_a_partition_is_read_alike_beside_however_many() -> None:
    with reader(100) as few, reader(400) as many:
        assert steps(read_on(many, 3)) < SAME * steps(read_on(few, 3))


def test_reading_grows_as_the_partitions_that_are_read() -> None:
    def made(size: int) -> Callable[[], object]:
        def first() -> None:
            with reader(size) as read:
                read.keep_prefetched([])

        return first

    assert growth(made) < LINEAR


def survey_seconds(partitions: int) -> float:
    """How long the loop takes to find the ranges of a record of each partition."""
    lib, table, messages = library(), RangeTable(), Messages()
    table.enter({("t", number): (0, 1) for number in range(partitions)})
    pointers = messages.of(list(range(partitions)), 0)
    places, counted = np.empty(partitions, np.int32), Surveyed(most=MAX_SIZE)
    began = time.thread_time()
    lib.survey(
        *(messages.api, pointers.ctypes.data, partitions, table.address, places.ctypes.data),
        *(table.touched.ctypes.data, C.addressof(counted)),
    )
    seconds = time.thread_time() - began
    assert (counted.count, counted.touched) == (partitions, partitions)
    return seconds


def test_the_range_of_a_record_is_found_at_once() -> None:
    """Sixteen times the partitions take up to sixteen times as long, and 256 times by a search
    among all."""
    few, many = (min(survey_seconds(size) for _ in range(3)) for size in (1_000, 16_000))
    assert many < 60 * few


def test_rows_are_used_again() -> None:
    table = RangeTable()
    for round_ in range(200):
        table.enter({("t", number): (0, 1) for number in range(round_, round_ + 50)})
        table.leave([("t", number) for number in range(round_, round_ + 50)])
    assert len(table.rows) == 64 and set(table.rows["partition"].tolist()) == {NOWHERE}


@pytest.mark.parametrize("count", [1, 40, 5_000])
def test_what_comes_and_goes_is_found_by_its_row(count: int) -> None:
    """Slots of rows that are another partition's by now lead nowhere."""
    lib, table, messages = library(), RangeTable(), Messages()
    for first in (0, count // 2, 3 * count):
        table.leave(list(table.numbers))
        keys = [("t", number) for number in range(first, first + count)]
        table.enter(dict.fromkeys(keys, (0, 1)))
        pointers = messages.of([*range(3 * count + first)], 0)
        places, counted = np.empty(len(pointers), np.int32), Surveyed(most=MAX_SIZE)
        lib.survey(
            *(messages.api, pointers.ctypes.data, len(pointers), table.address),
            *(places.ctypes.data, table.touched.ctypes.data),
            C.addressof(counted),
        )
        found = {number: place & ~(1 << 30) for number, place in enumerate(places) if place >= 0}
        assert found == {
            number: table.numbers["t", number]
            for number in range(first, min(first + count, len(pointers)))
        }


def test_what_was_read_and_not_taken_leaves_room_for_what_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The caller stops in the middle, with more at hand of what it did not ask for than is kept:
    librdkafka writes as many addresses as it is told, wherever their room ends."""
    monkeypatch.setattr("mirrorlake.native.reader.KEPT", 20)
    with reader(2) as made:
        used: Any = made

        def take(_most: int, _wait_ms: int = 0) -> int:
            assert used._kept <= 20
            offset = int(used._table.rows[used._open]["next"][0])
            addresses = used._library.of([0, *[1] * 30], offset)
            used._messages[used._kept : used._kept + len(addresses)] = addresses
            return int(used._kept + len(addresses))

        used._take = take
        stopped = made.read({("t", 0): (1, 3)})
        next(stopped)
        stopped.close()
        assert used._kept == 30
        assert [batch.num_rows for _, batch in made.read({("t", 0): (2, 3)})] == [1]
        assert not used._kept, "they are given back"


def test_what_could_not_be_read_is_nothing_to_those_that_are_read_next() -> None:
    with reader(70) as made:
        used: Any = made
        failed = used._table.numbers_of([("t", 0), ("t", 69)])
        used._table.rows["error"][failed] = 29
        used._failed = failed.tolist()
        with pytest.raises(KafkaException, match="t-69 cannot be read"):
            used._raise_for(0)
        made.keep_prefetched([])
        assert len(list(made.read({("t", 1): (1, 2)}))) == 1
