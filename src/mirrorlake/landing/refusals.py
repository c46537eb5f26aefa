"""Partitions that could not be read, and when each is tried again; what an error says of them. Pure."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mirrorlake.offsets.positions import TopicAndPartition

#: How long a partition is left out after its first refusal, its second, and so on, seconds.
WAIT_SECONDS = (10.0, 30.0, 120.0, 600.0)
#: The lines of a Spark error that say why; others hold the whole plan of the query, with every partition's name.
_CAUSE = re.compile(r"(?:^|: |by: )[\w.$]*(?:Exception|Error): ")
_PLACE = re.compile(r"[A-Za-z0-9._-]+-\d+")


@dataclass(frozen=True)
class _Refusal:
    reason: str
    times: int
    until: float


class Refusals:
    """What is left out of landing for now. Times are seconds of any clock that the caller keeps to."""

    def __init__(self) -> None:
        self._excluded: dict[TopicAndPartition, _Refusal] = {}

    def add(self, refused: Mapping[TopicAndPartition, str], now: float) -> None:
        """Note that partitions were refused, and why; each wait is longer than the one before."""
        for key, reason in refused.items():
            times = self._excluded[key].times + 1 if key in self._excluded else 1
            wait = WAIT_SECONDS[min(times, len(WAIT_SECONDS)) - 1]
            self._excluded[key] = _Refusal(reason, times, now + wait)

    def excluded(self, now: float) -> dict[TopicAndPartition, str]:
        """What is left out now, with the reason."""
        return {key: item.reason for key, item in self._excluded.items() if now < item.until}

    def over(self, since: float, now: float) -> bool:
        """Whether a wait came to its end behind `since`."""
        return any(since < item.until <= now for item in self._excluded.values())

    def forget(self, keys: Collection[TopicAndPartition]) -> None:
        """They were read: the next refusal is a first one."""
        for key in keys:
            self._excluded.pop(key, None)


def places_in(error: str, keys: Collection[TopicAndPartition]) -> dict[TopicAndPartition, str]:
    """The partitions that the causes in an error's text name, as `topic-partition`, each with what is said of it."""
    names = {f"{topic}-{partition}": (topic, partition) for topic, partition in keys}
    found: dict[TopicAndPartition, str] = {}
    for line in error.splitlines():
        if _CAUSE.search(line):
            for word in _PLACE.findall(line):
                # A name at the end of a sentence has its full stop.
                name = word if word in names else word.rstrip(".")
                if name in names:
                    found[names[name]] = line.removeprefix("Caused by: ")[:500]
    return found
