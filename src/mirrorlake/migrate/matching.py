"""Matches the records of two copies by their digests, and translates a position in one into the
other. Pure.

*Theirs* is a partition that MirrorMaker 2 wrote: runs of the source's records in order, each of
which may begin before the end of the previous one, since after a crash MirrorMaker 2 resends what
it had not recorded (docs/mm2.md, "Restarts and losses"). It may also contain records that ours
never has: those of aborted transactions, and ones older than our first. *Ours* contains each record
once, in order.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

#: How many following records decide between several places where a run may continue.
LOOK_AHEAD = 64
#: How many identical records are compared on either side of a run's place.
MOST_TWINS = 50

BEHIND = "our copy has not come there yet"
BEFORE_OURS = "what the group reads next is in front of the first record of our copy"
BETWEEN = "the record in front of the position is not in our copy, nor does the next one show it"
UNKNOWN = "none of the records around the position is in the other copy"
LACKING = "MirrorMaker 2's copy lacks the record that the group reads next"
THEIRS_BEHIND = "MirrorMaker 2's copy has not come there yet"


@dataclass(frozen=True)
class Stretch:
    """Records of a partition in order: their rising offsets, and digests. `end` is exclusive;
    `is_start` and `is_end` say that the log has no record before or after the stretch."""

    offsets: Sequence[int]
    digests: Sequence[bytes]
    end: int
    is_start: bool = False
    is_end: bool = False


@dataclass(frozen=True)
class Counterpart:
    """The position's counterpart in the other copy: the next offset to read there, None if unknown.

    If not `exact`, reading from `offset` skips no record, but may repeat some; `reason` says why.
    `behind`: the other copy may show it later. `is_next`: the record at `offset` is the one that
    the group reads next.
    """

    offset: int | None
    exact: bool
    reason: str | None = None
    behind: bool = False
    is_next: bool = field(default=False, compare=False)


def align(theirs: Sequence[bytes], ours: Sequence[bytes], begin: int = 0) -> list[int]:
    """Return for each record of theirs the index of the same one in ours, -1 for none. `begin` is
    the index of their first record, if known; otherwise the first of several identical ones is
    taken.

    Of several identical records, timestamp included, it picks the one followed by the most equal
    records; then the one right after the previous match; then the last one already passed, since
    MirrorMaker 2 goes back and never skips ahead.
    """
    places: dict[bytes, list[int]] = defaultdict(list)
    for index, digest in enumerate(ours):
        places[digest].append(index)
    aligned, last = [], begin - 1
    for at, digest in enumerate(theirs):
        known = places.get(digest, ())
        index = known[0] if known else -1
        if len(known) > 1:
            index = _place(theirs, at, ours, known, last)
        aligned.append(index)
        last = index if index >= 0 else last
    return aligned


def _place(
    theirs: Sequence[bytes], at: int, ours: Sequence[bytes], known: Sequence[int], last: int
) -> int:
    """Choose among several identical records."""
    near = bisect_left(known, last + 1)
    candidates = known[max(0, near - MOST_TWINS) : near + MOST_TWINS]

    def worth(index: int) -> tuple[int, bool, bool, int]:
        same, is_behind = _same(theirs, at, ours, index), index <= last
        return same, index == last + 1, is_behind, index if is_behind else -index

    return max(candidates, key=worth)


def _same(theirs: Sequence[bytes], at: int, ours: Sequence[bytes], index: int) -> int:
    """How many consecutive records are equal from two places on, up to LOOK_AHEAD."""
    count = 0
    for one, other in zip(
        theirs[at : at + LOOK_AHEAD], ours[index : index + LOOK_AHEAD], strict=False
    ):
        if one != other:
            break
        count += 1
    return count


def translate_to_ours(
    position: int, theirs: Stretch, ours: Stretch, aligned: Sequence[int]
) -> Counterpart:
    """Translate a group's position in theirs into ours, so that it reads what it has not read.

    The group has read up to the furthest record before its position, even if it is within a
    repetition.

    Args:
        position: the next offset of theirs that the group reads.
        theirs: from far enough before the position that no record before the stretch lies further
            on in ours than those in it.
        ours: at least the records of theirs, as far as ours has them.
        aligned: `align` of the two.
    """
    read = bisect_left(theirs.offsets, position)
    furthest = max(aligned[:read], default=-1)
    following = next((index for index in aligned[read:] if index >= 0), None)
    if furthest < 0:
        return _from_the_next(read, theirs, ours, aligned, following)
    offset = ours.offsets[furthest] + 1
    if furthest == len(ours.offsets) - 1 and -1 in aligned[aligned.index(furthest) : read]:
        # Records that it read after our last one may be missing in ours so far, wherever it stands
        # now.
        return Counterpart(offset, False, BEHIND if ours.is_end else BETWEEN, ours.is_end)
    is_behind_last = position == theirs.offsets[read - 1] + 1 or (
        theirs.is_end and read == len(theirs.offsets)
    )
    if (aligned[read - 1] >= 0 and is_behind_last) or (
        following is not None and following <= furthest + 1
    ):
        is_next = read < len(aligned) and aligned[read] == furthest + 1
        return Counterpart(offset, True, is_next=is_next)
    return Counterpart(offset, False, BETWEEN)


def _from_the_next(
    read: int, theirs: Stretch, ours: Stretch, aligned: Sequence[int], following: int | None
) -> Counterpart:
    """Ours has no record that the group has read: its position is the first unread record."""
    if following is None:
        if not theirs.offsets and theirs.is_start and theirs.end == 0:  # theirs never had a record
            return Counterpart(ours.offsets[0] if ours.offsets else ours.end, True)
        return Counterpart(
            None, False, BEHIND if ours.is_end and theirs.offsets else UNKNOWN, ours.is_end
        )
    is_next = aligned[read] == following
    unread_in_front = not is_next and following == 0 and ours.is_start
    reason = BEFORE_OURS if unread_in_front else None
    return Counterpart(ours.offsets[following], not unread_in_front, reason, is_next=is_next)


def translate_to_theirs(
    position: int, theirs: Stretch, ours: Stretch, aligned: Sequence[int]
) -> Counterpart:
    """Translate a group's position in ours into theirs: the last of several places of the next
    record, so that the group rereads only what MirrorMaker 2 repeats after it.

    Args:
        position: the next offset of ours that the group reads.
        theirs: every place that may have that record.
        ours: around the position.
        aligned: `align` of the two.
    """
    unread = bisect_left(ours.offsets, position)
    last: dict[int, int] = {index: at for at, index in enumerate(aligned) if index >= 0}
    if unread in last:
        return Counterpart(theirs.offsets[last[unread]], True)
    if not last:
        is_new = not ours.offsets and not theirs.offsets and ours.is_start and theirs.is_end
        return Counterpart(theirs.end, True) if is_new else Counterpart(None, False, UNKNOWN)
    furthest = max(last)
    if furthest > unread:
        return Counterpart(
            theirs.offsets[last[min(index for index in last if index > unread)]], False, LACKING
        )
    if furthest < unread - 1:
        return Counterpart(None, False, THEIRS_BEHIND, theirs.is_end)
    # theirs has all that was read; the next record, not in ours yet, is there already or will come
    if theirs.is_end and -1 not in aligned[last[furthest] :]:
        return Counterpart(theirs.end, True)
    is_whole = theirs.is_end
    return Counterpart(theirs.offsets[last[furthest]] + 1, is_whole, None if is_whole else LACKING)
