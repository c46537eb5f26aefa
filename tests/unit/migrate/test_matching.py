"""Positions between MirrorMaker 2's copy and ours, against a copier that dies, goes back and sends
again."""

from dataclasses import dataclass, field
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mirrorlake.migrate.matching import (
    BEFORE_OURS,
    BEHIND,
    BETWEEN,
    LACKING,
    THEIRS_BEHIND,
    UNKNOWN,
    Counterpart,
    Stretch,
    align,
    translate_to_ours,
    translate_to_theirs,
)
from mirrorlake.migrate.syncs import MARGIN, Sync, living, window_back, window_of


def log(
    digests: list[bytes], offsets: list[int] | None = None, end: int | None = None, **facts: bool
) -> Stretch:
    at = list(range(len(digests))) if offsets is None else offsets
    return Stretch(at, digests, (at[-1] + 1 if at else 0) if end is None else end, **facts)


def whole(
    digests: list[bytes], offsets: list[int] | None = None, end: int | None = None
) -> Stretch:
    return log(digests, offsets, end, is_start=True, is_end=True)


def names(text: str) -> list[bytes]:
    return [letter.encode() for letter in text]


def forward(position: int, theirs: Stretch, ours: Stretch, begin: int = 0) -> Counterpart:
    return translate_to_ours(position, theirs, ours, align(theirs.digests, ours.digests, begin))


def back(position: int, theirs: Stretch, ours: Stretch) -> Counterpart:
    return translate_to_theirs(position, theirs, ours, align(theirs.digests, ours.digests))


@dataclass
class Copier:
    """MirrorMaker 2 as it copies one partition: what it wrote, which source record each is (None:
    an aborted one), and the syncs that it sent."""

    copied: list[int | None] = field(default_factory=list)
    syncs: list[Sync] = field(default_factory=list)

    def live(self, sources: list[int | None], lag: int) -> None:
        """One life: copies these, and sends a sync for the first and for one in `lag`."""
        due = 0
        for source in sources:
            if source is not None:
                if due == 0:
                    self.syncs.append(Sync(source, len(self.copied)))
                    due = lag
                due -= 1
            self.copied.append(source)


@st.composite
def lives(draw: st.DrawFn) -> tuple[list[bytes], Copier]:
    """A source of which some records are twins, and what a copier made of it, dying now and
    then."""
    count = draw(st.integers(1, 60))
    twins = draw(st.booleans())
    source = [f"{number // 2 if twins else number}".encode() for number in range(count)]
    copier, noted, reached = Copier(), 0, 0
    for _ in range(draw(st.integers(1, 5))):
        until = draw(st.integers(noted, count))
        life: list[int | None] = list(range(noted, until))
        for _ in range(draw(st.integers(0, 2))):
            life.insert(draw(st.integers(0, len(life))), None)
        copier.live(life, draw(st.integers(1, 7)))
        reached = max(reached, until)
        noted = draw(st.integers(noted, max(noted, until)))
    copier.live(list(range(noted, count)), 5)
    return source, copier


def stretches(source: list[bytes], copier: Copier) -> tuple[Stretch, Stretch]:
    aborted = iter(range(1_000))
    theirs = [
        b"aborted %d" % next(aborted) if one is None else source[one] for one in copier.copied
    ]
    ours = [2 * number for number in range(len(source))]  # markers in between
    return whole(theirs), whole(source, ours)


@given(lives())
def test_nothing_is_lost_and_nothing_read_twice(made: tuple[list[bytes], Copier]) -> None:
    source, copier = made
    theirs, ours = stretches(source, copier)
    for position in range(len(copier.copied) + 1):
        found = forward(position, theirs, ours)
        read = {source[one] for one in copier.copied[:position] if one is not None}
        unread = [
            digest
            for at, digest in zip(ours.offsets, source, strict=True)
            if at >= (found.offset or 0)
        ]
        distinct = len(set(source)) == len(source)
        if found.exact and distinct:
            assert read.isdisjoint(unread)
        if found.offset is not None:
            assert read | set(unread) == set(source), "nothing is lost"
        last, following = (
            copier.copied[at : at + 1] or [None] for at in (max(0, position - 1), position)
        )
        # aborted, or not in ours yet?
        unsure = len(read) == len(set(source)) and None in copier.copied[:position]
        if distinct and not unsure and (following[0] is not None or (read and last[0] is not None)):
            assert found.exact, (position, copier.copied, found)


@given(lives())
def test_the_way_back_loses_nothing_and_repeats_only_what_is_repeated_there(
    made: tuple[list[bytes], Copier],
) -> None:
    source, copier = made
    if len(set(source)) < len(source):
        return
    theirs, ours = stretches(source, copier)
    for unread in range(len(source) + 1):
        found = back(2 * unread, theirs, ours)
        assert found.exact and found.offset is not None
        left = [one for one in copier.copied[found.offset :] if one is not None]
        assert set(range(unread, len(source))) <= set(left)
        last = max((at for at, one in enumerate(copier.copied) if one == unread), default=None)
        assert found.offset == last or (last is None and not left), "of several places the last"


@given(lives(), st.integers(0, 60))
def test_what_ours_lacks_yet_is_not_taken_for_read(
    made: tuple[list[bytes], Copier], known: int
) -> None:
    """Our copy is behind MirrorMaker 2's: what is exact is so for all that comes."""
    source, copier = made
    theirs, ours = stretches(source, copier)
    known = min(known, len(source))
    behind = whole(source[:known], list(ours.offsets[:known]))
    for position in range(len(copier.copied) + 1):
        found = forward(position, theirs, behind)
        read = {one for one in copier.copied[:position] if one is not None}
        if found.exact and len(set(source)) == len(source):
            assert {at for at in range(len(source)) if 2 * at >= (found.offset or 0)} == set(
                range(len(source))
            ) - read


@given(lives(), st.integers(0, 60), st.integers(0, 300))
def test_the_way_back_where_one_is_ahead(
    made: tuple[list[bytes], Copier], known: int, copied: int
) -> None:
    """One of the two copies is behind: nothing that is there, or comes, is lost."""
    source, copier = made
    if len(set(source)) < len(source):
        return
    theirs, ours = stretches(source, copier)
    copied, known = min(copied, len(copier.copied)), min(known, len(source))
    there = [one for one in copier.copied[:copied] if one is not None]
    now = whole(list(theirs.digests[:copied]))
    for unread in range(known + 1):
        found = back(2 * unread, now, whole(source[:known], list(ours.offsets[:known])))
        if found.exact and found.offset is not None:
            left = {one for one in copier.copied[found.offset : copied] if one is not None}
            # again, within a repetition
            comes = set(range(there[-1] + 1 if there else 0, len(source)))
            assert {one for one in there if one >= unread} <= left | comes
            assert max(there, default=-1) >= unread - 1, "what it read comes once more"


@given(lives())
def test_there_and_back_loses_nothing(made: tuple[list[bytes], Copier]) -> None:
    source, copier = made
    theirs, ours = stretches(source, copier)
    for position in range(len(copier.copied) + 1):
        there = forward(position, theirs, ours)
        if there.exact and there.offset is not None:
            home = back(there.offset, theirs, ours)
            assert home.offset is not None and (
                home.offset >= position or len(set(source)) < len(source)
            )


def test_a_position_inside_a_repetition_is_behind_all_that_was_read() -> None:
    theirs, ours = whole(names("abcdefcdefgh")), whole(names("abcdefgh"))
    assert [forward(at, theirs, ours) for at in (6, 7, 8, 9, 10)] == [Counterpart(6, True)] * 5
    assert forward(11, theirs, ours) == Counterpart(7, True)
    assert back(4, theirs, ours) == Counterpart(8, True), "the second e"
    assert back(8, theirs, ours) == Counterpart(12, True)


def test_what_our_copy_does_not_have_yet() -> None:
    theirs = whole(names("abcd"))
    assert forward(4, theirs, whole(names("ab"))) == Counterpart(2, False, BEHIND, behind=True)
    assert forward(2, theirs, whole(names("ab"))) == Counterpart(2, True), (
        "the next record comes there"
    )
    assert back(4, whole(names("ab")), whole(names("abcd"))) == Counterpart(
        None, False, THEIRS_BEHIND, behind=True
    )
    assert back(2, whole(names("ab")), whole(names("abcd"))) == Counterpart(2, True), (
        "it comes there next"
    )


def test_the_beginning() -> None:
    assert forward(0, whole([]), whole(names("ab"))) == Counterpart(0, True)
    assert forward(0, whole(names("ab")), whole(names("ab"), [3, 4])) == Counterpart(3, True)
    # Ours began when the source had lost a and b: who has not read them would lose them.
    assert forward(1, whole(names("abcd")), whole(names("cd"))) == Counterpart(
        0, False, BEFORE_OURS
    )
    assert forward(2, whole(names("abcd")), whole(names("cd"))) == Counterpart(0, True)
    assert forward(7, Stretch([], [], 7, True, True), whole(names("ab"))) == Counterpart(
        None, False, UNKNOWN, True
    )
    assert forward(1, log(names("xy")), log(names("ab"))) == Counterpart(None, False, UNKNOWN)


def test_a_record_that_compaction_took() -> None:
    theirs, ours = log(names("ad"), [0, 3]), log(names("abcd"))
    assert forward(2, theirs, ours) == Counterpart(1, False, BETWEEN), "b was read, or was not"
    assert forward(3, log(names("acd"), [0, 2, 3]), ours) == Counterpart(3, True)
    assert back(1, log(names("ad"), [0, 3]), ours) == Counterpart(3, False, LACKING)


@pytest.mark.parametrize("marker", [5, 6])
def test_the_end_with_transaction_markers(marker: int) -> None:
    theirs = whole(names("abcd"), [0, 1, 3, 4], 6)
    assert forward(marker, theirs, whole(names("abcd"))) == Counterpart(4, True)


def test_twins_are_told_apart_by_what_follows() -> None:
    assert align(names("xybxyc"), names("xyaxybxyc")) == [3, 4, 5, 6, 7, 8]
    assert align(names("xyaxyc"), names("xyaxybxyc")) == [0, 1, 2, 6, 7, 8]


def test_syncs_of_a_copy_that_was_made_again_are_of_another_one() -> None:
    syncs = [Sync(0, 0), Sync(500, 500), Sync(501, 0), Sync(700, 199), Sync(701, 199)]
    assert living(syncs) == [Sync(501, 0), Sync(701, 199)]


def test_a_window_begins_where_the_copy_had_never_been_further() -> None:
    every = [Sync(100 * number, 100 * number) for number in range(101)]  # up to 10,000
    again = [Sync(9_000 + 100 * number, 10_050 + 100 * number) for number in range(31)]
    syncs = [*every, *again]
    plain = window_of(syncs, 5_000, 0, 20_000)
    assert plain is not None and (plain.first, plain.source_first) == (4_000, 4_000)
    assert plain.source_end >= 5_200 + MARGIN
    within = window_of(syncs, 10_500, 0, 20_000)
    assert within is not None and within.first <= 9_500 and within.source_first == 9_000
    behind = window_of(syncs, 12_500, 0, 20_000)
    assert behind is not None and (behind.first, behind.source_first) == (11_450, 10_400), (
        "past the repetition"
    )
    assert window_of(syncs, 5_000, 4_500, 20_000) is not None
    assert window_of([Sync(900_000, 900_000)], 5_000, 0, 950_000) is None
    assert window_of([Sync(0, 0)], 500_000, 0, 950_000) is None, "too far away"


def test_the_window_back_holds_the_last_copy() -> None:
    syncs = [Sync(0, 0), Sync(100, 100), Sync(50, 150), Sync(150, 250), Sync(4_000, 4_100)]
    assert window_back(syncs, 60, 0, 9_000) == (0, 1_250)
    assert window_back(syncs, 4_500, 0, 9_000) == (3_100, 9_000)
    assert window_back([], 60, 0, 9_000) is None


def copied_three_times() -> tuple[list[bytes], Copier]:
    """A life that ended behind its last sync, and two that began at the start again."""
    copier = Copier()
    for until, lag in ((27, 3), (26, 1), (27, 5)):
        copier.live(list(range(until)), lag)
    return [f"{number}".encode() for number in range(27)], copier


def aborted_ahead() -> tuple[list[bytes], Copier]:
    """Lives that copy nothing but what was aborted."""
    copier = Copier()
    for life in ([0, None, 1], [0, 1, 2], [None] * 4, [3]):
        copier.live(life, 1)
    return [f"{number}".encode() for number in range(4)], copier


def copied_twice_with_twins() -> tuple[list[bytes], Copier]:
    """Records of which two each are the same; a life that ended with an aborted one, and another
    that began at the start again."""
    copier = Copier()
    copier.live([*range(22), None], 1)
    copier.live(list(range(22)), 5)
    return [f"{number // 2}".encode() for number in range(22)], copier


@example(copied_twice_with_twins(), 45)
@example(aborted_ahead(), 7)
@example(copied_three_times(), 76)
@given(lives(), st.integers(0, 250))
def test_the_window_is_enough(made: tuple[list[bytes], Copier], where: int) -> None:
    """Whatever the window leaves out, the answer is that of the whole copy."""
    source, copier = made
    position = min(where, len(copier.copied))
    theirs, ours = stretches(source, copier)
    # Logs are short here. Ahead is one record more than can be aborted in a row.
    with patch.multiple("mirrorlake.migrate.syncs", MARGIN=24, AHEAD=11, LOOK_BACK=80):
        window = window_of(living(copier.syncs), position, 0, len(copier.copied))
    if window is None:
        return
    part = slice(window.first, window.end)
    cut = Stretch(
        theirs.offsets[part],
        theirs.digests[part],
        window.end,
        window.first == 0,
        window.end == len(theirs.offsets),
    )
    near = slice(window.source_first, window.source_end)
    seen = Stretch(ours.offsets[near], ours.digests[near], ours.end, window.source_first == 0, True)
    begin = 0 if window.source_begin is None else window.source_begin - near.start
    assert forward(position, cut, seen, begin) == forward(position, theirs, ours)
