"""Whether native code works in this process: tries a record of each kind, without a broker.

One loop passes records to a producer, which purges them; the other reads its delivery reports.
"""

import ctypes as C
import logging
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException

from mirrorlake import native
from mirrorlake.native.columns import MAX_SIZE
from mirrorlake.native.library import PRODUCER, REFUSED, Library, NativeUnavailable, library
from mirrorlake.native.structures import (
    CURSOR_BYTES,
    RANGE,
    Columns,
    Message,
    OutgoingRows,
    Surveyed,
    Table,
)

logger = logging.getLogger(__name__)

_TOPIC, _PARTITION, _FIRST = b"selfcheck", 7, 5
#: timestamp, key, value, headers
_RECORDS: tuple[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]], ...] = (
    (1, None, None, []),
    (2**41, b"", b"", [("", b"")]),
    (
        1_700_000_000_000,
        b"key",
        bytes(range(256)),
        [("n", b"1"), ("n", None), ("näme €", b""), ("n", b"1"), ("n\0\0", b"2")],
    ),
    (3, b"\0", None, [("left out", b""), ("left", b"in")]),
)
_ADDED, _REMOVED = ("added", b"\0bytes"), "left out"
#: Bits in front of each bitmap, as in a slice.
_SHIFT = 3
#: RD_KAFKA_EVENT_DR; RD_KAFKA_PURGE_F_QUEUE, _INFLIGHT and _NON_BLOCKING.
_REPORTS, _PURGE = 0x1, 0x7
_WAIT_MS = 5_000


class _Bytes:
    """A column of bytes in Arrow's layout."""

    def __init__(self, values: Sequence[bytes | None]) -> None:
        self.ends = np.cumsum([0, *(len(value or b"") for value in values)], dtype=np.int32)
        self.data = np.array(list(b"".join(value or b"" for value in values)), np.uint8)
        self._present = [value is not None for value in values]
        self.shifted = self.valid(_SHIFT)

    def valid(self, shift: int = 0) -> np.ndarray:
        """The bitmap of non-null values."""
        return np.packbits([*[False] * shift, *self._present], bitorder="little")

    def pointers(self) -> tuple[int, int, int, int]:
        """The fields of `binary` in records.c."""
        return self.ends.ctypes.data, self.data.ctypes.data, self.shifted.ctypes.data, _SHIFT


def problem() -> str | None:
    """Why native code cannot be used here; None if it can. Takes some ms, once per process."""
    return f"{native.SWITCH} is off" if native.switched_off() else _fault()


def usable(work: str) -> bool:
    """Whether native code can be used; else warns once: `work` is read, or produced."""
    why_not = problem()
    if why_not is not None:
        _warn(work, why_not)
    return why_not is None


@cache
def _warn(work: str, why_not: str) -> None:
    logger.warning(
        "records are %s one by one in Python, which is slower, because %s", work, why_not
    )


@cache
def _fault() -> str | None:
    try:
        return _self_check(library())
    except (NativeUnavailable, KafkaException) as error:
        return str(error)


def _self_check(lib: Library) -> str | None:
    producer = lib.client(
        PRODUCER, {"log_level": 0}, lambda conf: lib.conf_set_events(conf, _REPORTS)
    )
    topic, queue = lib.topic_new(producer, _TOPIC, None), lib.queue_get_main(producer)
    slots, error, reports = np.zeros(len(_RECORDS), np.int64), C.c_int64(), None
    rows, _kept = _rows()  # until the end: values are not copied
    where = (
        producer,
        topic,
        _PARTITION,
        C.addressof(rows),
        0,
        slots.ctypes.data,
        C.addressof(error),
    )
    try:
        if lib.send(lib.api, *where) != len(_RECORDS):
            return "the producer does not take a record"
        lib.purge(producer, _PURGE)
        reports = lib.queue_poll(queue, _WAIT_MS)
        return _read(lib, reports, slots) if reports else "no report of records that were given up"
    finally:
        if reports:
            lib.event_destroy(reports)
        lib.queue_destroy(queue)
        lib.topic_destroy(topic)
        lib.destroy(producer)


def _rows() -> tuple[OutgoingRows, list[Any]]:
    """The records in the form that is sent, and the memory in which they lie."""
    timestamps, keys, values, headers = zip(*_RECORDS, strict=True)
    pairs = [pair for of_record in headers for pair in of_record]
    names, header_values = [name.encode() for name, _ in pairs], [value for _, value in pairs]
    columns = [_Bytes(column) for column in (keys, values, names, header_values)]
    timestamp = np.array(timestamps, np.int64)
    ends = np.cumsum([0, *map(len, headers)], dtype=np.int32)
    present = np.packbits([*[False] * _SHIFT, *map(bool, headers)], bitorder="little")
    key, value, name, header_value = [column.pointers() for column in columns]
    rows = OutgoingRows(
        count=len(_RECORDS),
        timestamp=timestamp.ctypes.data,
        key=key,
        value=value,
        header_ends=ends.ctypes.data,
        has_headers=present.ctypes.data,
        headers_shift=_SHIFT,
        name=name,
        header_value=header_value,
        added_name=_ADDED[0].encode(),
        added_value=_ADDED[1],
        added_size=len(_ADDED[1]),
        removed_name=_REMOVED.encode(),
    )
    return rows, [columns, timestamp, ends, present]


def _read(lib: Library, reports: int, slots: np.ndarray) -> str | None:
    """Read the records back from the messages of the reports."""
    count = len(_RECORDS)
    messages = np.zeros(count, np.uint64)
    if lib.event_message_array(reports, messages.ctypes.data, count) != count:
        return "not every record that was given up is reported"
    if not _messages_as_known(lib, messages, slots):
        return "messages of this librdkafka have another layout than in records.c"
    places, cursors = np.zeros(count, np.int32), np.zeros(CURSOR_BYTES, np.uint8)
    ranges = np.zeros(1, RANGE)
    ranges[["partition", "next", "end", "log_end"]] = (_PARTITION, _FIRST, _FIRST + count, -1)
    name = C.c_char_p(_TOPIC)
    ranges["topic"] = C.cast(name, C.c_void_p).value
    hashed, touched = np.full(2, -1, np.int32), np.zeros(1, np.int32)
    table, counted = Table(ranges.ctypes.data, hashed.ctypes.data, 1), Surveyed(most=MAX_SIZE)
    lib.enter(C.addressof(table), touched.ctypes.data, 1)
    given = (lib.api, messages.ctypes.data, count)
    all_ranges = (places.ctypes.data, C.addressof(table), touched.ctypes.data)
    lib.survey(
        *given, C.addressof(table), places.ctypes.data, touched.ctypes.data, C.addressof(counted)
    )
    expected, counts = _expected()
    if any(ranges[0][name] != number for name, number in counts.items()):
        return "the compiled loop counts records wrongly"
    filled = {name: np.zeros_like(column) for name, column in expected.items()}
    columns = Columns(**{name: column.ctypes.data for name, column in filled.items()})
    lib.fill(*given, *all_ranges, 1, cursors.ctypes.data, C.addressof(columns), 0)
    wrong = [name for name, column in expected.items() if not np.array_equal(column, filled[name])]
    return f"the compiled loop reads {', '.join(wrong)} wrongly" if wrong else None


def _messages_as_known(lib: Library, messages: np.ndarray, slots: np.ndarray) -> bool:
    """Whether messages have the known layout; makes them as if read from a partition."""
    deliver = C.CFUNCTYPE(None, C.c_void_p, C.c_void_p, C.c_void_p)(lib.delivered)
    for row, address in enumerate(messages.tolist()):
        message = Message.from_address(address)
        value = _RECORDS[row][2]
        facts = (message.err, message.partition, message.private, message.len)
        if facts != (
            KafkaError._PURGE_QUEUE,
            _PARTITION,
            slots[row:].ctypes.data,
            len(value or b""),
        ):
            return False
        deliver(None, address, None)
        refused = int(slots[row])
        message.err, message.offset = 0, _FIRST + row
        deliver(None, address, None)
        if (refused, slots[row]) != (REFUSED + KafkaError._PURGE_QUEUE, _FIRST + row):
            return False
    return True


def _expected() -> tuple[dict[str, Any], dict[str, int]]:
    """The columns that the records yield, and the counts for them."""
    timestamps, keys, values, given = zip(*_RECORDS, strict=True)
    headers = [[*(pair for pair in pairs if pair[0] != _REMOVED), _ADDED] for pairs in given]
    pairs = [pair for of_record in headers for pair in of_record]
    count = len(timestamps)
    columns: dict[str, Any] = {
        "partition": np.full(count, _PARTITION, np.int32),
        "offset": np.arange(_FIRST, _FIRST + count, dtype=np.int64),
        "timestamp": np.array(timestamps, np.int64),
        "timestamp_type": np.zeros(count, np.int32),
        "header_ends": np.cumsum([0, *map(len, headers)], dtype=np.int32),
        "has_headers": np.packbits([True] * count, bitorder="little"),
    }
    encoded = {"key": keys, "value": values, "name": [name.encode() for name, _ in pairs]}
    for name, column in {**encoded, "header_value": [value for _, value in pairs]}.items():
        made = _Bytes(column)
        columns |= {f"{name}_ends": made.ends, f"{name}s": made.data, f"has_{name}": made.valid()}
    del columns["has_name"]
    sizes = {
        "key_bytes": "keys",
        "value_bytes": "values",
        "name_bytes": "names",
        "header_bytes": "header_values",
    }
    counts = {"count": count, "headers": len(pairs), "next": _FIRST + count}
    return columns, {**counts, **{counter: len(columns[name]) for counter, name in sizes.items()}}
