"""The digest of a record, and of a range of records: documented in docs/trust.md, so that they can
be made again.

A record's digest is SHA-256 over its encoding; a range's is SHA-256 over the digests of its
records, one after another. The encoding is, all integers signed and big-endian: timestamp in ms (8
bytes); length of the key, length of the value, number of headers (4 bytes each); key; value; and
for each header, in its order, length of the name, length of the value (4 bytes each), name, value.
A length of -1 says null. Lengths come before what they measure, so that no two different records
have one encoding. Neither Kafka nor Spark is known here.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake.native.exact import SENT_FOR_ZERO, headers_of, times_of
from mirrorlake.produce.provenance import HEADER
from mirrorlake.verify.sides import Side

#: What a side is read as. Timestamps are in ms; headers that are null are no headers, as Kafka has
#: it; the name of one that cannot be read is null.
RECORDS = pa.schema(
    [
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))),
    ]
)
#: How much of a side is held at a time, bytes as Arrow has them.
TWIN_BYTES = 64 << 20
_RECORD = np.dtype([("timestamp", ">i8"), ("key", ">i4"), ("value", ">i4"), ("headers", ">i4")])
_HEADER = np.dtype([("name", ">i4"), ("value", ">i4")])


@dataclass(frozen=True)
class Hops:
    """Ids of the clusters at both ends of a flow that writes, or takes off, headers of provenance.
    Those headers are then no part of a digest."""

    source_id: str
    target_id: str


def as_records(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of a log, of the stage's files, or that Spark hands over, as RECORDS: each names what is
    within lists in its own way."""
    key, value = rows.column("key"), rows.column("value")
    columns = [rows.column("offset"), times_of(rows), key, value, headers_of(rows)]
    return pa.RecordBatch.from_arrays(
        [column.cast(field.type) for column, field in zip(columns, RECORDS, strict=True)],
        schema=RECORDS,
    )


def range_digest(digests: Iterable[bytes]) -> str:
    """The digest of a range, in hexadecimal digits, of those of its records in their order."""
    return hashlib.sha256(b"".join(digests)).hexdigest()


class Twins:
    """The digests of several sides of one range, which hold the same as a rule: what equals a side
    before it, byte by byte, has its digests, and is not hashed again. A side larger than TWIN_BYTES
    is hashed as it comes."""

    def __init__(self, hops: Hops | None = None) -> None:
        self._hops = hops
        self._known: tuple[pa.Table, Side] | None = None

    def side(self, batches: Iterable[pa.RecordBatch]) -> Side:
        """The digests of records as RECORDS has them."""
        rest, gathered, size = iter(batches), list[pa.RecordBatch](), 0
        for batch in rest:
            gathered.append(batch)
            size += batch.nbytes
            if size > TWIN_BYTES:
                return digests_of(chain(gathered, rest), self._hops)
        rows = pa.Table.from_batches(gathered, RECORDS)
        if self._known is None:
            self._known = rows, digests_of(gathered, self._hops)
            return self._known[1]
        known, side = self._known
        if all(rows.column(name).equals(known.column(name)) for name in RECORDS.names[1:]):
            return replace(side, offsets=_numbers(rows.column("offset")))
        return digests_of(gathered, self._hops)


def digests_of(batches: Iterable[pa.RecordBatch], hops: Hops | None = None) -> Side:
    """The digests of records as RECORDS has them."""
    offsets, timestamps, digests = [np.empty(0, np.int64)], [np.empty(0, np.int64)], list[bytes]()
    marks = [np.empty(0, bool)], [np.empty(0, bool)]
    sent: dict[bytes, bytes] = {}
    for batch in batches:
        offsets.append(_numbers(batch.column("offset")))
        timestamps.append(_numbers(batch.column("timestamp")))
        digests += _hashed(encodings(batch, hops))
        sent.update(_sent_instead(batch, hops))
        if hops is not None:
            for marks_of_cluster, cluster in zip(
                marks, (hops.target_id, hops.source_id), strict=True
            ):
                marks_of_cluster.append(_came_from(batch.column("headers"), cluster))
    joined = [np.concatenate(parts) for parts in (offsets, timestamps, *marks)]
    return Side(joined[0], joined[1], digests, echo=joined[2], own=joined[3], sent=sent)


def _sent_instead(batch: pa.RecordBatch, hops: Hops | None) -> dict[bytes, bytes]:
    """Of records that librdkafka cannot send as they are, the digest of what is sent, by their
    own."""
    zero = batch.filter(pc.equal(batch.column("timestamp"), 0))
    if not zero.num_rows:
        return {}
    at = RECORDS.get_field_index("timestamp")
    instead = zero.set_column(
        at, RECORDS.field(at), pa.array([SENT_FOR_ZERO] * zero.num_rows, pa.int64())
    )
    return dict(zip(*(_hashed(encodings(rows, hops)) for rows in (zero, instead)), strict=True))


def encodings(batch: pa.RecordBatch, hops: Hops | None = None) -> pa.Array:
    """The encoding of each record (see the head of this module)."""
    key, value, headers = (batch.column(name) for name in ("key", "value", "headers"))
    counts, flat = _headers(headers, hops)
    head = np.empty(batch.num_rows, _RECORD)
    head["timestamp"], head["headers"] = _numbers(batch.column("timestamp")), counts
    head["key"], head["value"] = _lengths(key), _lengths(value)
    parts = [_fixed(head), _whole(key), _whole(value)]
    if len(flat):
        ends = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        parts.append(
            pc.binary_join(pa.ListArray.from_arrays(pa.array(ends), _encoded(flat)), _EMPTY)
        )
    return pc.binary_join_element_wise(*parts, _EMPTY)


_EMPTY = pa.scalar(b"", pa.binary())
_OURS = pa.scalar(HEADER.encode(), pa.binary())


def _headers(headers: pa.Array, hops: Hops | None) -> tuple[np.ndarray, pa.Array]:
    """How many headers each record has, and all of them; without those of provenance, where the
    flow has some."""
    flat = headers.flatten()
    counts = _numbers(pc.fill_null(pc.list_value_length(headers), 0))
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
    return _numbers(pc.fill_null(pc.binary_length(column), -1))


def _numbers(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    numbers: np.ndarray = column.to_numpy(zero_copy_only=False)
    return numbers


def _hashed(encoded: pa.Array) -> list[bytes]:
    sha256 = hashlib.sha256
    _, ends, data = encoded.buffers()
    at = np.frombuffer(ends, np.int32)[encoded.offset : encoded.offset + len(encoded) + 1].tolist()
    view = memoryview(data) if data is not None else memoryview(b"")
    return [sha256(view[first:end]).digest() for first, end in zip(at, at[1:], strict=False)]


def _came_from(headers: pa.Array, cluster_id: str) -> np.ndarray:
    """For each record, whether a header of provenance names a cluster."""
    flat = headers.flatten()
    counts = _numbers(pc.fill_null(pc.list_value_length(headers), 0))
    named = pc.and_(
        pc.fill_null(pc.equal(pc.struct_field(flat, "key"), _OURS), False),
        pc.fill_null(
            pc.equal(pc.struct_field(flat, "value"), pa.scalar(cluster_id.encode(), pa.binary())),
            False,
        ),
    )
    owners = np.repeat(np.arange(len(counts)), counts)[named.to_numpy(zero_copy_only=False)]
    marks: np.ndarray = np.bincount(owners, minlength=len(counts)) > 0
    return marks
