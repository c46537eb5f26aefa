"""Where each partition ends as of a time, so that every transaction of the source lies in front of
it with all of its records, or with none. Pure.

The stage does not show transactions: consumers see neither producers nor markers. It shows where
log ends were. A landed batch that reaches the ends of all partitions, the last stable offsets
(KIP-98), notes beside its rows which partitions' logs went on behind that, and how far, at a moment
after all these ends were reported. From this follows, assuming only that offsets of a marker hold
no record:

- A transaction with a record below such an end was decided by then, so all of its records were
  written by then. If no log went on behind the batch's end, no transaction has records on both
  sides of it.
- If a log did go on, that may be by a decided transaction whose marker is still missing there. A
  transaction that ends leaves a gap of offsets: if all offsets are staged from there up to an end
  that no transaction has on both sides, none of these records belong to one.
- In one partition, no transaction has both sides of a batch's end if all offsets are staged from
  there to where its log went on to: it was decided, and its marker would lie in between.

Compaction leaves gaps too, and counts as transactions: the cut may then lie earlier than it could.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mirrorlake.offsets.positions import TopicAndPartition

#: For partitions whose log went on behind a batch: the batch's end, and the log's a moment later.
OpenEnds = Mapping[TopicAndPartition, tuple[int, int]]


def reaches_all(
    end: Mapping[TopicAndPartition, int], log_ends: Mapping[TopicAndPartition, int]
) -> bool:
    """Whether a batch ends where the logs of all its partitions do."""
    return log_ends == end or all(log_ends.get(key) == at for key, at in end.items())


def noted_ends(
    ends: Mapping[TopicAndPartition, int], log_ends: Mapping[TopicAndPartition, int]
) -> str | None:
    """The note of a batch that ends at the last stable offsets of all partitions, `ends`, given the
    logs' ends (high watermarks) at a moment after all of these were reported. None if a leader did
    not answer."""
    if not ends.keys() <= log_ends.keys():
        return None
    behind = [
        [*key, end, log_ends[key]] for key, end in sorted(ends.items()) if log_ends[key] > end
    ]
    return json.dumps(behind, ensure_ascii=False, separators=(",", ":"))


def read_ends(noted: str | None) -> OpenEnds | None:
    """The ends in a note of `noted_ends`; None without a note."""
    if noted is None:
        return None
    return {
        (topic, partition): (end, log_end) for topic, partition, end, log_end in json.loads(noted)
    }


@dataclass(frozen=True)
class LandedPart:
    """The records of one partition in one landed batch.

    `batch` is its number, which rises with time. `first` and `last` are offsets of records; `end`
    is the offset up to which it covered the partition, exclusive (None: not noted). `late_first` is
    the first record that the time leaves out: stamped and landed after it; None if none.
    """

    batch: int
    first: int
    last: int
    count: int
    end: int | None = None
    late_first: int | None = None

    @property
    def covered_end(self) -> int:
        """The offset up to which it covered the partition, as far as is known."""
        return self.last + 1 if self.end is None else self.end

    @property
    def is_dense(self) -> bool:
        """Whether each of its offsets has a record."""
        return self.count == self.covered_end - self.first


#: How much earlier than they could partitions may end for the sake of a proof that no transaction
#: is cut in two: a difference of batch numbers, which are ms.
PATIENCE_MS = 600_000


class Cuts(NamedTuple):
    """Where partitions end as of a time: offsets, exclusive, and the landed batch that all of them
    can end with (None: there is none, so they end where records of transactions begin).

    `unproven` are partitions where a transaction may have records on both sides: the staged records
    are old, or Spark landed them, so the needed facts were not noted; or transactions overlapped
    for so long that no end is known that leaves all of them whole.
    """

    ends: Mapping[TopicAndPartition, int]
    base: int | None = None
    unproven: frozenset[TopicAndPartition] = frozenset()


def cut_as_of(
    parts: Mapping[TopicAndPartition, Sequence[LandedPart]],
    batches: Mapping[int, OpenEnds | None],
    patience: float = PATIENCE_MS,
) -> Cuts:
    """Where partitions of a source cluster end as of a time.

    All end where one landed batch did: the last one with neither a record from after the time nor a
    transaction on both sides. Behind that they go on over records that belong to no transaction, up
    to the first record from after the time. If that batch lies too far back, take the last one that
    no transaction has on both sides within a single partition, or the last one at all.

    Args:
        parts: for each partition of the cluster, the records of its landed batches, of one
            generation.
        batches: for each landed batch, the partitions whose logs went on behind it; None if that
            was not noted.
        patience: how far back is too far, as a difference of batch numbers.
    """
    ordered = {
        key: sorted(landed_parts, key=lambda part: part.first)
        for key, landed_parts in parts.items()
    }
    runs = {key: _Run(key, landed_parts, batches) for key, landed_parts in ordered.items()}
    late = min(
        (
            part.batch
            for landed_parts in parts.values()
            for part in landed_parts
            if part.late_first is not None
        ),
        default=None,
    )
    landed = {
        part.batch
        for landed_parts in parts.values()
        for part in landed_parts
        if late is None or part.batch < late
    }
    noted = sorted((batch for batch in landed if batches.get(batch) is not None), reverse=True)
    if landed and not noted:
        ends = {key: run.late_first for key, run in runs.items()}
        return Cuts(ends, None, _not_plain(runs, ends))
    for is_border in (_is_between, _is_between_alone, lambda _ends, _runs: True):
        base = next((batch for batch in noted if is_border(batches[batch] or {}, runs)), None)
        if not noted or (base is not None and noted[0] - base <= patience) or patience == math.inf:
            break
    ends = {key: _reached(run, base) for key, run in runs.items()}
    return Cuts(ends, base, frozenset() if is_border is _is_between else _not_plain(runs, ends))


def _is_between(open_ends: OpenEnds, runs: Mapping[TopicAndPartition, "_Run"]) -> bool:
    """Whether every transaction lies on one side of a batch's ends."""
    return all(
        key in runs and runs[key].end_without_transactions(end) >= log_end
        for key, (end, log_end) in open_ends.items()
    )


def _is_between_alone(open_ends: OpenEnds, runs: Mapping[TopicAndPartition, "_Run"]) -> bool:
    """Whether that holds within each single partition."""
    return all(
        key in runs and runs[key].dense_end(end) >= log_end
        for key, (end, log_end) in open_ends.items()
    )


def _not_plain(
    runs: Mapping[TopicAndPartition, "_Run"], ends: Mapping[TopicAndPartition, int]
) -> frozenset[TopicAndPartition]:
    """The partitions in which there may be transactions in front of some ends."""
    return frozenset(
        key
        for key, run in runs.items()
        if run.end_without_transactions(run.parts[0].first) < ends[key]
    )


def _reached(run: "_Run", base: int | None) -> int:
    """Where a partition ends if all may end where the batch `base` did, else where they begin."""
    ends = [part.covered_end for part in run.parts if base is not None and part.batch <= base]
    end = max(ends) if ends else run.parts[0].first
    return max(end, min(run.end_without_transactions(end), run.late_first))


class _Run:
    """The staged parts of one partition, to find how far its records belong to no transaction."""

    def __init__(
        self,
        key: TopicAndPartition,
        parts: Sequence[LandedPart],
        batches: Mapping[int, OpenEnds | None],
    ) -> None:
        self.parts = parts
        self._key = key
        self._batches = batches
        #: Where the time ends: at the first record that it leaves out, or behind all.
        self.late_first = min(
            (part.late_first for part in parts if part.late_first is not None),
            default=parts[-1].covered_end,
        )

    def end_without_transactions(self, start: int) -> int:
        """The last end of a batch up to which all offsets from `start`, itself an end, hold records
        of no transaction."""
        best = start
        waiting: list[tuple[int, int]] = []
        for part in self._dense(start):
            reached = part.covered_end
            open_ends = self._batches.get(part.batch)
            if open_ends is not None and part.end is not None:
                waiting.append((part.end, open_ends.get(self._key, (0, part.end))[1]))
            best = max([best, *(end for end, log_end in waiting if log_end <= reached)])
            waiting = [(end, log_end) for end, log_end in waiting if log_end > reached]
        return best

    def dense_end(self, start: int) -> int:
        """The offset up to which every offset from `start` has a record."""
        return max((part.covered_end for part in self._dense(start)), default=start)

    def _dense(self, start: int) -> Iterator[LandedPart]:
        """The parts after `start`, up to the first gap."""
        reached = start
        for part in self.parts:
            if part.covered_end <= start:
                continue
            if part.first != reached or not part.is_dense:
                return
            reached = part.covered_end
            yield part
