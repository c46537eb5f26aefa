"""How large rows of the stage are, from where columns of bytes end. A batch may have few rows of
each of hundreds of partitions; Arrow's own size of a batch looks at each buffer of each column,
which takes longer than all else that is done with a few rows."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Rows = TypeVar("Rows")
#: About what Arrow holds of a row beside its key, value and headers, bytes.
_ROW_BYTES = 64


def content_bytes(rows: pa.RecordBatch) -> int:
    """The bytes of all keys and values."""
    return sum(_byte_count(rows.column(name)) for name in ("key", "value"))


def arrow_bytes(rows: pa.RecordBatch) -> int:
    """About the size of rows in Arrow, with all that belongs to a record."""
    headers = rows.column("headers")
    size: int = _ROW_BYTES * rows.num_rows
    if headers.null_count < len(headers):
        size += headers.nbytes
    return size + content_bytes(rows)


def bytes_of_each(rows: pa.RecordBatch) -> np.ndarray:
    """The bytes of key and value of each row."""
    sizes = (pc.fill_null(pc.binary_length(rows.column(name)), 0) for name in ("key", "value"))
    return np.asarray(sum(size.cast(pa.int64()).to_numpy(zero_copy_only=False) for size in sizes))


def grouped(
    parts: Iterable[Rows],
    size_of: Callable[[Rows], tuple[int, int]],
    are_alike: Callable[[Rows, Rows], bool],
    most: tuple[int, int],
) -> Iterator[list[Rows]]:
    """Groups of consecutive parts that are alike: a single part, or up to so many rows and bytes
    together; `size_of` gives both for a part."""
    group, rows, size = list[Rows](), 0, 0
    for part in parts:
        own = size_of(part)
        rows, size = rows + own[0], size + own[1]
        large = rows > most[0] or size > most[1]
        if group and (large or not are_alike(group[-1], part)):
            yield group
            group, (rows, size) = [], own
        group.append(part)
    if group:
        yield group


def _byte_count(column: pa.Array) -> int:
    if column.null_count == len(column):
        return 0
    if column.type != pa.binary() or column.null_count:
        return pc.sum(pc.binary_length(column)).as_py() or 0
    ends = np.frombuffer(column.buffers()[1], np.int32)
    return int(ends[column.offset + len(column)]) - int(ends[column.offset])
