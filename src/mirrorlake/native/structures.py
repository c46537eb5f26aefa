"""The memory that Python shares with the compiled loops of `records.c`, and with librdkafka."""

import ctypes as C

import numpy as np

_P, _S, _I32, _I64, _SIZE = C.c_void_p, C.c_char_p, C.c_int32, C.c_int64, C.c_size_t

#: A partition that is being read: `range` in records.c.
_OF_RANGE = ("topic", "rkt", "partition", "next", "end", "log_end", "error")
#: What `survey` counts of each range.
COUNTED = ("count", "key_bytes", "value_bytes", "headers", "name_bytes", "header_bytes")
_SUMS = [(name, _I64) for name in COUNTED]
RANGE = np.dtype([(name, np.int64) for name in (*_OF_RANGE, *COUNTED)])
#: Bytes of `cursor` in records.c, one for each range.
CURSOR_BYTES = 6 * 8


class Table(C.Structure):
    """`table` in records.c: ranges, and the slot of each."""

    _fields_ = [("ranges", _P), ("slots", _P), ("mask", _I64)]


class Surveyed(C.Structure):
    """`surveyed` in records.c: the counts of `survey` so far, within `most` of each column."""

    _fields_ = [("most", _I64), *_SUMS, ("touched", _I64), ("error", _I64)]


class Columns(C.Structure):
    """`columns` in records.c: where records are copied to."""

    _fields_ = [
        *((name, _P) for name in ("partition", "offset", "timestamp", "timestamp_type")),
        *(
            (name, _P)
            for name in ("key_ends", "value_ends", "header_ends", "name_ends", "header_value_ends")
        ),
        *((name, _P) for name in ("keys", "values", "names", "header_values")),
        *((name, _P) for name in ("has_key", "has_value", "has_headers", "has_header_value")),
        *((name, _I64) for name in ("keyless", "valueless", "headerless", "header_valueless")),
    ]


class Binary(C.Structure):
    """`binary` in records.c: a column of bytes."""

    _fields_ = [("ends", _P), ("data", _P), ("valid", _P), ("shift", _I64)]


class OutgoingRows(C.Structure):
    """`rows` in records.c: rows that are passed to a producer."""

    _fields_ = [
        ("count", _I64),
        ("timestamp", _P),
        ("key", Binary),
        ("value", Binary),
        ("header_ends", _P),
        ("has_headers", _P),
        ("headers_shift", _I64),
        ("name", Binary),
        ("header_value", Binary),
        ("added_name", _S),
        ("added_value", _S),
        ("added_size", _I64),
        ("removed_name", _S),
    ]


class Asked(C.Structure):
    """`asked` in records.c: partitions, and the answers about them."""

    _fields_ = [("topics", _P), ("partitions", _P), ("count", _I64), ("told", _P)]


class PartitionStruct(C.Structure):
    """librdkafka's `rd_kafka_topic_partition_t`, as rdkafka.h has it."""

    _fields_ = [
        ("topic", _S),
        ("partition", _I32),
        ("offset", _I64),
        ("metadata", _P),
        ("metadata_size", _SIZE),
        ("opaque", _P),
        ("error", C.c_int),
        ("_private", _P),
    ]


class Message(C.Structure):
    """librdkafka's `rd_kafka_message_t`, as rdkafka.h has it."""

    _fields_ = [
        ("err", C.c_int),
        ("rkt", _P),
        ("partition", _I32),
        ("payload", _P),
        ("len", _SIZE),
        ("key", _P),
        ("key_len", _SIZE),
        ("offset", _I64),
        ("private", _P),
    ]
