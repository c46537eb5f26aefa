"""Where to look for a position: MirrorMaker 2's offset syncs, pairs of a source offset and that of
its copy. Pure.

They are sparse: one at the first record of each of MirrorMaker 2's lives, at each gap, and else
about one in `offset.lag.max` records (100); and the topic that holds them is compacted. So they
only say which records to compare (`matching.py`), and where they say nothing the records'
timestamps do.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

#: How many records in front of a position are compared at least: several times `offset.lag.max`,
#: since what was copied behind the last sync of a life of MirrorMaker 2 left no trace there.
MARGIN = 1_000
#: And how many behind it: they tell where a run goes on.
AHEAD = 200
#: How many where no sync is near.
LOOK_BACK = 10_000
#: More records than this are not compared for one position.
MOST = 100_000


class Sync(NamedTuple):
    """The record at a source offset is at this offset of the copy."""

    source: int
    copy: int


class Window(NamedTuple):
    """What to compare: offsets of the copy, and of the source; ends are exclusive. `source_begin`
    is the source's offset of the record at `first`, None where the log lost that record."""

    first: int
    end: int
    source_first: int
    source_end: int
    source_begin: int | None


def living(syncs: Iterable[Sync]) -> list[Sync]:
    """Those of the copy as it is: it was made again, or cut, where its offsets fall. By rising
    offset of the copy."""
    kept: list[Sync] = []
    for sync in syncs:
        if kept and sync.copy < kept[-1].copy:
            kept = []
        if kept and sync.copy == kept[-1].copy:
            kept.pop()
        kept.append(sync)
    return kept


def window_of(syncs: Sequence[Sync], position: int, start: int, end: int) -> Window | None:
    """What to compare to find a position of the copy in the source; None where syncs do not say.

    It begins at a record that was the furthest of all until then: so what the copy repeats lies
    within.

    Args:
        syncs: as `living` gives them.
        position: in the copy.
        start, end: of the copy's log.
    """
    # Behind the last sync of a life records were copied that have none: at most as many as come
    # until the next sync.
    reached = (one.source + following.copy - one.copy - 1 for one, following in pairwise(syncs))
    furthest = [-1, *accumulate(reached, max)]
    first = None
    for number, sync in enumerate(syncs):
        is_known = number > 0 or sync.copy <= max(start, position - LOOK_BACK)
        if (
            sync.source > furthest[number]
            and is_known
            and sync.copy <= max(start, position - MARGIN)
        ):
            first = number
    if first is None or position - syncs[first].copy > MOST:
        return None
    until = min(end, position + AHEAD)
    sources, ends = [], []
    for number in range(first, len(syncs)):
        sync = syncs[number]
        if sync.copy >= until and number > first:
            break
        behind = syncs[number + 1] if number + 1 < len(syncs) else None
        sources.append(sync.source)
        ends.append(
            sync.source + (until if behind is None else min(until, behind.copy)) - sync.copy
        )
        ends.append(-1 if behind is None else behind.source)
    begin = syncs[first]
    return Window(
        max(start, begin.copy),
        until,
        min(sources),
        max(ends) + MARGIN,
        begin.source if begin.copy >= start else None,
    )


def window_back(syncs: Sequence[Sync], source: int, start: int, end: int) -> tuple[int, int] | None:
    """Which offsets of the copy to compare, from one to in front of another, to find where the
    record at a source offset is last; None where syncs do not say.

    Behind the last sync at or below it the copy comes to it before the next sync, or never.

    Args:
        syncs: as `living` gives them.
        source: a position in the source.
        start, end: of the copy's log.
    """
    below = [number for number, sync in enumerate(syncs) if sync.source <= source]
    if not below:
        return None
    last = below[-1]
    first = max(start, syncs[last].copy - MARGIN)
    until = end if last + 1 == len(syncs) else min(end, syncs[last + 1].copy + MARGIN)
    return None if until - first > MOST else (first, until)
