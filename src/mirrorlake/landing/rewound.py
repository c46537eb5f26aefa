"""Finds partitions whose log at the source no longer matches what was staged of them.

A log's end goes back when a replica that lacks records becomes leader, or when a disk is restored
from a copy. Records written then get offsets that are staged already. A leader writes its epoch
into every batch (KIP-320). As long as the records at the end of the staged range have the known
epoch, nothing below has changed; the records of one newer epoch are either staged as they are, or
the log differs from there on.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from mirrorlake.kafka.values import Row
from mirrorlake.offsets.positions import LogEnds, TopicAndPartition

if TYPE_CHECKING:
    from mirrorlake.landing.generations import LakeLandingStore
    from mirrorlake.landing.source import ClusterSource

#: How many leaders of a partition, the newest ones, are checked for what they wrote first.
MOST_LEADERS = 16

OffsetBounds = tuple[int, int]
"""Offsets: the first, and the one after the last."""
AskRows = Callable[[Mapping[TopicAndPartition, int]], "Mapping[TopicAndPartition, Row]"]
"""Gives the first record of each partition at or behind an offset."""


class RewindCheck:
    """Compares logs with what is staged of them. For one thread.

    Nothing is read if the leader is the known one and the log does not end below what is staged.
    """

    def __init__(self, source: "ClusterSource", store: "LakeLandingStore") -> None:
        self._source = source
        self._store = store

    def rewound(
        self,
        log: Mapping[TopicAndPartition, LogEnds],
        staged: Mapping[TopicAndPartition, int],
        since: Mapping[TopicAndPartition, int],
    ) -> dict[TopicAndPartition, int]:
        """The partitions that differ, with the offset from which on: the one after the last
        matching record.

        Args:
            log: the offsets that the source has.
            staged: the ends of what is staged, of all generations in `since`.
            since: the generations of the topics: where a partition began one by itself, what lies
                below is still the same log.
        """
        known = self._store.epochs()
        doubtful = {
            key for key, end in staged.items() if self._is_doubtful(log[key], end, known.get(key))
        }
        later = [key for key in staged if key not in doubtful and log[key].epoch != known[key]]

        def differing(rows: Mapping[TopicAndPartition, Row]) -> Collection[TopicAndPartition]:
            there = self._store.staged_rows({key: row.offset for key, row in rows.items()}, since)
            return {key for key, row in rows.items() if not row.same(there.get(key))}

        def written_since(rows: Mapping[TopicAndPartition, Row]) -> Collection[TopicAndPartition]:
            return {key for key, row in rows.items() if row.epoch is None or row.epoch > known[key]}

        asked = (*doubtful, *later)
        ends = {key: min(log[key].end, staged[key]) for key in asked}
        firsts = self._store.staged_firsts({key: since[key] for key in asked}) if asked else {}
        starts = {key: max(log[key].start, firsts.get(key, 0)) for key in doubtful}
        shorter = [key for key in doubtful if log[key].end < staged[key]]
        bounds = {key: (starts[key], ends[key]) for key in doubtful}
        went_back = first_offsets(bounds, self._source.rows, differing, shorter)
        bounds = {key: (log[key].start, ends[key]) for key in later}
        began = first_offsets(bounds, self._source.rows, written_since)
        differ = self._that_differ(began, ends, since, firsts)
        # One leader's records may match the stage, and those of the next one may not.
        rest = {
            key: (max(at, firsts.get(key, 0)), ends[key])
            for key, at in began.items()
            if key not in differ
        }
        behind = first_offsets(rest, self._source.rows, differing)
        found = went_back | {key: began[key] for key in differ} | behind
        several = {key: span for key, span in rest.items() if _passed(log[key], known[key]) > 1}
        spans = {key: (starts[key], ends[key]) for key in doubtful} | several
        in_front = {key: (low, found.get(key, high)) for key, (low, high) in spans.items()}
        return found | self._firsts_of_leaders(log, in_front, since)

    def _that_differ(
        self,
        began: Mapping[TopicAndPartition, int],
        ends: Mapping[TopicAndPartition, int],
        since: Mapping[TopicAndPartition, int],
        firsts: Mapping[TopicAndPartition, int],
    ) -> set[TopicAndPartition]:
        """Partitions whose first records from `began` on, below their end, are not as staged.
        Either all of these records match the stage or none does, so the first comparable record
        decides; one below the first offset that the stage still has (`firsts`) cannot be compared.
        If all of them were deleted by predicate, nothing decides, and the partition counts as
        differing: a lost record must not be taken for a deleted one."""
        differ: set[TopicAndPartition] = set()
        left = dict(began)
        while left:
            rows = self._source.rows(left)
            there = self._store.staged_rows({key: row.offset for key, row in rows.items()}, since)
            behind = {}
            for key in left:
                row, staged = rows.get(key), there.get(key)
                if row is None or row.offset >= ends[key]:
                    differ.add(key)
                elif staged is not None and staged.forgotten_to is not None:
                    behind[key] = staged.forgotten_to + 1
                elif staged is None and row.offset < firsts.get(key, 0):
                    behind[key] = firsts[key]
                elif not row.same(staged):
                    differ.add(key)
            left = behind
        return differ

    def _firsts_of_leaders(
        self,
        log: Mapping[TopicAndPartition, LogEnds],
        spans: Mapping[TopicAndPartition, OffsetBounds],
        since: Mapping[TopicAndPartition, int],
    ) -> dict[TopicAndPartition, int]:
        """For partitions that match the stage at the end of their span: the offset where the first
        leader began whose first record does not match. Landing had read on, behind the records that
        it had of the leader before, in records of this one. If there were more than MOST_LEADERS,
        only the newest are checked; in a log without epochs, none."""
        oldest = {
            key: epoch - MOST_LEADERS
            for key, (low, high) in spans.items()
            if low < high and (epoch := log[key].epoch) is not None
        }
        many = {key: spans[key] for key, epoch in oldest.items() if epoch > 0}
        at = {key: spans[key][0] for key in oldest.keys() - many.keys()}
        at |= first_offsets(many, self._source.rows, partial(_written_behind, oldest))
        differ: dict[TopicAndPartition, int] = {}
        while at:
            found = self._source.rows(at)
            rows = {key: row for key, row in found.items() if row.offset < spans[key][1]}
            there = self._store.staged_rows({key: row.offset for key, row in rows.items()}, since)
            later, epochs = dict[TopicAndPartition, int](), dict[TopicAndPartition, int]()
            for key, row in rows.items():
                staged = there.get(key)
                if staged is not None and staged.forgotten_to is not None:
                    later[key] = staged.forgotten_to + 1
                elif not row.same(staged):
                    differ[key] = at[key]
                elif row.epoch is not None:
                    epochs[key] = row.epoch
            left = {key: (rows[key].offset, spans[key][1]) for key in epochs}
            at = later | first_offsets(left, self._source.rows, partial(_written_behind, epochs))
        return differ

    def note(self, epochs: Mapping[TopicAndPartition, int | None]) -> None:
        """Note the leader epochs of logs that match the stage."""
        before = self._store.epochs()
        after = {**before, **{key: epoch for key, epoch in epochs.items() if epoch is not None}}
        if after != before:
            self._store.note_epochs(after)

    def _is_doubtful(self, ends: LogEnds, staged: int, known: int | None) -> bool:
        """Whether only records can tell: there is no epoch to compare, or the log is too short."""
        return ends.end < staged or known is None or ends.epoch is None or ends.epoch < known


def _passed(ends: LogEnds, known: int) -> int:
    """The most leaders that there can have been since a known one."""
    return 0 if ends.epoch is None else ends.epoch - known


def _written_behind(
    epochs: Mapping[TopicAndPartition, int], rows: Mapping[TopicAndPartition, Row]
) -> set[TopicAndPartition]:
    """The partitions whose records were written by later leaders than `epochs`."""
    return {key for key, row in rows.items() if row.epoch is not None and row.epoch > epochs[key]}


def first_offsets(
    bounds: Mapping[TopicAndPartition, OffsetBounds],
    rows: AskRows,
    holds: Callable[[Mapping[TopicAndPartition, Row]], Collection[TopicAndPartition]],
    beyond: Collection[TopicAndPartition] = (),
) -> dict[TopicAndPartition, int]:
    """The offset, within bounds, from which on something holds for all records of a partition: the
    one after the last record for which it does not. A partition where it holds for none is missing;
    for a partition in `beyond` it holds behind the bounds, whatever lies within.

    All partitions are asked side by side, the last record of each first: mostly it holds for none.
    """
    left, ends = dict(bounds), {key: end for key, (_, end) in bounds.items()}
    asked, done = {key: end - 1 for key, end in ends.items()}, set(beyond)
    while left := {key: bound for key, bound in left.items() if bound[0] < bound[1]}:
        found = rows({key: asked[key] for key in left})
        probed = {key: row for key, row in found.items() if row.offset < left[key][1]}
        true = holds(probed)
        for key, (low, high) in list(left.items()):
            if key in probed and key not in true:
                low = probed[key].offset + 1
            else:  # it holds, or there is no record from here on: compacted or aborted
                high = asked[key]
                if key in true:
                    done.add(key)
            ends[key] = high
            left[key], asked[key] = (low, high), (low + high) // 2
    return {key: ends[key] for key in done}
