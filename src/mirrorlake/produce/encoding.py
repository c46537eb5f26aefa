"""The encoding of a record, by which two are the same if and only if their bytes are: documented in
docs/trust.md. All integers are signed and big-endian: timestamp in ms (8 bytes); length of the key,
length of the value, number of headers (4 bytes each); key; value; and for each header, in order,
length of the name, length of the value (4 bytes each), name, value. A length of -1 means null.
Lengths come before what they measure, so no two different records have the same encoding. This
module knows neither Kafka nor Spark.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake.native.exact import SENT_FOR_ZERO, headers_of, times_of
from mirrorlake.produce.provenance import HEADER

#: The form in which records are compared. Timestamps are in ms; null headers are no headers, as in
#: Kafka; the name of a header that cannot be read is null.
RECORDS = pa.schema(
    [
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))),
    ]
)
_RECORD = np.dtype([("timestamp", ">i8"), ("key", ">i4"), ("value", ">i4"), ("headers", ">i4")])
_HEADER = np.dtype([("name", ">i4"), ("value", ">i4")])
_EMPTY = pa.scalar(b"", pa.binary())
_OURS = pa.scalar(HEADER.encode(), pa.binary())


@dataclass(frozen=True)
class Hops:
    """The cluster ids of a flow that adds or strips provenance headers, which digests leave out."""

    source_id: str
    target_id: str


def as_records(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of a log, a file, or Spark as RECORDS: each names fields of lists its own way."""
    key, value = rows.column("key"), rows.column("value")
    columns = [rows.column("offset"), times_of(rows), key, value, headers_of(rows)]
    return pa.RecordBatch.from_arrays(
        [column.cast(field.type) for column, field in zip(columns, RECORDS, strict=True)],
        schema=RECORDS,
    )


def digests(batch: pa.RecordBatch, hops: Hops | None = None) -> list[bytes]:
    """SHA-256 of the encoding of each record."""
    sha256, encoded = hashlib.sha256, encodings(batch, hops)
    _, ends, data = encoded.buffers()
    at = np.frombuffer(ends, np.int32)[encoded.offset : encoded.offset + len(encoded) + 1].tolist()
    view = memoryview(data) if data is not None else memoryview(b"")
    return [sha256(view[first:end]).digest() for first, end in zip(at, at[1:], strict=False)]


def as_sent(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same, as librdkafka can send it: a timestamp of 0 becomes another one."""
    times, at = batch.column("timestamp"), RECORDS.get_field_index("timestamp")
    sent = pc.if_else(pc.equal(times, 0), SENT_FOR_ZERO, times)
    return batch.set_column(at, RECORDS.field(at), sent)


def encodings(batch: pa.RecordBatch, hops: Hops | None = None) -> pa.Array:
    """The encoding of each record (see the head of this module)."""
    key, value, headers = (batch.column(name) for name in ("key", "value", "headers"))
    counts, flat = _headers(headers, hops)
    head = np.empty(batch.num_rows, _RECORD)
    head["timestamp"], head["headers"] = numbers_of(batch.column("timestamp")), counts
    head["key"], head["value"] = _lengths(key), _lengths(value)
    parts = [_fixed(head), _whole(key), _whole(value)]
    if len(flat):
        ends = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        parts.append(
            pc.binary_join(pa.ListArray.from_arrays(pa.array(ends), _encoded(flat)), _EMPTY)
        )
    return pc.binary_join_element_wise(*parts, _EMPTY)


def _headers(headers: pa.Array, hops: Hops | None) -> tuple[np.ndarray, pa.Array]:
    """Records' header counts, and all headers; without provenance if the flow adds or strips it."""
    flat = headers.flatten()
    counts = numbers_of(pc.fill_null(pc.list_value_length(headers), 0))
    if hops is not None and len(flat):
        kept = pc.fill_null(pc.not_equal(pc.struct_field(flat, "key"), _OURS), True)
        owners = np.repeat(np.arange(len(counts)), counts)[kept.to_numpy(zero_copy_only=False)]
        counts, flat = np.bincount(owners, minlength=len(counts)), flat.filter(kept)
    return counts, flat


def _encoded(flat: pa.Array) -> pa.Array:
    name, value = pc.struct_field(flat, "key"), pc.struct_field(flat, "value")
    head = np.empty(len(flat), _HEADER)
    head["name"], head["value"] = _lengths(name), _lengths(value)
    return pc.binary_join_element_wise(_fixed(head), _whole(name), _whole(value), _EMPTY)


def _fixed(head: np.ndarray) -> pa.Array:
    """Rows of a fixed size as bytes."""
    ends = np.arange(0, (len(head) + 1) * head.itemsize, head.itemsize, dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(head), [None, pa.py_buffer(ends), pa.py_buffer(head.tobytes())]
    )


def _whole(column: pa.Array) -> pa.Array:
    return pc.fill_null(column, _EMPTY) if column.null_count else column


def _lengths(column: pa.Array) -> np.ndarray:
    return numbers_of(pc.fill_null(pc.binary_length(column), -1))


def numbers_of(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """A column of numbers as an array."""
    numbers: np.ndarray = column.to_numpy(zero_copy_only=False)
    return numbers
