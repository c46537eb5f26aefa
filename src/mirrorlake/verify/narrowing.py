"""The verdict on the three sides of a range: which records differ, and how. Pure.

Sequences are compared: the records that the target should have, in source order, with those in the
stretch of its log that belongs to the range. The map is a side too: for each record it must name
the offset where the record is.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from mirrorlake.offsets.ranges import are_in, merged
from mirrorlake.verify import verdict as kinds
from mirrorlake.verify.sides import Expected, Mapped, Side, extra_records, missing_records
from mirrorlake.verify.verdict import Allowances, Difference, Verdict

#: Reasons for which the stage may lack a record.
_NOT_STAGED = (kinds.STAGE_TRIMMED, kinds.FORGOTTEN, kinds.REMOVED)


def compare(
    source: Side | None, stage: Side, target: Side, mapped: Mapped, first: int, allowed: Allowances
) -> Verdict:
    """Compare the sides of a range from source offset `first` on: the source (None if it has none
    of it), the stage, and the target's stretch that belongs to it; `allowed` is what may differ."""
    if _same(source, stage, target, mapped) and not allowed.left_out:
        trimmed = 0 if source is not None else len(stage.offsets)
        return Verdict((), {kinds.TRIMMED: trimmed} if trimmed else {})
    return _Comparison(source, stage, target, mapped, first=first, allowed=allowed).verdict()


def _same(source: Side | None, stage: Side, target: Side, mapped: Mapped) -> bool:
    """Whether all sides and the map are plainly equal."""
    return (
        np.array_equal(stage.offsets, mapped[0])
        and np.array_equal(target.offsets, mapped[1])
        and stage.digests == target.digests
        and (
            source is None
            or (np.array_equal(source.offsets, stage.offsets) and source.digests == stage.digests)
        )
    )


class _Comparison:
    """One comparison, record by record."""

    def __init__(
        self,
        source: Side | None,
        stage: Side,
        target: Side,
        mapped: Mapped,
        first: int,
        allowed: Allowances,
    ) -> None:
        self._source, self._stage, self._target = source, stage, target
        self._first, self._allowed = first, allowed
        self._found: list[Difference] = []
        self._excused: Counter[str] = Counter()
        self._unseen = 0
        self._targets: dict[int, list[int]] = defaultdict(list)
        for at, to in zip(mapped[0].tolist(), mapped[1].tolist(), strict=True):
            self._targets[at].append(to)
        self._records: dict[int, Expected] = {}

    def verdict(self) -> Verdict:
        """The differences, and what was excused."""
        self._take_stage()
        self._take_source()
        ranks = {at: rank for rank, at in enumerate(sorted(self._records))}
        self._leave_out_echoes()
        self._take_as_sent()
        gone = self._only_mapped()
        self._compare_target(list(self._expected()), list(self._got(gone)))
        self._found.sort(key=lambda one: (one.first, one.kind, one.target_offset or 0))
        excused = {why: count for why, count in self._excused.items() if count}
        return Verdict(tuple(_joined(self._found, ranks)), excused, self._unseen)

    def _tell(self, kind: str, at: int, detail: str = "", target_offset: int | None = None) -> None:
        self._found.append(
            Difference(kind, at, at, count=1, target_offset=target_offset, detail=detail)
        )

    def _take_stage(self) -> None:
        stage = self._stage
        for at, digest, when in zip(
            stage.offsets.tolist(), stage.digests, stage.timestamps.tolist(), strict=True
        ):
            if at in self._records:
                self._tell(kinds.STAGE, at, "in the stage twice")
            self._records[at] = Expected(at, digest, when, True, self._targets.get(at, []))

    def _take_source(self) -> None:
        """Add the source's records; where the stage differs, report it and trust the source."""
        source, staged = self._source, set(self._records)
        if source is None:
            self._excused[kinds.TRIMMED] += len(staged)
            return
        for at, digest, when in zip(
            source.offsets.tolist(), source.digests, source.timestamps.tolist(), strict=True
        ):
            known = self._records.setdefault(
                at, Expected(at, digest, when, False, self._targets.get(at, []))
            )
            if at not in staged:
                # one that was removed and not mapped is looked for at the target
                if not self._is_unsent(known) and not self._excuse(at, *_NOT_STAGED):
                    self._tell(kinds.STAGE, at, "at the source, and not in the stage")
            elif known.digest != digest:
                known.digest, known.timestamp = digest, when
                self._tell(kinds.STAGE, at, "the stage holds other content than the source")
        for at in sorted(staged.difference(source.offsets.tolist())):
            if at < self._allowed.source_start or self._allowed.source_compacts:
                self._excused[kinds.TRIMMED] += 1
            else:
                self._tell(kinds.STAGE, at, "in the stage, and not at the source")

    def _leave_out_echoes(self) -> None:
        """Leave out echoes, which are not sent; an echo in the map was sent."""
        for side in (self._stage, self._source):
            if side is None or not len(side.echo):
                continue
            for at in side.offsets[side.echo].tolist():
                if at in self._records and not self._records[at].targets:
                    del self._records[at]
                    self._excused[kinds.ECHO] += 1

    def _take_as_sent(self) -> None:
        """Accept records that could not be sent unchanged, in the form sent instead."""
        sent = {**self._stage.sent, **(self._source.sent if self._source is not None else {})}
        if not sent:
            return
        there = dict(zip(self._target.offsets.tolist(), self._target.digests, strict=True))
        for record in self._records.values():
            instead = sent.get(record.digest)
            if instead is not None and any(there.get(at) == instead for at in record.targets):
                record.digest = instead
                self._excused[kinds.ALTERED_TIMESTAMP] += 1

    def _only_mapped(self) -> set[int]:
        """Report what only the map has; return its target offsets, which cannot be compared."""
        gone: set[int] = set()
        for at, places in self._targets.items():
            if at not in self._records:
                gone.update(places)
                if self._excuse(at, *_NOT_STAGED):
                    self._excused[kinds.TRIMMED] += 1  # nothing is left to compare it with
                    self._unseen += 1
                else:
                    detail = "the map has it, and neither the source nor the stage does"
                    self._tell(kinds.STAGE, at, detail, places[0])
        return gone

    def _is_forgotten(self, record: Expected) -> bool:
        """Whether only the source still has the record, since it was forgotten."""
        return (
            not record.staged and self._allowed.reason(record.offset, kinds.FORGOTTEN) is not None
        )

    def _is_unsent(self, record: Expected) -> bool:
        """Whether only the source has the record: it was deleted from the stage, which is no reason
        why the map lacks it."""
        why = self._allowed.reason(record.offset, *_NOT_STAGED)
        return why == kinds.REMOVED and not record.staged and not record.targets

    def _is_superseded(self, record: Expected) -> bool:
        """Whether compaction may have removed the record at the target."""
        kept = self._allowed.last_of_key
        return kept is not None and record.offset not in kept

    def _excuse(self, at: int, *reasons: str) -> bool:
        reason = self._allowed.reason(at, *reasons)
        if reason is not None:
            self._excused[kinds.STAGE_TRIMMED if reason == kinds.REMOVED else reason] += 1
        return reason is not None

    def _expected(self) -> Iterator[Expected]:
        """What the target should have now, in order."""
        oldest = self._allowed.target_keeps_from
        for at in sorted(self._records):
            record = self._records[at]
            if not record.targets:
                if self._is_forgotten(record):
                    continue  # counted when the source was compared with the stage
                if self._excuse(at, kinds.GIVEN_UP, kinds.PARKED, kinds.FORGOTTEN):
                    continue
            elif (
                record.targets[0] < self._allowed.target_start
                and oldest is not None
                and record.timestamp < oldest
            ):
                self._excused[kinds.TARGET_TRIMMED] += 1
                continue
            yield record

    def _got(self, gone: set[int]) -> Iterator[tuple[int, bytes]]:
        """What the target has of this flow."""
        target, allowed = self._target, self._allowed
        elsewhere = are_in(merged(allowed.others), target.offsets)
        known = {at for places in self._targets.values() for at in places}
        for number, (at, digest) in enumerate(
            zip(target.offsets.tolist(), target.digests, strict=True)
        ):
            unknown = at not in known and (allowed.others_anywhere or elsewhere[number])
            if unknown or (allowed.shared and not target.own[number]):
                self._excused[kinds.OTHERS] += 1
            elif at not in gone:
                yield at, digest

    def _compare_target(self, expected: list[Expected], got: list[tuple[int, bytes]]) -> None:
        """Compare as sets, then the order of common records and their offsets by the map."""
        extra, missing = extra_records(expected, got), missing_records(expected, got)
        surplus = set(extra)
        for record in missing.values():
            place = next((at for at in record.targets if at in extra), None)
            if place is not None:
                self._tell(kinds.CONTENT, record.offset, "", place)
                del extra[place]
            elif not record.targets:
                # else reported as missing in the stage
                if record.staged or self._is_unsent(record):
                    self._tell(kinds.NOT_MAPPED, record.offset, "it is not at the target either")
            elif self._is_superseded(record):
                self._excused[kinds.SUPERSEDED] += 1
            elif not self._is_forgotten(record):
                self._tell(kinds.MISSING, record.offset, "", record.targets[0])
        self._tell_extra(extra, expected)
        both = [record for record in expected if record.offset not in missing]
        self._tell_order(both, [record for record in got if record[0] not in surplus])

    def _tell_extra(self, extra: Mapping[int, bytes], expected: Iterable[Expected]) -> None:
        known: dict[bytes, int] = {}
        for record in expected:
            known.setdefault(record.digest, record.offset)
        places = sorted((to, at) for at, targets in self._targets.items() for to in targets)
        for place, digest in sorted(extra.items()):
            if digest in known:
                self._tell(kinds.TWICE, known[digest], "", place)
            else:
                before = bisect_left(places, (place, -1))
                self._tell(
                    kinds.FOREIGN, places[before - 1][1] if before else self._first, "", place
                )

    def _tell_order(self, both: list[Expected], there: list[tuple[int, bytes]]) -> None:
        """Report records out of order or of place; both sides have the same records."""
        pairs = list(zip(both, there, strict=True))
        moved = [(record, at) for record, (at, digest) in pairs if record.digest != digest]
        if moved:
            (first, at), (last, _) = moved[0], moved[-1]
            self._tell(kinds.ORDER, first.offset, "the same records in another order", at)
            self._found[-1] = replace(self._found[-1], last=last.offset, count=len(moved))
        for record, (at, digest) in pairs:
            if not record.targets:
                self._tell(kinds.NOT_MAPPED, record.offset, "it is at the target", at)
            elif record.digest == digest and at not in record.targets:
                detail = "it is not at the target offset that the map says"
                self._tell(kinds.NOT_MAPPED, record.offset, detail, at)


def _joined(differences: Iterable[Difference], ranks: Mapping[int, int]) -> Iterator[Difference]:
    """Join neighbours of one kind and detail; `ranks` number the records by offset."""
    last: Difference | None = None
    for difference in differences:
        if (
            last is not None
            and (difference.kind, difference.detail) == (last.kind, last.detail)
            and difference.kind != kinds.ORDER
        ):
            near = (
                difference.first <= last.last + 1
                or ranks.get(difference.first, -1) == ranks.get(last.last, -3) + 1
            )
            if near:
                last = replace(last, last=difference.last, count=last.count + difference.count)
                continue
        if last is not None:
            yield last
        last = difference
    if last is not None:
        yield last
