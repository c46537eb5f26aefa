"""What a small batch is: one that the driver takes itself, by how many records it may have and how
large they are."""

#: What a small batch may hold, bytes as Arrow has them, and what a record is taken for before there
#: were some, bytes.
SMALL_BYTES = 16 << 20
UNKNOWN_RECORD_BYTES = 2_000


class SmallBatches:
    """Up to `records` records, and SMALL_BYTES by the size of those before them."""

    def __init__(self, records: int) -> None:
        self.records = records
        self._record_bytes = UNKNOWN_RECORD_BYTES

    @property
    def max_records(self) -> int:
        """How many records a small batch may have."""
        return min(self.records, SMALL_BYTES // self._record_bytes)

    def learn(self, records: int, size: int) -> None:
        """Take in how large some records were, bytes."""
        if records:
            self._record_bytes = max(100, size // records)
