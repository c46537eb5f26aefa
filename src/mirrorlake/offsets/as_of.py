"""Where each partition ends as of a time, so that every transaction of the source is in front of it with all of its
records, or with none. Pure.

The stage does not say to which transaction a record belongs: consumers are told neither producers nor markers. What it
says is where log ends were. A landed batch that reaches the ends of all partitions, the last stable offsets (KIP-98),
notes beside its rows which partitions' logs went on behind that, and how far they went at a moment after all these ends
were told. From this follows, with nothing else taken for granted than that offsets of a marker hold no record:

- A transaction with a record below such an end was decided by then, so all of its records were written by then. Where
  no log went on behind the batch's end, no transaction has records on both sides of it, over all partitions.
- Where a log did go on, it may be by a transaction that is decided, but whose marker is missing there yet. One that
  ends leaves a gap of offsets. So if all offsets are staged from there up to an end that no transaction has on both
  sides, none of these records are part of one.
- In one partition, no transaction has both sides of a batch's end if all offsets are staged from there to where its log
  went on to: whoever wrote on both sides was decided, and its marker would lie in between.

Compaction leaves gaps too, and is taken for transactions: the cut then lies earlier than it might.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mirrorlake.offsets.positions import TopicAndPartition

#: Of partitions whose log went on behind a batch: the batch's end there, and the log's a moment later.
OpenEnds = Mapping[TopicAndPartition, tuple[int, int]]


@dataclass(frozen=True)
class LandedPart:
    """What one landed batch holds of one partition.

    `batch` is its number, which rises with time. `first` and `last` are offsets of records, `end` is up to where it
    covered the partition, exclusive (None where nobody noted that). `late_first` is the first record that the time
    leaves out: stamped and landed after it; None without one.
    """

    batch: int
    first: int
    last: int
    count: int
    end: int | None = None
    late_first: int | None = None

    @property
    def covered_end(self) -> int:
        """Up to where it covered the partition, as far as is known."""
        return self.last + 1 if self.end is None else self.end

    @property
    def is_dense(self) -> bool:
        """Whether it has a record for each of its offsets."""
        return self.count == self.covered_end - self.first


@dataclass(frozen=True)
class Cut:
    """Where a partition ends as of a time: an offset, exclusive. Not `whole`: of batches so old, or that Spark landed,
    nobody noted what it takes to say that no transaction has records on both sides."""

    end: int
    whole: bool = True


def cut_as_of(
    parts: Mapping[TopicAndPartition, Sequence[LandedPart]], batches: Mapping[int, OpenEnds | None]
) -> dict[TopicAndPartition, Cut]:
    """Where partitions of a source cluster end as of a time.

    All end where one landed batch did, the last one that has both no record of after the time and no transaction on
    both sides; and behind that, where records are no part of transactions, in front of the first record of after it.

    Args:
        parts: of each partition what its landed batches hold, of one generation; all partitions of the cluster.
        batches: of each landed batch which partitions' logs went on behind it; None for one that nobody noted it of.
    """
    ordered = {key: sorted(found, key=lambda part: part.first) for key, found in parts.items()}
    late = min(
        (part.batch for found in ordered.values() for part in found if part.late_first is not None), default=None
    )
    eligible = sorted(batch for batch in batches if late is None or batch < late)
    noted = [batch for batch in eligible if batches[batch] is not None]
    runs = {key: _Run(key, found, batches) for key, found in ordered.items()}
    if not noted:
        return {
            key: Cut(run.late_first, run.plain_end(run.parts[0].first) >= run.late_first) for key, run in runs.items()
        }
    base = next((batch for batch in reversed(noted) if _is_between(batches[batch] or {}, runs)), None)
    return {key: Cut(_reached(run, base)) for key, run in runs.items()}


def _is_between(open_ends: OpenEnds, runs: Mapping[TopicAndPartition, "_Run"]) -> bool:
    """Whether every transaction lies on one side of the ends of a batch."""
    return all(key in runs and runs[key].plain_end(end) >= log_end for key, (end, log_end) in open_ends.items())


def _reached(run: "_Run", base: int | None) -> int:
    """Where a partition ends, if all of them may end where the batch `base` did, or where they begin."""
    ends = [part.covered_end for part in run.parts if base is not None and part.batch <= base]
    end = max(ends) if ends else run.parts[0].first
    return max(end, min(run.plain_end(end), run.late_first))


class _Run:
    """What is staged of one partition, asked how far its records are no part of transactions."""

    def __init__(
        self, key: TopicAndPartition, parts: Sequence[LandedPart], batches: Mapping[int, OpenEnds | None]
    ) -> None:
        self.parts = parts
        self._key = key
        self._batches = batches
        #: Where the time ends: in front of the first record that it leaves out, or behind all.
        self.late_first = min(
            (part.late_first for part in parts if part.late_first is not None), default=parts[-1].covered_end
        )

    def plain_end(self, start: int) -> int:
        """Up to which end of a batch all offsets from `start`, itself an end, hold records of no transaction."""
        reached = best = start
        waiting: list[tuple[int, int]] = []
        for part in self.parts:
            if part.covered_end <= start:
                continue
            if part.first != reached or not part.is_dense:
                break
            reached = part.covered_end
            open_ends = self._batches.get(part.batch)
            if open_ends is not None and part.end is not None:
                waiting.append((part.end, open_ends.get(self._key, (0, part.end))[1]))
            best = max([best, *(end for end, log_end in waiting if log_end <= reached)])
            waiting = [(end, log_end) for end, log_end in waiting if log_end > reached]
        return best
