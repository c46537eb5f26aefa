"""Arrow columns that the compiled loops fill: as large as messages need, and not copied again."""

import ctypes as C
from typing import Any

import numpy as np
import pyarrow as pa

from mirrorlake.native.exact import exact_names, readable
from mirrorlake.native.structures import Columns, Surveyed

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS = pa.list_(_HEADER)
#: The columns of a batch of records. `timestamp` in ms; `timestamp_type` 0 CreateTime, 1
#: LogAppendTime, -1 none. Headers in their order; null for a record without any. If a header's name
#: is not UTF-8 the batch has `header_names` too, see native/exact.py.
SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
    ]
)
#: Offsets into a column's bytes have 32 bits.
MAX_SIZE = 2**31 - 1


class ColumnBuffers:
    """Memory for what `survey` counted of some messages, at most MAX_SIZE of each column: to be
    filled, then taken as a batch. `size` is the bytes of keys, values and headers."""

    def __init__(self, counted: Surveyed) -> None:
        size = {
            name: int(getattr(counted, name))
            for name in ("key_bytes", "value_bytes", "name_bytes", "header_bytes")
        }
        self.rows, self._headers = int(counted.count), int(counted.headers)
        self.size = sum(size.values())
        self._buffers: dict[str, Any] = {}
        for name, width in (
            ("partition", 4),
            ("offset", 8),
            ("timestamp", 8),
            ("timestamp_type", 4),
        ):
            self._buffers[name] = pa.allocate_buffer(width * self.rows)
        for name in ("key_ends", "value_ends", "header_ends"):
            self._buffers[name] = pa.allocate_buffer(4 * (self.rows + 1))
        for name in ("name_ends", "header_value_ends"):
            self._buffers[name] = pa.allocate_buffer(4 * (self._headers + 1))
        for name, field in (
            ("keys", "key"),
            ("values", "value"),
            ("names", "name"),
            ("header_values", "header"),
        ):
            self._buffers[name] = pa.allocate_buffer(size[f"{field}_bytes"])
        for name in ("has_key", "has_value", "has_headers"):
            self._buffers[name] = pa.py_buffer(np.zeros(self.rows // 8 + 1, np.uint8))
        self._buffers["has_header_value"] = pa.py_buffer(np.zeros(self._headers // 8 + 1, np.uint8))
        self.columns = Columns(**{name: buffer.address for name, buffer in self._buffers.items()})

    def batch(self) -> pa.RecordBatch:
        """The filled columns."""
        names = ("partition", "offset", "timestamp", "timestamp_type")
        plain = [
            pa.Array.from_buffers(SCHEMA.field(name).type, self.rows, [None, self._buffers[name]])
            for name in names
        ]
        key = self._binary(self.rows, "has_key", "key_ends", "keys", self.columns.keyless)
        value = self._binary(self.rows, "has_value", "value_ends", "values", self.columns.valueless)
        if not self._headers:
            return pa.RecordBatch.from_arrays(
                [*plain, key, value, pa.nulls(self.rows, HEADERS)], schema=SCHEMA
            )
        names = self._binary(self._headers, None, "name_ends", "names", 0)
        headers = self._all_headers(shown := readable(names))
        batch = pa.RecordBatch.from_arrays([*plain, key, value, headers], schema=SCHEMA)
        if shown.buffers()[2] is None or shown.buffers()[2].address == names.buffers()[2].address:
            return batch
        return batch.append_column("header_names", exact_names(headers, names))

    def _all_headers(self, names: pa.Array) -> pa.Array:
        valueless = self.columns.header_valueless
        values = self._binary(
            self._headers, "has_header_value", "header_value_ends", "header_values", valueless
        )
        pairs = pa.StructArray.from_arrays([names, values], fields=list(_HEADER))
        buffers = [self._buffers["has_headers"], self._buffers["header_ends"]]
        return pa.Array.from_buffers(
            HEADERS, self.rows, buffers, self.columns.headerless, children=[pairs]
        )

    def _binary(self, count: int, valid: str | None, ends: str, data: str, nulls: int) -> pa.Array:
        bitmap = self._buffers[valid] if valid is not None and nulls else None
        buffers = [bitmap, self._buffers[ends], self._buffers[data]]
        return pa.Array.from_buffers(pa.binary(), count, buffers, nulls)


def address(buffer: pa.Buffer | None) -> int | None:
    """The address of a buffer; None if there is none, or it is empty."""
    return None if buffer is None or not buffer.size else int(C.c_void_p(buffer.address).value or 0)
