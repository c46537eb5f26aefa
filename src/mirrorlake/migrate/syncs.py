"""Where to look for a position, by MirrorMaker 2's offset syncs: pairs of a source offset and the
offset of its copy. Pure.

They are sparse: one at the first record after each start of MirrorMaker 2, one at each gap, and
otherwise about one per `offset.lag.max` records (100); and their topic is compacted. So they only
show which records to compare (`matching.py`); without a sync the records' timestamps do.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

#: The fewest records compared before a position: several times `offset.lag.max`, since records
#: copied after the last sync before a restart left no trace in the syncs.
MARGIN = 1_000
#: How many records are compared after it: they show where a run continues.
AHEAD = 200
#: How many records are compared before a position if no sync is near.
LOOK_BACK = 10_000
#: The most records compared for one position.
MOST = 100_000


class Sync(NamedTuple):
    """A source offset and the offset of its record in the copy."""

    source: int
    copy: int


class Window(NamedTuple):
    """The ranges to compare, in the copy and in the source; ends are exclusive. `source_begin` is
    the source offset of the record at `first`, None if the copy's log no longer has it."""

    first: int
    end: int
    source_first: int
    source_end: int
    source_begin: int | None


def living(syncs: Iterable[Sync]) -> list[Sync]:
    """The syncs of the current copy, by rising offset in it: where offsets fall, the copy was
    recreated or truncated, and earlier syncs are void."""
    kept: list[Sync] = []
    for sync in syncs:
        if kept and sync.copy < kept[-1].copy:
            kept = []
        if kept and sync.copy == kept[-1].copy:
            kept.pop()
        kept.append(sync)
    return kept


def window_of(syncs: Sequence[Sync], position: int, start: int, end: int) -> Window | None:
    """The window to compare to find a position of the copy in the source; None if the syncs do not
    show it.

    It begins at a record further than all copied before it, so that repeated records lie within the
    window.

    Args:
        syncs: as `living` gives them.
        position: in the copy.
        start, end: of the copy's log.
    """
    # After the last sync before a restart, records were copied that have no sync: at most as many
    # as lie before the next sync.
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
    """The range of the copy to compare, end exclusive, to find the last place of the record at a
    source offset; None if the syncs do not show it.

    After the last sync at or below it, the copy reaches the record before the next sync, or never.

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
