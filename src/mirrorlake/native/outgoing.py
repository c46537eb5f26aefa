"""Arrow rows in the form of the compiled loop `send`: copies only what has another layout."""

import ctypes as C
from typing import Any

import numpy as np
import pyarrow as pa

from mirrorlake.native.exact import headers_of, times_to_send
from mirrorlake.native.library import PENDING
from mirrorlake.native.structures import Binary, OutgoingRows

#: The columns that are sent; files of the stage may lack the last two.
SENT = ("timestamp", "key", "value", "headers", "timestamp_ms", "header_names")


class Outgoing:
    """Rows on their way to one or several partitions, and the outcome of each.

    `rows` has the columns `key`, `value`, `headers` (a list of structs `key`, `value`) and
    `timestamp`, and those of native/exact.py, if any. `added` is a header appended to those of each
    record; headers of the name `removed` are left out.
    """

    def __init__(
        self,
        rows: pa.RecordBatch,
        added: tuple[str, bytes] | None = None,
        removed: str | None = None,
    ) -> None:
        #: For each row PENDING, its offset, or REFUSED plus an error's code.
        self.slots = np.full(rows.num_rows, PENDING, np.int64)
        #: The address of the slots.
        self.address = self.slots.ctypes.data
        self._held: list[Any] = []
        self.rows = OutgoingRows(count=rows.num_rows)
        if rows.num_rows == 0:
            return
        times = times_to_send(rows)
        self._held.append(times)
        self.rows.timestamp = times.ctypes.data
        self.rows.key = self._binary(rows.column("key"))
        self.rows.value = self._binary(rows.column("value"))
        self._take_headers(headers_of(rows))
        if added is not None:
            self.rows.added_name, self.rows.added_value = added[0].encode(), added[1]
            self.rows.added_size = len(added[1])
        if removed is not None:
            self.rows.removed_name = removed.encode()

    def _take_headers(self, column: pa.Array) -> None:
        if column.null_count == len(column):
            return
        if not pa.types.is_list(column.type):
            column = column.cast(pa.list_(column.type.value_type))
        pairs = column.values
        self._held.append(column)
        self.rows.header_ends = _buffer(column, 1, 4 * column.offset)
        self.rows.has_headers, self.rows.headers_shift = _buffer(column, 0), column.offset
        self.rows.name = self._binary(pairs.field("key"))
        self.rows.header_value = self._binary(pairs.field("value"))

    def _binary(self, column: pa.Array) -> Binary:
        """A column of bytes or texts; a copy if of another type, such as large offsets."""
        if not (pa.types.is_binary(column.type) or pa.types.is_string(column.type)):
            column = column.cast(pa.binary())
        self._held.append(column)
        valid = _buffer(column, 0) if column.null_count else None
        return Binary(
            _buffer(column, 1, 4 * column.offset), _buffer(column, 2), valid, column.offset
        )


def _buffer(array: pa.Array, number: int, skipped: int = 0) -> int | None:
    """The address of an array's buffer, `skipped` bytes on; None if it has none."""
    buffer: Any = array.buffers()[number]
    return None if buffer is None else int(C.c_void_p(buffer.address).value or 0) + skipped or None
