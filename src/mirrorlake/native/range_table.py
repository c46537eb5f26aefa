"""A reader's assigned partitions, for the compiled loops: a hash table by topic and partition."""

import ctypes as C
from collections.abc import Collection, Mapping

import numpy as np

from mirrorlake.native.library import library
from mirrorlake.native.structures import CURSOR_BYTES, RANGE, Table

Partition = tuple[str, int]
#: The partition of a free row: of no message. librdkafka's -1 is for messages of a topic alone.
NOWHERE = -2
#: The `log_end` of a range until its log's is reported, and of a leaving one: FORGOTTEN.
UNKNOWN, FORGOTTEN = -1, -2
_FREE = -1


class RangeTable:
    """Rows of `range`, one for each assigned partition, and free ones.

    Attributes:
        rows: the array for records.c; the counts of a row are 0 between two surveys.
        numbers: the row of each partition.
        touched, cursors: space for the loops' notes about rows.
    """

    def __init__(self, size: int = 64) -> None:
        self.numbers: dict[Partition, int] = {}
        self._names: list[C.c_char_p | None] = []
        self._keys: list[Partition | None] = []
        self._free: list[int] = []
        self.rows = np.zeros(0, RANGE)
        self._grow(size)

    @property
    def address(self) -> int:
        """The address of the table for records.c."""
        return C.addressof(self._table)

    def key(self, number: int) -> Partition | None:
        """The partition in a row; None where it is free."""
        return self._keys[number]

    def numbers_of(self, keys: Collection[Partition]) -> np.ndarray:
        """The rows of some partitions, in their order."""
        return np.fromiter((self.numbers[key] for key in keys), np.int32, len(keys))

    def enter(self, ranges: Mapping[Partition, tuple[int, int]]) -> None:
        """Add partitions that are not there, with the wanted offsets of each."""
        while len(self._free) < len(ranges):
            self._grow(len(self.rows))
        for key, (start, end) in ranges.items():
            number = self.numbers[key] = self._free.pop()
            name = self._names[number] = C.c_char_p(key[0].encode())
            self._keys[number] = key
            address = C.cast(name, C.c_void_p).value
            self.rows[number] = (address, 0, key[1], start, end, UNKNOWN, *([0] * 7))
        self._entered += len(ranges)
        if 2 * self._entered > len(self._slots):
            self._place_all()
        else:
            self._place(self.numbers_of(ranges))

    def leave(self, keys: Collection[Partition]) -> None:
        """Remove partitions: their rows are free then."""
        numbers = self.numbers_of(keys)
        self.rows["partition"][numbers] = NOWHERE
        self.rows["next"][numbers] = self.rows["end"][numbers]
        self.rows["error"][numbers] = 0
        for key, number in zip(keys, numbers.tolist(), strict=True):
            del self.numbers[key]
            self._keys[number] = self._names[number] = None
            self._free.append(number)

    def _grow(self, more: int) -> None:
        had = len(self.rows)
        self.rows = np.concatenate([self.rows, np.zeros(more, RANGE)])
        self.rows["partition"][had:] = NOWHERE
        self._names += [None] * more
        self._keys += [None] * more
        self._free += range(had + more - 1, had - 1, -1)
        self.touched = np.empty(had + more, np.int32)
        self.cursors = np.empty((had + more) * CURSOR_BYTES, np.uint8)
        self._place_all()

    def _place_all(self) -> None:
        """Rebuild the hash table, without slots of rows that are free or were reused."""
        self._slots = np.full(1 << (4 * len(self.rows) - 1).bit_length(), _FREE, np.int32)
        addresses = self.rows.ctypes.data, self._slots.ctypes.data
        self._table = Table(*addresses, len(self._slots) - 1)
        self._entered = len(self.numbers)
        self._place(self.numbers_of(self.numbers))

    def _place(self, numbers: np.ndarray) -> None:
        library().enter(self.address, numbers.ctypes.data, len(numbers))
