"""Which record of one copy is which of another, by the digests of both; and what a position in one
means in the other. Pure.

*Theirs* is a partition that MirrorMaker 2 wrote: runs of the source's records in order, of which
each may begin in front of the end of the one before it, since it sends again what it had not noted
when it died (docs/mm2.md, "Restarts and losses"). It may also hold what ours never has: records of
aborted transactions, and older ones than ours begins with. *Ours* holds each record once, in order.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

#: How many records decide between several places at which a run may go on.
LOOK_AHEAD = 64
#: How many of records that are the same in all are looked at, on either side of where a run is.
MOST_TWINS = 50

BEHIND = "our copy has not come there yet"
BEFORE_OURS = "what the group reads next is in front of the first record of our copy"
BETWEEN = "the record in front of the position is not in our copy, nor does the next one show it"
UNKNOWN = "none of the records around the position is in the other copy"
LACKING = "MirrorMaker 2's copy lacks the record that the group reads next"
THEIRS_BEHIND = "MirrorMaker 2's copy has not come there yet"


@dataclass(frozen=True)
class Stretch:
    """Records of a partition in order: their offsets, rising, and digests. `end` is the offset
    behind the stretch; `is_start` and `is_end` say that the log has nothing in front of it, or
    behind it."""

    offsets: Sequence[int]
    digests: Sequence[bytes]
    end: int
    is_start: bool = False
    is_end: bool = False


@dataclass(frozen=True)
class Counterpart:
    """Where a position leads in the other copy: the next offset to be read there, None where it
    cannot be known.

    Not `exact`: from `offset` on no record is skipped, and some may be read twice. `reason` says
    why. `behind`: the other copy may know later.
    """

    offset: int | None
    exact: bool
    reason: str | None = None
    behind: bool = False


def align(theirs: Sequence[bytes], ours: Sequence[bytes], begin: int = 0) -> list[int]:
    """For each of their records the index of the same one in ours, -1 for none. `begin` is the
    index of the first, where it is known: without it the first of several would be taken for it.

    Of several that are the same, timestamp included, it is the one from which on most records are
    the same; then the one behind the record before, then the last that was passed already, since
    MirrorMaker 2 goes back and not ahead.
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
    """Of several records that are the same, the one that is meant."""
    near = bisect_left(known, last + 1)
    candidates = known[max(0, near - MOST_TWINS) : near + MOST_TWINS]

    def worth(index: int) -> tuple[int, bool, bool, int]:
        same, is_behind = _same(theirs, at, ours, index), index <= last
        return same, index == last + 1, is_behind, index if is_behind else -index

    return max(candidates, key=worth)


def _same(theirs: Sequence[bytes], at: int, ours: Sequence[bytes], index: int) -> int:
    """How many records are the same from two places on, up to LOOK_AHEAD."""
    count = 0
    for one, other in zip(
        theirs[at : at + LOOK_AHEAD], ours[index : index + LOOK_AHEAD], strict=False
    ):
        if one != other:
            break
        count += 1
    return count


def onto_ours(position: int, theirs: Stretch, ours: Stretch, aligned: Sequence[int]) -> Counterpart:
    """Where a group that stands at a position of theirs has to stand in ours, so that it reads what
    it has not read.

    It has read up to the furthest record in front of its position, wherever in a repetition it
    stands.

    Args:
        position: the next offset of theirs that the group reads.
        theirs: from far enough in front of the position that nothing before the stretch was further
            than what is in it.
        ours: at least what theirs holds, as far as there is some.
        aligned: `align` of the two.
    """
    read = bisect_left(theirs.offsets, position)
    furthest = max(aligned[:read], default=-1)
    following = next((index for index in aligned[read:] if index >= 0), None)
    if furthest < 0:
        return _from_the_next(read, theirs, ours, aligned, following)
    offset = ours.offsets[furthest] + 1
    if furthest == len(ours.offsets) - 1 and -1 in aligned[aligned.index(furthest) : read]:
        # What it read behind our last record may be what ours does not have yet, wherever it stands
        # now.
        return Counterpart(offset, False, BEHIND if ours.is_end else BETWEEN, ours.is_end)
    is_behind_last = position == theirs.offsets[read - 1] + 1 or (
        theirs.is_end and read == len(theirs.offsets)
    )
    if (aligned[read - 1] >= 0 and is_behind_last) or (
        following is not None and following <= furthest + 1
    ):
        return Counterpart(offset, True)
    return Counterpart(offset, False, BETWEEN)


def _from_the_next(
    read: int, theirs: Stretch, ours: Stretch, aligned: Sequence[int], following: int | None
) -> Counterpart:
    """Nothing that the group has read is in ours: it stands at the first that it has not read."""
    if following is None:
        if not theirs.offsets and theirs.is_start and theirs.end == 0:  # nothing ever came there
            return Counterpart(ours.offsets[0] if ours.offsets else ours.end, True)
        return Counterpart(
            None, False, BEHIND if ours.is_end and theirs.offsets else UNKNOWN, ours.is_end
        )
    unread_in_front = aligned[read] < 0 and following == 0 and ours.is_start
    return Counterpart(
        ours.offsets[following], not unread_in_front, BEFORE_OURS if unread_in_front else None
    )


def onto_theirs(
    position: int, theirs: Stretch, ours: Stretch, aligned: Sequence[int]
) -> Counterpart:
    """Where a group that stands at a position of ours has to stand in theirs: at the last of
    several places at which theirs has the next record, so that it reads again only what MirrorMaker
    2 itself repeats behind it.

    Args:
        position: the next offset of ours that the group reads.
        theirs: all that may hold that record.
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
    # All that was read is there, and what comes next is not known to us: it is there already, or
    # comes.
    if theirs.is_end and -1 not in aligned[last[furthest] :]:
        return Counterpart(theirs.end, True)
    is_whole = theirs.is_end
    return Counterpart(theirs.offsets[last[furthest]] + 1, is_whole, None if is_whole else LACKING)
