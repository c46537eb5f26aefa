"""A transaction's size limit: what the target takes in some seconds, by earlier ones. Pure."""

#: How long a transaction should last at most, seconds: many times the cost of its end, and a small
#: part of the broker's timeout.
AIM_SECONDS = 5.0
#: Bounds of a transaction's size, and the limit of a first one, bytes.
SMALLEST, FIRST, LARGEST = 256 << 10, 16 << 20, 128 << 20


class Pace:
    """The size limit of one producer's next transaction, `limit` bytes.

    It at most doubles with each transaction that used it, so that a target's first burst, before
    its quota takes hold, does not count as its speed; it falls at once to the size that, by the
    last transaction, would last AIM_SECONDS.
    """

    def __init__(self) -> None:
        self.limit = FIRST

    def measured(self, size: int, seconds: float) -> None:
        """Learn from a transaction that committed `size` bytes within `seconds`.

        One that was short for its size does not show how much a target takes: only a long one, or
        one that used most of the limit, changes it.
        """
        is_fast = seconds * LARGEST <= size * AIM_SECONDS
        within_aim = LARGEST if is_fast else int(size * AIM_SECONDS / seconds)
        if seconds > AIM_SECONDS:
            self._set(min(self.limit, within_aim))
        elif 2 * size >= self.limit:
            self._set(min(2 * self.limit, within_aim))

    def failed(self, size: int, seconds: float) -> None:
        """Take in a transaction given up after `seconds`, when the target had `size` bytes."""
        self._set(self.limit // 2)
        self.measured(size, seconds)

    def _set(self, limit: int) -> None:
        self.limit = max(SMALLEST, min(LARGEST, limit))
