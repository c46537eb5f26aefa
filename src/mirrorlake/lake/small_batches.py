"""What a small batch is, which the driver takes itself: how many records it may have, and how large
they are; and how many of them are worth starting a session. Pure."""

#: How many Arrow bytes a small batch may hold, and a record is assumed to have at first.
SMALL_BYTES = 16 << 20
UNKNOWN_RECORD_BYTES = 2_000
#: So many, at once or in a row, take about as long as a session to start.
MANY = 25


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
        """Take in the size of some records, bytes in all."""
        if records:
            self._record_bytes = max(100, size // records)


class Demand:
    """Whether more comes than this process handles by itself, one small batch after another."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def worth_a_session(self, batches: float) -> bool:
        """Whether a session is worth its start when there are so many small batches."""
        self._in_a_row = self._in_a_row + 1 if batches > 1 else 0
        return batches > MANY or self._in_a_row > MANY
