"""A cluster's offsets of partitions, without those that it lacks or whose leader is silent."""

import time
from collections.abc import Callable, Collection, Mapping

from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.offsets.known_offsets import KnownOffsets
from mirrorlake.offsets.positions import LogEnds, TopicAndPartition

#: How often `ThrottledLogEnds` asks for the end of a log.
_EACH_SECONDS = 60.0


def logs(
    admin: ClusterAdmin, wanted: Collection[TopicAndPartition]
) -> Mapping[TopicAndPartition, LogEnds]:
    """The logs of partitions, up to the high watermark."""
    return admin.log_ends(there(admin, wanted))


def starts(
    admin: ClusterAdmin, wanted: Collection[TopicAndPartition]
) -> Mapping[TopicAndPartition, int]:
    """The first offsets still there."""
    return admin.start_offsets(there(admin, wanted), skip_silent=True)


def ends(
    admin: ClusterAdmin, wanted: Collection[TopicAndPartition], committed: bool = True
) -> Mapping[TopicAndPartition, int]:
    """The offsets behind the last record; with `committed` the last stable offset."""
    return admin.end_offsets(there(admin, wanted), committed, skip_silent=True)


def there(admin: ClusterAdmin, wanted: Collection[TopicAndPartition]) -> set[TopicAndPartition]:
    """Which of these partitions a cluster has."""
    topics = admin.topics() if wanted else {}
    return {key for key in wanted if key[0] in topics and key[1] < topics[key[0]].partitions}


class ThrottledLogEnds:
    """A cluster's log ends, each asked at most once a minute, else missing. For one thread."""

    def __init__(self, admin: ClusterAdmin, clock: Callable[[], float] = time.monotonic) -> None:
        self._admin = admin
        self._clock = clock
        self._asked: dict[TopicAndPartition, float] = {}

    def forget(self) -> None:
        """Query all of them the next time: some logs have lost records at their ends."""
        self._asked.clear()

    def of(self, wanted: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, int]:
        """The offsets behind the last records. Raises ClusterUnreachable."""
        now = self._clock()
        due = [key for key in wanted if now - self._asked.get(key, float("-inf")) >= _EACH_SECONDS]
        known = ends(self._admin, due, committed=False)
        self._asked.update(dict.fromkeys(known, now))
        return known


class LogStarts:
    """The log starts of one cluster, each at most a minute old. For one thread."""

    def __init__(self, admin: ClusterAdmin, clock: Callable[[], float] = time.monotonic) -> None:
        self._admin = admin
        self._clock = clock
        self._known = KnownOffsets()

    def forget(self) -> None:
        """Ask for all of them the next time: some are of logs that are over."""
        self._known.forget()

    def offsets_of(self, wanted: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, int]:
        """The starts of partitions that exist and answer. Raises ClusterUnreachable."""
        return self.starts_and_silent(wanted)[0]

    def starts_and_silent(
        self, wanted: Collection[TopicAndPartition]
    ) -> tuple[Mapping[TopicAndPartition, int], set[TopicAndPartition]]:
        """The starts of partitions, and the existing ones whose leader does not answer; partitions
        in neither do not exist. Raises ClusterUnreachable."""
        silent: set[TopicAndPartition] = set()

        def ask(keys: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, int]:
            asked = there(self._admin, keys)
            answered = self._admin.start_offsets(asked, skip_silent=True)
            silent.update(asked - answered.keys())
            return answered

        logs = dict(zip(wanted, wanted, strict=True))
        return self._known.of(self._clock(), logs, ask), silent
