"""How much a landing batch may hold, and how far apart small ones begin, learned from how long
earlier batches took. Pure.

A batch is staged whole, so over a slow link it has to be small: if it is given up, because the
query restarts or a run ends, all that was read of it is read again. A reader's answers have to be
small too, or each takes so long that the link looks dead.

A commit takes milliseconds in a folder; in an object store it takes a tenth of a second, and costs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from mirrorlake.offsets.positions import TopicAndPartition

#: How long a batch should take, and from when on it took too long, seconds.
MEANT_SECONDS, LONG_SECONDS = 12.0, 15.0
#: Arrow bytes: the least, the most, and those of the first batch of a cluster of which nothing is
#: known, unless there is little to land in all.
LEAST_BYTES, MOST_BYTES = 256 << 10, 2 << 30
FIRST_BYTES, LITTLE_BYTES = 16 << 20, 48 << 20
#: The assumed size of a topic's records before the first one, in Arrow bytes.
UNKNOWN_RECORD_BYTES = 1_000
#: Up to this limit, answers are asked for that come piece by piece.
SMALL_ANSWERS_BYTES = 64 << 20
#: The largest factor by which the limit rises after one batch.
_RISE = 16.0
#: The distance between small batches, as a multiple of the median time of a commit.
COMMITS_APART = 5.0
_FEW_COMMITS = 3


@dataclass(frozen=True)
class Pace:
    """What earlier batches tell about the next ones: how many Arrow bytes one may hold (None while
    unknown), how large topics' records are, and how long a commit takes (0 while unknown)."""

    limit: int | None = None
    record_bytes: Mapping[str, float] = field(default_factory=dict)
    commit_seconds: float = 0.0

    @property
    def in_small_answers(self) -> bool:
        """Whether the cluster is read in small answers."""
        return self.limit is None or self.limit <= SMALL_ANSWERS_BYTES

    def size_of(self, offsets: Mapping[TopicAndPartition, int]) -> float:
        """The approximate bytes of so many offsets of partitions."""
        return sum(count * self.bytes_of(topic) for (topic, _), count in offsets.items())

    def bytes_of(self, topic: str) -> float:
        """The approximate size of a topic's record."""
        return self.record_bytes.get(topic, UNKNOWN_RECORD_BYTES)

    def reads_few_partitions(self, size: float) -> bool:
        """Whether a batch of about `size` bytes belongs to a backlog on a slow link, of which few
        partitions are read at a time (`ranges.next_ends`)."""
        return self.limit is not None and self.in_small_answers and size >= self.limit // 2

    def after(
        self,
        size: int,
        seconds: float,
        record_bytes: Mapping[str, float] | None = None,
        most: int = MOST_BYTES,
    ) -> "Pace":
        """The pace after a batch of `size` bytes that took `seconds` to read; the next one may hold
        `most` at most. `record_bytes` of its topics count if they differ from the known ones."""
        sizes, known = record_bytes or {}, self.record_bytes
        same = all(0.8 * new <= known.get(topic, 0.0) <= 1.25 * new for topic, new in sizes.items())
        limit = self._next_limit(size, seconds, most)
        return replace(self, limit=limit, record_bytes=known if same else {**known, **sizes})

    def after_commits(self, seconds: Sequence[float]) -> "Pace":
        """The pace after the last commits took `seconds` each; changes if that differs."""
        if len(seconds) < _FEW_COMMITS:
            return self
        typical = median(seconds)
        same = 0.8 * typical <= self.commit_seconds <= 1.25 * typical
        return self if same else replace(self, commit_seconds=typical)

    def apart_seconds(self, least: float, most: float) -> float:
        """How long after the start of a small batch the next one begins: `least` at least, and no
        longer than `most` unless that is less."""
        return max(least, min(most, COMMITS_APART * self.commit_seconds))

    def after_failure(self, seconds: float) -> "Pace":
        """The pace after a batch that was not finished within `seconds`: answers may have been too
        large, or a stop did not wait for it."""
        if seconds <= LONG_SECONDS:
            return self
        known = min(self.limit or FIRST_BYTES, FIRST_BYTES)
        return replace(self, limit=max(LEAST_BYTES, int(known * MEANT_SECONDS / seconds)))

    def _next_limit(self, size: int, seconds: float, most: int) -> int | None:
        known = self.limit or FIRST_BYTES
        if seconds > LONG_SECONDS:
            return max(LEAST_BYTES, min(known, int(size * MEANT_SECONDS / seconds)))
        if size < known // 2:
            # a batch that was not full does not show what a larger one takes
            return self.limit
        return min(most, int(known * min(_RISE, max(1.0, MEANT_SECONDS / max(seconds, 0.001)))))


NOTHING_KNOWN = Pace()


def first_limit(backlog: float) -> int:
    """How much the first batch may hold of a backlog of `backlog` bytes."""
    return LITTLE_BYTES if backlog <= LITTLE_BYTES else FIRST_BYTES
