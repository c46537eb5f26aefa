"""A limit of bytes a second. Pure: the clock is given."""

from collections.abc import Callable


class Throttle:
    """Lets so many bytes per second through (None: no limit); at most one second's worth of unused
    bytes is saved up. `clock` returns seconds, and `wait` waits for some."""

    def __init__(
        self, bytes_per_s: float | None, clock: Callable[[], float], wait: Callable[[float], object]
    ) -> None:
        self._rate, self._clock, self._wait = bytes_per_s, clock, wait
        self._free_at = clock()

    def took(self, size: int) -> None:
        """Count `size` bytes as read; wait until the next ones may be read."""
        if not self._rate:
            return
        now = self._clock()
        self._free_at = max(self._free_at, now - 1.0) + size / self._rate
        if self._free_at > now:
            self._wait(self._free_at - now)
