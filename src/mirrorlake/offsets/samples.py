"""Which samples of a flow are worth a row: those that differ. Pure: times are seconds that the
caller gives.

A sample holds until the next one of its partition, while the flow is sampled. So an idle partition
gets a row once an hour, which is how far readers look back, and a lagging one once a minute, so
that queries per minute find it. Each turn also writes the sample written longest ago, as a sign of
life. Where writes are expensive, turns with nothing new write nothing for a while.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Generic, TypeVar

from mirrorlake.offsets.positions import TopicAndPartition

#: Seconds until an unchanged sample is due; `sql/views/replication_lag.sql` looks 65 minutes back.
HELD_SECONDS = 3600.0
#: The same for a partition that lags: with turns every ten seconds there is one in each minute.
LAGGING_SECONDS = 45.0

Values = TypeVar("Values", bound=Hashable)


class SampleLog(Generic[Values]):
    """The last written sample of each partition of one flow, by any process. `Values` has a
    sample's values, without its time and what grows by itself. For one thread."""

    def __init__(self, pause: float = 0.0) -> None:
        """`pause` is the longest time without a write while nothing is new, seconds."""
        self._written: dict[TopicAndPartition, tuple[float, Values | None]] = {}
        self._pause = pause
        self._wrote_at: float | None = None  # this process
        self._owed = set[TopicAndPartition]()  # were due in turns that wrote nothing

    def note(self, at: float, written: Mapping[TopicAndPartition, Values | None]) -> None:
        """Note written samples; None for a partition that could not be sampled."""
        self._written.update((key, (at, values)) for key, values in written.items())

    def newest(self, key: TopicAndPartition) -> Values | None:
        """The last written values of a partition; None if none, or if it could not be sampled."""
        return self._written.get(key, (0.0, None))[1]

    def due(
        self,
        at: float,
        samples: Mapping[TopicAndPartition, Values],
        lagging: Collection[TopicAndPartition],
        aside: Callable[[TopicAndPartition], bool] = lambda _key: False,
        changed: Collection[TopicAndPartition] | None = None,
    ) -> list[TopicAndPartition]:
        """The samples to be written, of those taken now; `lagging` are the partitions that lag. A
        partition for which `aside` is true is never news. If `changed` is given, all other
        partitions have the same values as in the last call."""
        looked: Collection[TopicAndPartition] = samples.keys()
        if changed is not None and not self._is_old(at):
            looked = [key for key in samples if key in changed or key in self._owed]
        due_keys = [key for key in looked if self._is_due(at, key, samples[key], key in lagging)]
        if self._rests(at) and not any(
            key in lagging or self.newest(key) != samples[key] for key in due_keys if not aside(key)
        ):
            self._owed = set(due_keys)
            return []
        self._owed, self._wrote_at = set(), at
        others = samples.keys() - set(due_keys)
        longest_ago = min(others, key=lambda key: (self._written[key][0], key), default=None)
        return due_keys if longest_ago is None else [*due_keys, longest_ago]

    def lost(self, samples: Collection[TopicAndPartition]) -> dict[TopicAndPartition, Values]:
        """The partitions that were sampled before and not now, with their last written values."""
        return {
            key: values
            for key in sorted(self._written.keys() - set(samples))
            if (values := self._written[key][1]) is not None
        }

    def _rests(self, at: float) -> bool:
        return self._wrote_at is not None and 0 <= at - self._wrote_at < self._pause

    def _is_old(self, at: float) -> bool:
        """Whether a sample may be due although it did not change."""
        times = [written_at for written_at, _ in self._written.values()]
        return not times or at < max(times) or at - min(times) >= HELD_SECONDS

    def _is_due(self, at: float, key: TopicAndPartition, values: Values, lags: bool) -> bool:
        written_at, before = self._written.get(key, (0.0, None))
        return before != values or not 0 <= at - written_at < (
            LAGGING_SECONDS if lags else HELD_SECONDS
        )
