"""What the compiled loops do with messages that no broker sends when asked: here, functions in
librdkafka's place."""

import ctypes as C
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from mirrorlake.native.columns import MAX_SIZE, ColumnBuffers
from mirrorlake.native.library import library
from mirrorlake.native.structures import CURSOR_BYTES, RANGE, Message, Surveyed, Table

DROPPED, LATER, BARE = -1, -2, 1 << 30
EOF, BAD_MESSAGE, NO_HEADERS, DENIED = -191, -199, -156, 29
PARTITION = 0
#: What stands for librdkafka's handle of a topic; its name is asked for once.
TOPIC = 0x1000


class Given(NamedTuple):
    """A message: a record, or an error."""

    offset: int
    err: int = 0
    rkt: int | None = TOPIC
    headers: int = NO_HEADERS


class Read(NamedTuple):
    """What `survey` made of messages, the rows that `fill` took of them, and the offsets of those
    that were asked for headers."""

    error: int
    places: list[int]
    range: Any
    rows: list[dict[str, Any]]
    asked: list[int]


def read(given: Sequence[Given], start: int = 0, end: int = 100) -> Read:
    lib = library()
    messages = [
        Message(err=one.err, rkt=one.rkt, partition=PARTITION, offset=one.offset) for one in given
    ]
    pointers = np.array([C.addressof(message) for message in messages], np.uint64)
    by_address = dict(zip(pointers.tolist(), given, strict=True))
    asked: list[int] = []

    def headers_of(message: int, _out: int) -> int:
        asked.append(by_address[message].offset)
        return by_address[message].headers

    name = C.create_string_buffer(b"t")
    topic_name = C.CFUNCTYPE(C.c_void_p, C.c_void_p)(lambda _rkt: C.addressof(name))
    timestamp = C.CFUNCTYPE(C.c_int64, C.c_void_p, C.c_void_p)(lambda _message, _kind: 17)
    headers = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_void_p)(headers_of)
    api = (C.c_void_p * 11)(
        *(C.cast(each, C.c_void_p).value for each in (topic_name, timestamp, headers))
    )
    ranges = np.zeros(1, RANGE)
    ranges[0] = (C.addressof(name), 0, PARTITION, start, end, -1, *[0] * 7)
    slots, touched = np.full(2, -1, np.int32), np.zeros(1, np.int32)
    table, counted = Table(ranges.ctypes.data, slots.ctypes.data, 1), Surveyed(most=MAX_SIZE)
    lib.enter(C.addressof(table), touched.ctypes.data, 1)
    places, cursors = np.zeros(len(given), np.int32), np.zeros(CURSOR_BYTES, np.uint8)
    loop = (C.addressof(api), pointers.ctypes.data, len(given), C.addressof(table))
    taken = lib.survey(*loop, places.ctypes.data, touched.ctypes.data, C.addressof(counted))
    assert taken == len(given)
    room = ColumnBuffers(counted)
    lib.fill(
        *loop[:3],
        *(places.ctypes.data, C.addressof(table), touched.ctypes.data, counted.touched),
        *(cursors.ctypes.data, C.addressof(room.columns), 0),
    )
    rows = room.batch().to_pylist()
    return Read(counted.error, places.tolist(), ranges[0], rows, asked)


def test_records_of_a_range_are_taken_once_and_those_behind_it_are_left() -> None:
    found = read([Given(4), Given(5), Given(7), Given(9), Given(10)], start=5, end=9)
    assert found.places == [DROPPED, BARE, BARE, LATER, LATER]
    assert (found.range["next"], found.range["count"]) == (9, 2)


@pytest.mark.parametrize(("log_end", "over"), [(8, False), (9, True), (12, True)])
def test_the_end_of_the_log_ends_a_range_that_it_covers(log_end: int, over: bool) -> None:
    found = read([Given(5), Given(log_end, EOF)], start=5, end=9)
    assert (found.range["next"] == 9, found.range["log_end"]) == (over, log_end)


def test_an_error_about_no_partition_is_not_that_of_partition_0() -> None:
    """librdkafka's message has the number 0 then, and no topic. Nor has a range of which no record
    has come yet."""
    found = read([Given(0, DENIED, rkt=None), Given(0)])
    assert (found.error, found.range["error"]) == (DENIED, 0)
    assert (found.places, found.range["count"]) == ([DROPPED, BARE], 1)


@pytest.mark.parametrize(
    "broken", [Given(1, DENIED), Given(1, headers=BAD_MESSAGE)], ids=["error", "headers"]
)
def test_nothing_is_taken_behind_what_cannot_be_read(broken: Given) -> None:
    """Headers that cannot be read are not left out, and there is no hole where they were."""
    found = read([Given(0), broken, Given(2), Given(100), Given(200, EOF)])
    assert found.range["error"] == (broken.err or BAD_MESSAGE)
    assert (found.places, found.range["next"]) == ([BARE, DROPPED, DROPPED, DROPPED, DROPPED], 1)


def test_headers_that_a_record_does_not_have_are_asked_for_once() -> None:
    """librdkafka looks for them each time."""
    found = read([Given(3)])
    assert ([(row["offset"], row["headers"]) for row in found.rows], found.asked) == (
        [(3, None)],
        [3],
    )
