"""Finds records that a target took, but that neither the map nor the metadata of the flow's
position locates: the lake is older than the target, like a backup, or a disk that lost its newest
part.

Landing stages them again, and their content shows where they are: the target's records behind the
end of the map hold those of the stage in the same order. If there is exactly one way to match them,
the map's rows are as exact as any.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from mirrorlake.errors import MapUnknown
from mirrorlake.offsets.runs import Segment, Written, segments_of
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.encoding import Hops, as_records, as_sent, digests, numbers_of
from mirrorlake.produce.provenance import Provenance

#: The problem, in a sentence.
OLDER = "the lake is older than the target"
#: The remedy.
DECIDE = "decide with mirrorlake resolve"
#: How many bytes of each record's digest are held.
_HELD = 8


class ContentMatch:
    """A partition of which a batch has all that the target took: rows of the stage below
    `position`, the target's next source offset. `lost` is what its metadata names."""

    def __init__(
        self,
        plan: PartitionPlan,
        position: int,
        lost: Sequence[Written],
        provenance: Provenance | None,
    ) -> None:
        self._plan, self._position = plan, position
        self._hops: Hops | None = None
        if provenance is not None:
            self._hops = Hops(provenance.source_id, provenance.target_id)
        self._staged = _Contents()
        #: The target offsets of the records: from, and to below; None: the end of the log.
        self.bounds: tuple[int, int | None] = (
            plan.floor.target or 0,
            lost[-1].target_first + lost[-1].record_count if lost else None,
        )

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows of the stage below the position, in the order of their offsets."""
        self._staged.add(as_sent(as_records(rows)), self._hops)

    def find(self, records: Iterable[pa.RecordBatch]) -> list[Segment]:
        """Find the added rows among the target's records within `bounds`. Raises MapUnknown."""
        held = _Contents()
        for batch in records:
            held.add(as_records(batch), self._hops)
        offsets = self._staged.offsets()
        at = places_in(self._staged.digests(), held.digests())
        if at is None:
            raise self._unknown("they are not there in the same order, or in more than one way")
        if len(absent := offsets[at < 0]):
            raise self._unknown(
                f"{len(absent)} of them, from offset {absent[0]} on, are not there: they were "
                "parked, given up or forgotten since, or retention took them"
            )
        return list(segments_at(offsets, held.offsets()[at]))

    def _unknown(self, why: str) -> MapUnknown:
        plan, last = self._plan, self._position - 1
        return MapUnknown(
            f"{OLDER}: where it has the stage's records of {plan.topic}-{plan.partition}, offsets "
            f"{plan.first} to {last}, cannot be known, since {why}; {DECIDE}",
            topic=plan.topic,
        )


class _Contents:
    """The offsets of records, and the digests that tell their contents apart."""

    def __init__(self) -> None:
        self._offsets, self._digests = [np.empty(0, np.int64)], list[bytes]()

    def add(self, records: pa.RecordBatch, hops: Hops | None) -> None:
        self._offsets.append(numbers_of(records.column("offset")))
        self._digests += [digest[:_HELD] for digest in digests(records, hops)]

    def offsets(self) -> np.ndarray:
        return np.concatenate(self._offsets)

    def digests(self) -> np.ndarray:
        return np.frombuffer(b"".join(self._digests), np.uint64)


def segments_at(offsets: np.ndarray, targets: np.ndarray) -> Iterator[Segment]:
    """Segments of records at target offsets, which are not consecutive where a transaction ends."""
    if len(offsets):
        breaks = np.flatnonzero(np.diff(targets) != 1) + 1
        for part, at in zip(np.split(offsets, breaks), np.split(targets, breaks), strict=True):
            yield from segments_of(part, int(at[0]))


def places_in(wanted: np.ndarray, held: np.ndarray) -> np.ndarray | None:
    """For each of `wanted` its index in `held`, -1 if there is no equal one; the others rise. None
    if there is no such assignment, or more than one: then it cannot be known."""
    present = np.isin(wanted, held)
    asked, there = wanted[present].tolist(), held.tolist()
    earliest = list(_earliest(asked, there))
    latest = [len(there) - 1 - at for at in _earliest(asked[::-1], there[::-1])][::-1]
    if len(earliest) < len(asked) or earliest != latest:
        return None
    places = np.full(len(wanted), -1, np.int64)
    places[present] = earliest
    return places


def _earliest(wanted: list[int], held: list[int]) -> Iterator[int]:
    """Each value's earliest index behind that of the one before; ends at the first without."""
    rest = enumerate(held)
    for one in wanted:
        at = next((at for at, other in rest if other == one), None)
        if at is None:
            return
        yield at
