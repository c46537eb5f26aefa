"""Values that a column of the stage cannot hold, and the columns beside it that hold them.

Kafka accepts any 64-bit number as a record's time, and any bytes as a header's name; a TIMESTAMP of
Delta, Spark or DuckDB is within the years 1 to 9999, and a STRING is UTF-8. The few values that do
not fit are in `timestamp_ms` and `header_names`, which are null for all other records.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: The times that `timestamp` holds, ms since 1970: from the start of year 1 to the end of 9999.
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
#: Kafka's number for a record without a time.
NO_TIMESTAMP = -1
#: Sent for a time of 0, which librdkafka takes for "now": the nearest time to it.
SENT_FOR_ZERO = 1
_NAMES = pa.list_(pa.binary())


def split_times(times: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray | None]:
    """Times in ms as the stage has them: `timestamp`, and `timestamp_ms`, None if all null."""
    ends = pc.min_max(times.cast(pa.int64()))
    first, last = ends["min"].as_py(), ends["max"].as_py()
    if first is None or (first >= FIRST_MS and last <= LAST_MS):
        return times, None
    numbers = times.cast(pa.int64())
    fits = pc.and_(pc.greater_equal(numbers, FIRST_MS), pc.less_equal(numbers, LAST_MS))
    nothing = pa.scalar(None, pa.int64())
    return pc.if_else(fits, numbers, nothing).cast(times.type), pc.if_else(fits, nothing, numbers)


def times_of(rows: pa.RecordBatch) -> pa.Array:
    """The time of each staged row in ms, as it is in Kafka."""
    held = rows.column("timestamp").cast(pa.timestamp("ms"), safe=False).view(pa.int64())
    if not held.null_count:
        return held
    exact = _beside(rows, "timestamp_ms")
    return pc.fill_null(held if exact is None else pc.coalesce(held, exact), NO_TIMESTAMP)


def times_to_send(rows: pa.RecordBatch) -> np.ndarray:
    """The time of each staged row in ms, as librdkafka can send it."""
    times = times_of(rows).to_numpy(zero_copy_only=False)
    return np.where(times == 0, SENT_FOR_ZERO, times)


def readable(names: pa.Array) -> pa.Array:
    """Names of headers, from bytes to texts: invalid UTF-8 becomes U+FFFD, as in Kafka's Java
    client. The same memory if all are valid."""
    text = pa.Array.from_buffers(pa.string(), len(names), names.buffers(), 0, names.offset)
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([name.decode(errors="replace") for name in names.to_pylist()], pa.string())
    return text


def exact_names(headers: pa.Array, names: pa.Array) -> pa.Array:
    """The column `header_names` of headers with `names`, in bytes: null where all are UTF-8."""
    shown = pc.struct_field(headers.flatten(), "key").cast(pa.binary())
    odd = pc.unique(pc.list_parent_indices(headers).filter(pc.not_equal(shown, names))).to_pylist()
    exact: list[list[bytes] | None] = [None] * len(headers)
    ends = headers.offsets.to_pylist()
    for row in odd:
        exact[row] = names.slice(ends[row], ends[row + 1] - ends[row]).to_pylist()
    return pa.array(exact, _NAMES)


def headers_of(rows: pa.RecordBatch) -> pa.Array:
    """The headers of each staged row. With a column `header_names`, all names are bytes; headers of
    a row beyond those names were added to the staged ones."""
    headers, exact = rows.column("headers"), _beside(rows, "header_names")
    if exact is None or exact.null_count == len(exact):
        return headers
    rows_of_headers = []
    for row, names in zip(headers.to_pylist(), exact.to_pylist(), strict=True):
        shown = [header["key"].encode() for header in row or ()]
        shown[: len(names or ())] = names or ()
        pairs = zip(shown, row or (), strict=True)
        rows_of_headers.append(
            None
            if row is None
            else [{"key": name, "value": header["value"]} for name, header in pairs]
        )
    return pa.array(
        rows_of_headers, pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
    )


def _beside(rows: pa.RecordBatch, name: str) -> pa.Array | None:
    """A column that files of earlier versions lack."""
    at = rows.schema.get_field_index(name)
    return None if at < 0 else rows.column(at)
