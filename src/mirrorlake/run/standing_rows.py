"""Sample rows that repeat the last ones: of thousands of partitions most stand still."""

from collections.abc import Collection, Iterable, Mapping, Set
from datetime import datetime
from typing import Any, NamedTuple

from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.run.snapshot import Snapshot

SampleRow = dict[str, Any]
"""A row of `positions`, by its columns."""
#: Columns that do not change while nothing happens to a partition.
_STANDING = (
    "source_end", "staged_end", "target_end", "target_topic", "mapped_end", "target_generation",
    "generation",
)  # fmt: skip


class SampleValues(NamedTuple):
    """The values of a sample; rows of earlier versions lack some. `lag_seconds` is left out: it
    grows by itself while a partition lags."""

    source_start: int | None
    source_end: int
    staged_end: int | None
    produced_end: int
    target_end: int | None
    target_topic: str | None
    mapped_end: int | None
    target_passed_end: int | None
    target_generation: int | None
    generation: int | None
    source_high_watermark: int | None
    transaction_since: datetime | None
    transaction_producer_id: int | None

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "SampleValues":
        """The values of a row."""
        return cls(*(row[name] for name in cls._fields))

    def names_at_target(self) -> SampleRow:
        """What is known of an unsampled partition: name and generations at the target."""
        names = ("target_topic", "target_generation", "generation")
        return {name: getattr(self, name) for name in names}


def keep_known(row: SampleRow, before: SampleValues | None) -> None:
    """Keep what was known of a partition while nothing happens to it: a poll of a flow that was not
    caught up everywhere knows less of each. `before` was written last, if anything was."""
    if before is None or any(row[name] != getattr(before, name) for name in _STANDING):
        return
    row["produced_end"] = max(row["produced_end"], before.produced_end)
    if row["target_passed_end"] is None:
        row["target_passed_end"] = before.target_passed_end


class Seen(NamedTuple):
    """The inputs of a sample. `places` is the same object as long as no generation changes;
    `producible` says of each topic whether its records are produced now."""

    places: Mapping[TopicAndPartition, PartitionGeneration]
    names: Mapping[str, str]
    target: Mapping[TopicAndPartition, int]
    starts: Mapping[TopicAndPartition, int]
    ends: Mapping[TopicAndPartition, int]
    marks: Mapping[TopicAndPartition, int]
    snapshot: Snapshot
    producible: Mapping[str, bool]


class StandingRows:
    """The rows of the newest sample. After a sample that failed, the next one makes all rows. For
    one thread.

    Attributes:
        rested_at: until when partitions not observed since stood as their rows say.
    """

    def __init__(self) -> None:
        self.rows: Mapping[TopicAndPartition, SampleRow] = {}
        self.rested_at = 0.0
        self._rested = set[TopicAndPartition]()
        self._seen: Seen | None = None
        self._watched: Set[TopicAndPartition] = frozenset()

    def begin(
        self, seen: Seen, watched: Set[TopicAndPartition]
    ) -> Collection[TopicAndPartition] | None:
        """The partitions whose rows may differ; None if all have to be made. `watched` are those
        that change by themselves now; those of the sample before may differ too."""
        before, self._seen = self._seen, None
        if before is None or before.places is not seen.places or _of_all(before) != _of_all(seen):
            return None
        sources = {name: topic for topic, name in seen.names.items()}
        return (
            watched
            | self._watched
            | seen.snapshot.moved_since(before.snapshot)
            | _differing(before.snapshot.mapped, seen.snapshot.mapped)
            | _differing(before.starts, seen.starts)
            | _differing(before.ends, seen.ends)
            | _differing(before.marks, seen.marks)
            | {(sources[name], at) for name, at in _differing(before.target, seen.target)}
        )

    def wake(self, keys: Iterable[TopicAndPartition]) -> list[SampleRow]:
        """The rows of those `keys` that stood until `rested_at`: they are observed again now."""
        awake = self._rested.intersection(keys)
        self._rested -= awake
        return [self.rows[key] for key in awake]

    def stood(
        self,
        rows: Mapping[TopicAndPartition, SampleRow],
        lagging: Set[TopicAndPartition],
        at: float,
    ) -> None:
        """Note the rows of a sample; those of lagging partitions change by themselves."""
        self.rows, self._rested, self.rested_at = rows, rows.keys() - lagging, at

    def end(self, seen: Seen, watched: Set[TopicAndPartition]) -> None:
        """Note that a sample was written."""
        self._seen, self._watched = seen, watched


def _of_all(seen: Seen) -> tuple[object, ...]:
    """The values that all rows depend on."""
    now = seen.snapshot
    flags = now.caught_up, now.blocked, now.left_out, now.target_generations
    return seen.names, seen.producible, *flags


def _differing(
    before: Mapping[TopicAndPartition, int], now: Mapping[TopicAndPartition, int]
) -> set[TopicAndPartition]:
    """The partitions in which the two differ."""
    return set() if before is now else {key for key, _ in before.items() ^ now.items()}
