"""How long to wait for a target: acknowledgements tell a slow one from one that is gone."""

import time

from confluent_kafka import KafkaError, KafkaException, ThrottleEvent

#: How long the target may not acknowledge a single record before the task gives up and is tried
#: again, seconds. Tasks that wait for a target that is gone hold the cores that other flows need.
CALL_SECONDS = 20.0
#: How long the group's coordinator may take for positions, seconds: if it was lost, librdkafka
#: waits for longer than its timeout (`produce/deadline.py`), and only another attempt helps.
OFFSETS_SECONDS = 10.0


class Patience:
    """Waits for a target as long as acknowledgements come in: it is slow, and not gone.

    It is also the producer's `throttle_cb`: a broker that holds a client to a quota reports for how
    long it will not read from it, and is not gone meanwhile.
    """

    def __init__(self) -> None:
        self._muted_until = 0.0
        self._left = 0
        self._since = time.monotonic()

    def __call__(self, event: ThrottleEvent) -> None:
        # Answers on other connections, which are not throttled, report 0 meanwhile.
        self._muted_until = max(self._muted_until, time.monotonic() + event.throttle_time)

    def call_seconds(self) -> float:
        """How long one call to the target may take, seconds."""
        return CALL_SECONDS + self._muted_seconds()

    def offsets_seconds(self) -> float:
        """How long a commit of positions may take, seconds."""
        return min(CALL_SECONDS, OFFSETS_SECONDS) + self._muted_seconds()

    def _muted_seconds(self) -> float:
        return max(0.0, self._muted_until - time.monotonic())

    def start(self) -> None:
        """Count the time of silence from now on."""
        self._left, self._since = 0, time.monotonic()

    def over(self, left: int) -> bool:
        """Whether there was no acknowledgement for too long; `left` records have none yet."""
        now = time.monotonic()
        if left < self._left:
            self._since = now
        self._left = left
        return now - max(self._since, self._muted_until) > CALL_SECONDS

    def check(self, left: int) -> None:
        """Raise KafkaException when there was no acknowledgement for too long."""
        if self.over(left):
            text = f"{left} records are not acknowledged, and none was for {CALL_SECONDS:.0f} s"
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, text))
