"""How large rows are: what a transaction is bounded by, and what is reported of bytes."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.lake.row_sizes import arrow_bytes, bytes_of_each, content_bytes

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
BYTES = st.none() | st.binary(max_size=9)
ROWS = st.lists(st.tuples(BYTES, BYTES, st.none() | st.binary(max_size=200)), min_size=1)


def rows_of(
    rows: list[tuple[bytes | None, bytes | None, bytes | None]], kind: pa.DataType
) -> pa.RecordBatch:
    """Rows of the stage: key, value, and the value of a header, None for a row without headers."""
    count, keys, values = len(rows), [key for key, _, _ in rows], [value for _, value, _ in rows]
    headers = [None if value is None else [{"key": "h", "value": value}] for _, _, value in rows]
    return pa.record_batch(
        {
            "source_cluster": pa.array(["east"] * count),
            "topic": pa.array(["orders"] * count),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count)),
            "timestamp": pa.array([0] * count, pa.timestamp("us")),
            "landed_at": pa.array([0] * count, pa.timestamp("us")),
            "key": pa.array(keys, kind),
            "value": pa.array(values, kind),
            "headers": pa.array(headers, HEADERS),
        }
    )


@given(ROWS, st.sampled_from([pa.binary(), pa.large_binary()]), st.data())
def test_bytes_are_those_of_keys_and_values(
    rows: list[tuple[bytes | None, bytes | None, bytes | None]],
    kind: pa.DataType,
    data: st.DataObject,
) -> None:
    """Of a part of a batch too, as it is cut out of a file's rows."""
    first = data.draw(st.integers(0, len(rows) - 1))
    part = rows_of(rows, kind).slice(first)
    lengths = [len(key or b"") + len(value or b"") for key, value, _ in rows[first:]]
    assert content_bytes(part) == sum(lengths)
    assert bytes_of_each(part).tolist() == lengths


@given(ROWS, st.data())
def test_the_size_is_about_the_one_that_arrow_says(
    rows: list[tuple[bytes | None, bytes | None, bytes | None]], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(rows) - 1))
    part = rows_of(rows, pa.binary()).slice(first)
    assert abs(arrow_bytes(part) - part.nbytes) <= 40 * part.num_rows + 40
