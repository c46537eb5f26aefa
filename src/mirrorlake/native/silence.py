"""Silent clients: how long to wait for them, what they complain of, and the errors raised when
partitions that are read are silent."""

import time
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException

#: How much must arrive by one connection for an answer to be in transit, bytes per second: several
#: times what a client receives about the cluster itself.
LEAST_BYTES = 32 << 10
#: How long to wait for an answer in transit, seconds: less than `socket.timeout.ms` of readers
#: (`consumer_settings.py`).
MOST_SECONDS = 280.0


class ClusterSilent(KafkaException):  # type: ignore[misc]
    """Raised when no broker answers, for no single partition. Its error is the last complaint."""


class Complaints:
    """A client's errors that concern no partition: for confluent-kafka's `error_cb`."""

    def __init__(self) -> None:
        self.last: KafkaError | None = None

    def note(self, error: KafkaError) -> None:
        """Called by the client. "All brokers down" is less specific than the reason before it."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN or self.last is None:
            self.last = error


class Silence:
    """How long a client has given no record, since it was `heard`: `allowed` seconds are waited,
    and more while an answer is in transit, such as a large record over a slow link. `received`
    returns the bytes that have come by each connection; it is called once most time is over."""

    def __init__(
        self,
        allowed: float,
        received: Callable[[], Mapping[int, int]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._allowed = allowed
        self._look = allowed / 4
        self._received = received
        self._clock = clock
        self.heard()

    def heard(self) -> None:
        """Note that a record came, or that reading begins."""
        self._since = self._clock()
        self._due = self._since + self._allowed
        self._before: Mapping[int, int] | None = None

    @property
    def seconds(self) -> float:
        """How long no record has come."""
        return self._clock() - self._since

    def is_too_long(self) -> bool:
        """Whether to stop waiting. Call it several times a second."""
        now = self._clock()
        if self._before is None and now >= self._due - self._look:
            self._before = self._received()
        if now < self._due:
            return False
        if now - self._since >= MOST_SECONDS or not self._is_on_its_way():
            return True
        self._due = now + self._look
        return False

    def _is_on_its_way(self) -> bool:
        before, self._before = self._before or {}, self._received()
        most = max((count - before.get(port, 0) for port, count in self._before.items()), default=0)
        return most >= LEAST_BYTES * self._look


def no_record(
    places: Sequence[str], silent_seconds: float, complaint: KafkaError | None
) -> KafkaException:
    """The error for partitions, by name, that gave nothing for so long although brokers answer."""
    text = (
        f"{', '.join(places[:3])} gave no record for {silent_seconds:.0f} s, of {len(places)} "
        "that are read"
    )
    if complaint is not None:
        text = f"{text}; the client says: {complaint.str()}"
    return KafkaException(KafkaError(KafkaError._TIMED_OUT, text))
