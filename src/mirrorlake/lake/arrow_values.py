"""Arrow's values, made without importing pandas.

`pa.array`, `pa.scalar`, and functions given a Python number instead of an Arrow one, first check
for objects of pandas. Where it is installed, the check imports it: a second for every answer. A
command turns the check off (`mirrorlake/no_pandas.py`); elsewhere the functions below do without.
"""

from array import array
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


def int64s(values: Sequence[int]) -> pa.Array:
    """As `pa.array` makes it."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(array("q", values))])


def int64(value: int) -> pa.Scalar:
    """As `pa.scalar` makes it."""
    return int64s([value])[0]


FALSE = pc.equal(int64(0), int64(1))


def fill_null(values: pa.ChunkedArray, value: pa.Scalar) -> pa.ChunkedArray:
    """As `pc.fill_null` does it."""
    return pc.call_function("coalesce", [values, value.cast(values.type)])


def table_of(stream: object) -> pa.Table:
    """An Arrow stream of another library as a table, as `pa.table` makes it."""
    return pa.RecordBatchReader.from_stream(stream).read_all()
