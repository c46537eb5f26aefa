"""Arrow's values, made without importing pandas.

`pa.array`, `pa.scalar`, and whatever is given a number of Python instead of one of Arrow, ask first
whether they were given something of pandas. Where that is installed they import it to ask, which
costs every answer a second. A command has them not ask (`mirrorlake/no_pandas.py`); elsewhere the
functions below do without.
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
    """What another library gives as an Arrow stream, as `pa.table` makes it."""
    return pa.RecordBatchReader.from_stream(stream).read_all()
