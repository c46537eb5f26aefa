"""Values that a column of the stage cannot hold: beside it, and back, byte by byte."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.native.columns import SCHEMA
from mirrorlake.native.exact import (
    FIRST_MS,
    LAST_MS,
    NO_TIMESTAMP,
    exact_names,
    headers_of,
    readable,
    split_times,
    times_of,
    times_to_send,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
PAIRS = st.lists(st.tuples(st.binary(max_size=4), st.none() | st.binary(max_size=2)), max_size=4)
TIMES = SCHEMA.field("timestamp").type
BINARY_HEADERS = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))


def staged(times: list[int]) -> pa.RecordBatch:
    """Times as a task writes them."""
    held, exact = split_times(pa.chunked_array([pa.array(times, pa.int64()).cast(TIMES)]))
    held = held.cast(pa.timestamp("us", "UTC")).combine_chunks()
    columns = {"timestamp": held} | (
        {} if exact is None else {"timestamp_ms": exact.combine_chunks()}
    )
    return pa.RecordBatch.from_pydict(columns)


@given(
    st.lists(
        INT64 | st.sampled_from([FIRST_MS, FIRST_MS - 1, LAST_MS, LAST_MS + 1, 0, -1]), min_size=1
    )
)
def test_a_time_comes_back_as_it_was(times: list[int]) -> None:
    rows = staged(times)
    assert times_of(rows).to_pylist() == times
    assert times_to_send(rows).tolist() == [at or 1 for at in times]
    assert [at.is_valid for at in rows["timestamp"]] == [FIRST_MS <= ms <= LAST_MS for ms in times]


def test_times_that_are_dates_have_nothing_beside_them() -> None:
    assert staged([FIRST_MS, 0, LAST_MS]).schema.names == ["timestamp"]


def test_a_row_without_any_time_has_kafkas_number_of_none() -> None:
    assert (
        times_of(pa.RecordBatch.from_pydict({"timestamp": pa.nulls(2, TIMES)})).to_pylist()
        == [NO_TIMESTAMP] * 2
    )


@given(st.lists(st.none() | PAIRS.filter(len), min_size=1, max_size=5), st.integers(0, 3))
def test_names_come_back_byte_by_byte(
    rows: list[list[tuple[bytes, bytes | None]] | None], skipped: int
) -> None:
    given_rows = [None if row is None else [{"key": k, "value": v} for k, v in row] for row in rows]
    raw = pa.array(given_rows, BINARY_HEADERS)
    names = raw.flatten().field("key")
    shown = readable(names)
    pairs = pa.StructArray.from_arrays(
        [shown, raw.flatten().field("value")], names=["key", "value"]
    )
    headers = pa.ListArray.from_arrays(raw.offsets, pairs, mask=raw.is_null())
    batch = pa.RecordBatch.from_pydict(
        {"headers": headers, "header_names": exact_names(headers, names)}
    )
    back = headers_of(batch.slice(min(skipped, len(rows))))
    assert back.cast(BINARY_HEADERS).to_pylist() == given_rows[min(skipped, len(rows)) :]
    odd = [row is not None and any(not _is_text(name) for name, _ in row) for row in rows]
    assert [not item.as_py() for item in batch["header_names"].is_null()] == odd


def _is_text(name: bytes) -> bool:
    try:
        return bool(name.decode()) or True
    except UnicodeDecodeError:
        return False


def test_a_header_that_was_added_to_the_staged_ones_keeps_its_name() -> None:
    headers = pa.array([[{"key": "�", "value": b"1"}, {"key": "added", "value": b"2"}]])
    batch = pa.RecordBatch.from_pydict({"headers": headers, "header_names": pa.array([[b"\xff"]])})
    assert [header["key"] for header in headers_of(batch)[0].as_py()] == [b"\xff", b"added"]
