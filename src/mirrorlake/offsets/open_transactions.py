"""Open transactions that hold back consumers of committed records, as samples of a source see them.
Pure: times are seconds that the caller gives.

Behind the last stable offset lie records that may or may not be committed (KIP-98), and all that
came since. While that offset stands still and the log goes on behind it, a transaction is open
there; one that a coordinator has lost stays open for ever (KIP-664).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from mirrorlake.offsets.positions import TopicAndPartition


@dataclass(frozen=True)
class Held:
    """An open transaction: the last stable offset, its first one; since when that was seen to stand
    there, or of its producer's last write, if earlier; and the producer's id, None if unknown."""

    stable: int
    since: float
    producer_id: int | None = None

    def by(self, at: float) -> "Held":
        """The same, with a start no later than `at`."""
        return self if self.since <= at else replace(self, since=at)


class OpenTransactions:
    """The open transactions seen in one flow's partitions. For one thread."""

    def __init__(self) -> None:
        self._seen: dict[TopicAndPartition, Held] = {}
        self._standing: set[TopicAndPartition] = set()

    def seed(self, key: TopicAndPartition, held: Held) -> None:
        """Take over a transaction that an earlier process saw."""
        self._seen[key] = held

    def observe(self, at: float, open_at: Mapping[TopicAndPartition, int]) -> None:
        """Note a sample: the last stable offset of each partition whose log goes on behind it.
        Times later than this one came from a clock that was wrong."""
        self._standing = {
            key
            for key, stable in open_at.items()
            if key in self._seen and self._seen[key].stable == stable
        }
        self._seen = {
            key: self._seen[key].by(at) if key in self._standing else Held(stable, at)
            for key, stable in open_at.items()
        }

    def unknown(self) -> Collection[TopicAndPartition]:
        """Partitions that stand still by two samples, and whose producer is not known."""
        return {key for key in self._standing if self._seen[key].producer_id is None}

    def name(self, key: TopicAndPartition, producer_id: int, written_at: float) -> None:
        """Note the producer of a transaction, and when it wrote last."""
        held = self._seen[key]
        self._seen[key] = replace(held, since=min(held.since, written_at), producer_id=producer_id)

    def standing(self, key: TopicAndPartition) -> Held | None:
        """The open transaction of a partition that stands still by two samples; None if none."""
        return self._seen[key] if key in self._standing else None
