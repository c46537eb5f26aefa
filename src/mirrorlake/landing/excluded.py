"""Partitions that could not be read, and when each is tried again. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mirrorlake.errors import StagingError
from mirrorlake.offsets.positions import TopicAndPartition

#: How long a partition is left out after its first refusal, its second, and so on, seconds.
WAIT_SECONDS = (10.0, 30.0, 120.0, 600.0)


@dataclass(frozen=True)
class _Exclusion:
    reason: str
    times: int
    until: float


class ExcludedPartitions:
    """The partitions that landing leaves out for now. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._excluded: dict[TopicAndPartition, _Exclusion] = {}

    def add(self, refused: Mapping[TopicAndPartition, str], now: float) -> None:
        """Note that partitions were refused, and why; each wait is longer than the one before."""
        for key, reason in refused.items():
            times = self._excluded[key].times + 1 if key in self._excluded else 1
            wait = WAIT_SECONDS[min(times, len(WAIT_SECONDS)) - 1]
            self._excluded[key] = _Exclusion(reason, times, now + wait)

    def excluded(self, now: float) -> dict[TopicAndPartition, str]:
        """The partitions that are left out now, with the reasons."""
        return {
            key: exclusion.reason
            for key, exclusion in self._excluded.items()
            if now < exclusion.until
        }

    def over(self, since: float, now: float) -> bool:
        """Whether a wait has ended since `since`."""
        return any(since < exclusion.until <= now for exclusion in self._excluded.values())

    def forget(self, keys: Collection[TopicAndPartition]) -> None:
        """Forget partitions that were read: their next refusal is a first one."""
        for key in keys:
            self._excluded.pop(key, None)


def unstageable(error: Exception) -> dict[TopicAndPartition, str]:
    """The partition with a record that cannot be staged, and the error, if there is one."""
    if not isinstance(error, StagingError) or error.topic is None or error.partition is None:
        return {}
    return {(error.topic, error.partition): error.message}
