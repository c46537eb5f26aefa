"""What the compiled loops do with messages that no broker sends when asked: here, functions in librdkafka's place."""

import ctypes as C
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from mirrorlake.native.columns import Room
from mirrorlake.native.library import CURSOR_BYTES, RANGE, library
from mirrorlake.native.selfcheck import _Message as Message

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


class Surveyed(NamedTuple):
    """What `survey` made of messages."""

    error: int
    places: list[int]
    range: Any


def survey(given: Sequence[Given], start: int = 0, end: int = 100) -> Surveyed:
    lib = library()
    messages = [Message(err=one.err, rkt=one.rkt, partition=PARTITION, offset=one.offset) for one in given]
    pointers = np.array([C.addressof(message) for message in messages], np.uint64)
    by_address = dict(zip(pointers.tolist(), given, strict=True))
    name = C.create_string_buffer(b"t")
    topic_name = C.CFUNCTYPE(C.c_void_p, C.c_void_p)(lambda _rkt: C.addressof(name))
    headers = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_void_p)(lambda message, _out: by_address[message].headers)
    api = (C.c_void_p * 11)(C.cast(topic_name, C.c_void_p).value, 0, C.cast(headers, C.c_void_p).value)
    ranges = np.zeros(1, RANGE)
    ranges[0] = (C.addressof(name), 0, PARTITION, start, end, -1, *[0] * 7)
    places = np.zeros(len(given), np.int32)
    error = lib.survey(C.addressof(api), pointers.ctypes.data, len(given), ranges.ctypes.data, 1, places.ctypes.data)
    return Surveyed(error, places.tolist(), ranges[0])


def test_records_of_a_range_are_taken_once_and_those_behind_it_are_left() -> None:
    found = survey([Given(4), Given(5), Given(7), Given(9), Given(10)], start=5, end=9)
    assert found.places == [DROPPED, BARE, BARE, LATER, LATER]
    assert (found.range["next"], found.range["count"]) == (9, 2)


@pytest.mark.parametrize(("log_end", "over"), [(8, False), (9, True), (12, True)])
def test_the_end_of_the_log_ends_a_range_that_it_covers(log_end: int, over: bool) -> None:
    found = survey([Given(5), Given(log_end, EOF)], start=5, end=9)
    assert (found.range["next"] == 9, found.range["log_end"]) == (over, log_end)


def test_an_error_about_no_partition_is_not_that_of_partition_0() -> None:
    """librdkafka's message has the number 0 then, and no topic. Nor has a range of which no record has come yet."""
    found = survey([Given(0, DENIED, rkt=None), Given(0)])
    assert (found.error, found.range["error"]) == (DENIED, 0)
    assert (found.places, found.range["count"]) == ([DROPPED, BARE], 1)


@pytest.mark.parametrize("broken", [Given(1, DENIED), Given(1, headers=BAD_MESSAGE)], ids=["error", "headers"])
def test_nothing_is_taken_behind_what_cannot_be_read(broken: Given) -> None:
    """Headers that cannot be read are not left out, and there is no hole where they were."""
    found = survey([Given(0), broken, Given(2), Given(100), Given(200, EOF)])
    assert found.range["error"] == (broken.err or BAD_MESSAGE)
    assert (found.places, found.range["next"]) == ([BARE, DROPPED, DROPPED, DROPPED, DROPPED], 1)


def test_headers_that_a_record_does_not_have_are_asked_for_once() -> None:
    """librdkafka looks for them each time."""
    lib, message = library(), Message(rkt=TOPIC, partition=PARTITION, offset=3)
    asked: list[int] = []

    def no_headers(found: int, _out: int) -> int:
        asked.append(found)
        return NO_HEADERS

    name = C.create_string_buffer(b"t")
    topic_name = C.CFUNCTYPE(C.c_void_p, C.c_void_p)(lambda _rkt: C.addressof(name))
    timestamp = C.CFUNCTYPE(C.c_int64, C.c_void_p, C.c_void_p)(lambda _message, _kind: 17)
    headers = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_void_p)(no_headers)
    api = (C.c_void_p * 11)(*(C.cast(each, C.c_void_p).value for each in (topic_name, timestamp, headers)))
    ranges, places = np.zeros(1, RANGE), np.zeros(1, np.int32)
    ranges[0] = (C.addressof(name), 0, PARTITION, 0, 100, -1, *[0] * 7)
    pointers = np.array([C.addressof(message)], np.uint64)
    given = (C.addressof(api), pointers.ctypes.data, 1)
    lib.survey(*given, ranges.ctypes.data, 1, places.ctypes.data)
    room, cursors = Room(ranges), np.zeros(CURSOR_BYTES, np.uint8)
    lib.fill(*given, places.ctypes.data, ranges.ctypes.data, 1, cursors.ctypes.data, C.addressof(room.columns), 0)
    (row,) = room.batch().to_pylist()
    assert (row["offset"], row["headers"], len(asked)) == (3, None, 1)
