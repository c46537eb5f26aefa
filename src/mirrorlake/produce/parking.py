"""Records that a target refuses, and that a flow goes on behind (`on_refused: park`).

Refused records are noted before anything behind them is written, so a batch gets as far as its
first refused record. With thousands of them, a batch for each would be slow. So once one was
refused, others of the same batch that look like it are tried one by one, each in a transaction that
is aborted, and all that the target refused are noted at once. Looks only decide what is worth
trying: every parked record was refused.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from mirrorlake.kafka.error_classes import NAMES, ErrorClass
from mirrorlake.lake.row_sizes import bytes_of_each
from mirrorlake.native.exact import times_of

#: Refusals of a single record, by Kafka's names; and those that are about its size.
RECORD_REFUSALS = frozenset(NAMES[ErrorClass.RECORD])
SIZE_REFUSALS = frozenset({"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_MSG_SIZE"})
#: How long a task looks for more refused records, seconds.
SEARCH_SECONDS = 20.0

_CODEC = pa.Codec("lz4_raw")


@dataclass(frozen=True)
class RefusedRecord:
    """A refused record: `reason` is Kafka's error name, `byte_count` the size of key and value."""

    offset: int
    reason: str
    byte_count: int


@dataclass
class Search:
    """Looks for more refused records, in the rows of one partition behind the first one.

    `rank` orders records by how likely they are to be refused likewise; those below `bound` are not
    tried. A record that the target takes raises the bound, so a wrong guess ends soon.
    """

    reason: str
    rank: Callable[[pa.RecordBatch], np.ndarray]
    bound: int
    tried: int = 0
    until: float = field(default_factory=lambda: time.monotonic() + SEARCH_SECONDS)

    @classmethod
    def like(cls, reason: str, record: pa.RecordBatch) -> "Search":
        """A search for records like `record`, a row refused for a reason of RECORD_REFUSALS."""
        if reason in SIZE_REFUSALS:
            return cls(reason, _compressed, int(_compressed(record)[0]))
        if reason == "INVALID_TIMESTAMP":
            now = time.time_ns() // 1_000_000
            late = int(_times(record)[0]) - now
            sign = -1 if late < 0 else 1
            return cls(reason, lambda rows: sign * (_times(rows) - now), sign * late)
        return cls(reason, _without_key, int(_without_key(record)[0]) or 2)

    def suspects(self, rows: pa.RecordBatch) -> Iterator[int]:
        """Which rows to try, in order, as long as there is time; the bound may rise meanwhile."""
        ranks = self.rank(rows) if self.reason not in SIZE_REFUSALS else self._sizes(rows)
        for at in np.flatnonzero(ranks >= self.bound).tolist():
            if time.monotonic() > self.until:
                return
            if ranks[at] >= self.bound:
                self.tried = int(ranks[at])
                yield at

    def was_taken(self) -> None:
        """Note that the target takes the row that was tried last."""
        self.bound = max(self.bound, self.tried + 1)

    def _sizes(self, rows: pa.RecordBatch) -> np.ndarray:
        """Ranks of rows; only rows that can reach the bound are compressed."""
        ranks = bytes_of_each(rows)
        large = np.flatnonzero(ranks >= self.bound)
        if len(large):
            ranks[large] = _compressed(rows.take(pa.array(large)))
        return ranks


def _compressed(rows: pa.RecordBatch) -> np.ndarray:
    """The approximate sent size of each row, which brokers compare with their limit: compressed, or
    uncompressed if that is no larger."""
    pairs = zip(rows.column("key"), rows.column("value"), strict=True)
    both = ((key.as_py() or b"") + (value.as_py() or b"") for key, value in pairs)
    return np.array(
        [min(len(record), _CODEC.compress(record).size) if record else 0 for record in both],
        dtype=np.int64,
    )


def _times(rows: pa.RecordBatch) -> np.ndarray:
    return np.asarray(times_of(rows).to_numpy(zero_copy_only=False))


def _without_key(rows: pa.RecordBatch) -> np.ndarray:
    """1 for a row without a key, which a compacted topic refuses."""
    return np.asarray(rows.column("key").is_null().to_numpy(zero_copy_only=False)).astype(np.int64)
