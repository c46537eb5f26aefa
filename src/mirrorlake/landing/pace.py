"""How much a landing batch may hold, and how far apart small ones begin, by how long the ones
before took. Pure.

A batch is staged whole, so over a slow link it has to be small: what was read of one that is given
up, because the query is started anew or a run ends, is read again. And a reader's answers have to
be small, else each is waited for so long that the link looks dead.

A commit takes milliseconds in a folder, and in an object store a tenth of a second and a price.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from mirrorlake.offsets.positions import TopicAndPartition

#: How long a batch is meant to take, and from when on it took too long, seconds.
MEANT_SECONDS, LONG_SECONDS = 12.0, 15.0
#: Bytes as Arrow has them: at least, at most, and of the first batch of a cluster of which nothing
#: is known, unless all that there is to land is little.
LEAST_BYTES, MOST_BYTES = 256 << 10, 2 << 30
FIRST_BYTES, LITTLE_BYTES = 16 << 20, 48 << 20
#: What a record of a topic is taken for before there was one, bytes as Arrow has them.
UNKNOWN_RECORD_BYTES = 1_000
#: Up to which limit answers are asked for that come piece by piece.
SMALL_ANSWERS_BYTES = 64 << 20
#: By how much the limit rises after one batch.
_RISE = 16.0
#: Small batches begin so many times as far apart as a commit takes, which is the median of some.
COMMITS_APART = 5.0
_FEW_COMMITS = 3


@dataclass(frozen=True)
class Pace:
    """What batches so far say of the next ones: how much one may hold, bytes as Arrow has them
    (None while nothing is known), how large the records of topics are, and how long a commit
    takes (0 while nothing is known)."""

    limit: int | None = None
    record_bytes: Mapping[str, float] = field(default_factory=dict)
    commit_seconds: float = 0.0

    @property
    def in_small_answers(self) -> bool:
        """Whether the cluster is read in small answers."""
        return self.limit is None or self.limit <= SMALL_ANSWERS_BYTES

    def size_of(self, offsets: Mapping[TopicAndPartition, int]) -> float:
        """About how many bytes so many offsets of partitions are."""
        return sum(count * self.bytes_of(topic) for (topic, _), count in offsets.items())

    def bytes_of(self, topic: str) -> float:
        """About how large a record of a topic is."""
        return self.record_bytes.get(topic, UNKNOWN_RECORD_BYTES)

    def reads_few_partitions(self, size: float) -> bool:
        """Whether a batch of about so many bytes is one of a backlog on a slow link, of which few
        partitions are read at a time (`ranges.next_ends`)."""
        return self.limit is not None and self.in_small_answers and size >= self.limit // 2

    def after(
        self,
        size: int,
        seconds: float,
        record_bytes: Mapping[str, float] | None = None,
        most: int = MOST_BYTES,
    ) -> "Pace":
        """The pace after a batch of so many bytes that took so long to read; the next one may hold
        `most` at most. `record_bytes` of its topics count where they are not about what was
        known."""
        sizes, known = record_bytes or {}, self.record_bytes
        same = all(0.8 * new <= known.get(topic, 0.0) <= 1.25 * new for topic, new in sizes.items())
        limit = self._next_limit(size, seconds, most)
        return replace(self, limit=limit, record_bytes=known if same else {**known, **sizes})

    def after_commits(self, seconds: Sequence[float]) -> "Pace":
        """The pace after the last commits took so long each: it is another one where that is not
        about what was known."""
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
        """The pace after a batch that was not finished within so long: the answers may have been
        too large, or a stop did not wait for it."""
        if seconds <= LONG_SECONDS:
            return self
        known = min(self.limit or FIRST_BYTES, FIRST_BYTES)
        return replace(self, limit=max(LEAST_BYTES, int(known * MEANT_SECONDS / seconds)))

    def _next_limit(self, size: int, seconds: float, most: int) -> int | None:
        known = self.limit or FIRST_BYTES
        if seconds > LONG_SECONDS:
            return max(LEAST_BYTES, min(known, int(size * MEANT_SECONDS / seconds)))
        if size < known // 2:
            # it was not as large as it might have been: it does not say what a larger one takes
            return self.limit
        return min(most, int(known * min(_RISE, max(1.0, MEANT_SECONDS / max(seconds, 0.001)))))


NOTHING_KNOWN = Pace()


def first_limit(backlog: float) -> int:
    """How much the first batch may hold of a backlog of so many bytes."""
    return LITTLE_BYTES if backlog <= LITTLE_BYTES else FIRST_BYTES
