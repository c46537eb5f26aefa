"""A comparison names what is different, by kind and offset: each thing that can happen to a record,
alone and mixed."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.verify.narrowing import compare
from mirrorlake.verify.sides import Side
from mirrorlake.verify.verdict import Allowances, Difference, Verdict

SHIFT = 1_000


@dataclass
class World:
    """Three sides, each (offset, content) in order, and the map. The target's offsets are the
    source's plus SHIFT."""

    source: list[tuple[int, str]] | None
    stage: list[tuple[int, str]]
    target: list[tuple[int, str]]
    pairs: list[tuple[int, int]]
    allowed: Allowances = field(default_factory=Allowances)
    echo: set[int] = field(default_factory=set)
    own: set[int] | None = None

    def verdict(self) -> Verdict:
        source = None if self.source is None else self.side(self.source)
        sources, targets = (
            np.array([pair[at] for pair in sorted(self.pairs)], np.int64) for at in (0, 1)
        )
        return compare(
            source,
            self.side(self.stage),
            self.side(self.target),
            (sources, targets),
            first=0,
            allowed=self.allowed,
        )

    def side(self, records: Sequence[tuple[int, str]]) -> Side:
        offsets = np.array([at for at, _ in records], np.int64)
        echo = np.array([at in self.echo for at, _ in records], bool)
        own = np.array([self.own is None or at in self.own for at, _ in records], bool)
        digests = [hashlib.sha256(text.encode()).digest() for _, text in records]
        return Side(offsets, np.full(len(records), 5_000), digests, echo, own)

    def found(self) -> list[tuple[str, int, int]]:
        return [(item.kind, item.first, item.last) for item in self.verdict().differences]


def world(offsets: Sequence[int] = range(10), content: str = "record {}") -> World:
    records = [(at, content.format(at)) for at in offsets]
    there = [(at + SHIFT, text) for at, text in records]
    return World(list(records), list(records), there, [(at, at + SHIFT) for at in offsets])


def test_the_same_is_proven() -> None:
    found = world().verdict()
    assert found == Verdict((), {}) and found.word == "proven"


def test_one_that_is_missing() -> None:
    here = world()
    del here.target[4]
    assert here.found() == [("missing_at_target", 4, 4)]


def test_one_that_is_twice() -> None:
    here = world()
    here.target.append((SHIFT + 10, "record 4"))
    assert here.found() == [("twice_at_target", 4, 4)]
    assert here.verdict().differences[0].target_offset == SHIFT + 10


def test_a_foreign_one_in_between() -> None:
    here = world(range(0, 20, 2))
    here.target.insert(5, (SHIFT + 9, "nobody's"))
    assert here.verdict().differences == (Difference("foreign_at_target", 8, 8, 1, SHIFT + 9),)


def test_other_content() -> None:
    here = world()
    here.target[4] = (SHIFT + 4, "other")
    assert here.found() == [("content", 4, 4)]


def test_two_that_are_swapped() -> None:
    here = world()
    here.target[3], here.target[6] = (SHIFT + 3, "record 6"), (SHIFT + 6, "record 3")
    assert here.found() == [("order", 3, 6)] and here.verdict().differences[0].count == 2


def test_one_that_nobody_wrote_and_the_rest_moved_up() -> None:
    here = world()
    here.target = [
        (SHIFT + number, f"record {at}") for number, at in enumerate([0, 1, 2, *range(4, 10)])
    ]
    assert here.found()[0] == ("missing_at_target", 3, 3)
    assert {kind for kind, *_ in here.found()} == {"missing_at_target", "not_mapped"}


def test_one_that_is_not_mapped() -> None:
    here = world()
    del here.pairs[4]
    assert here.found() == [("not_mapped", 4, 4)]
    del here.target[4]
    assert here.found() == [("not_mapped", 4, 4)], "whether the target has it or not"


def test_another_one_in_the_stage() -> None:
    here = world()
    here.stage[4] = (4, "changed")
    assert here.found() == [("stage_differs", 4, 4)], "the target has what the source has"
    here.target[4] = (SHIFT + 4, "changed")
    assert here.found() == [("content", 4, 4), ("stage_differs", 4, 4)]


def test_one_that_only_one_of_source_and_stage_has() -> None:
    here = world()
    del here.stage[4]
    assert here.found() == [("stage_differs", 4, 4)]
    here = world()
    assert here.source is not None
    del here.source[4]
    assert here.found() == [("stage_differs", 4, 4)]
    here.stage = [item for item in here.stage if item[0] != 4]
    assert here.found() == [("stage_differs", 4, 4)], "only the map has it"


def test_one_that_is_staged_twice() -> None:
    here = world()
    here.stage.insert(4, here.stage[4])
    assert here.found() == [("stage_differs", 4, 4)]


def test_neighbours_are_one_difference() -> None:
    here = world(range(0, 30, 3))
    del here.target[4:7]
    assert here.verdict().differences == (Difference("missing_at_target", 12, 18, 3, SHIFT + 12),)


def test_what_the_source_has_trimmed_is_no_difference() -> None:
    here = world()
    here.source = here.source and here.source[6:]
    here.allowed = Allowances(source_start=6)
    assert (
        here.verdict() == Verdict((), {"source_trimmed": 6})
        and here.verdict().word == "source_trimmed"
    )
    here.source = None
    assert here.verdict() == Verdict((), {"source_trimmed": 10})
    here.target[2] = (SHIFT + 2, "other")
    assert here.found() == [("content", 2, 2)], "stage and target are still compared"


def test_a_compacted_source_and_target() -> None:
    here = world()
    assert here.source is not None
    del here.source[2], here.target[7]
    here.allowed = Allowances(
        source_compacts=True, target_compacts=True, last_of_key=frozenset({2, 8, 9})
    )
    assert here.verdict() == Verdict((), {"source_trimmed": 1, "superseded": 1})
    assert here.verdict().word == "superseded"
    here.allowed = replace(here.allowed, last_of_key=frozenset({7}))
    assert here.found() == [("missing_at_target", 7, 7)], "it is the last one of its key"
    here.allowed = replace(here.allowed, last_of_key=None)
    assert here.found() == [("missing_at_target", 7, 7)], "nobody has looked yet"


def test_what_the_target_keeps_no_more() -> None:
    here = world()
    del here.target[:3]
    here.allowed = Allowances(target_start=SHIFT + 3, target_keeps_from=6_000)
    assert here.verdict() == Verdict((), {"target_trimmed": 3})
    here.allowed = replace(here.allowed, target_keeps_from=4_000)
    assert here.found() == [("missing_at_target", 0, 2)], (
        "retention does not delete what is so young"
    )


def test_what_was_given_up_and_echoes_are_not_expected() -> None:
    here = world()
    here.pairs = [pair for pair in here.pairs if pair[0] not in (3, 8)]
    here.target = [item for item in here.target if item[0] - SHIFT not in (3, 8)]
    here.allowed = Allowances(left_out={"given_up": OffsetRanges([(3, 3)])})
    here.echo = {8}
    assert here.verdict() == Verdict((), {"given_up": 1, "echo": 1})


def test_what_others_wrote() -> None:
    here = world()
    here.target += [(SHIFT + 10, "their own"), (SHIFT + 11, "record 4")]
    here.allowed = Allowances(others=((SHIFT + 10, SHIFT + 11),))
    assert here.verdict() == Verdict((), {"others": 2})
    here.allowed = Allowances(others=((SHIFT + 5, SHIFT + 11),))
    assert here.verdict() == Verdict((), {"others": 2}), (
        "what was being written and is mapped now is compared"
    )
    here.allowed, here.own = Allowances(shared=True), {at for at, _ in here.target[:-2]}
    assert here.verdict() == Verdict((), {"others": 2})


def test_records_that_are_all_the_same() -> None:
    here = world(content="same")
    assert here.verdict() == Verdict((), {})
    del here.target[4]
    assert here.found() == [("missing_at_target", 4, 4)]
    here = world(content="same")
    here.target.insert(5, (SHIFT + 100, "same"))
    assert here.verdict().differences[0].target_offset == SHIFT + 100, (
        "the one that the map does not know"
    )


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.data())
def test_whatever_the_target_lacks_or_has_more_is_found(letters: list[str], data: Any) -> None:
    """Any change of the target's records, or of the map, makes a difference; none makes none."""
    here = world(range(len(letters)))
    here.source = here.stage = list(enumerate(letters))
    right = [(SHIFT + at, letter) for at, letter in enumerate(letters)]
    here.target = list(right)
    assert here.verdict().word == "proven"
    places = st.integers(SHIFT, SHIFT + 9)
    here.target = sorted(
        data.draw(st.dictionaries(places, st.sampled_from("abcd"), max_size=9)).items()
    )
    assert (here.verdict().word == "proven") == (here.target == right)


def test_what_was_forgotten_is_counted_once_whoever_still_has_it() -> None:
    """Offset 3 is at source and target, 4 only at the source, 5 only at the target, 6 nowhere; 7
    was never sent."""
    here = world()
    here.allowed = Allowances(left_out={"forgotten": OffsetRanges([(3, 7)])})
    here.stage = [record for record in here.stage if not 3 <= record[0] <= 7]
    here.source = [record for record in here.source or [] if record[0] not in (5, 6)]
    here.target = [record for record in here.target if record[0] - SHIFT not in (4, 6, 7)]
    here.pairs = [pair for pair in here.pairs if pair[0] != 7]
    assert here.verdict() == Verdict((), {"forgotten": 5, "source_trimmed": 2}, 2)
    here.allowed = Allowances(left_out={"forgotten": OffsetRanges([(4, 7)])})
    assert here.found() == [("stage_differs", 3, 3)]


@pytest.mark.parametrize(
    ("why", "told"),
    [("forgotten", "forgotten"), ("stage_trimmed", "stage_trimmed"), ("removed", "stage_trimmed")],
)
def test_what_only_the_map_has_is_not_proven(why: str, told: str) -> None:
    """Whether the target has it or not, there is nothing to compare it with."""
    for kept in (range(3), range(0)):
        here = world(range(3))
        here.source, here.stage = [], []
        here.target = [here.target[at] for at in kept]
        here.allowed = Allowances(source_start=3, left_out={why: OffsetRanges([(0, 2)])})
        assert here.verdict() == Verdict((), {told: 3, "source_trimmed": 3}, 3)
        assert here.verdict().word == "source_trimmed"
    here.source = [(at, f"record {at}") for at in range(3)]
    here.target = world(range(3)).target
    assert here.verdict().word == "proven", "the source has it again"


def test_what_one_of_the_two_has_is_compared_whatever_the_other_lacks() -> None:
    """The source has compacted one away, and another was deleted from the stage."""
    here = world(range(3))
    here.source = [record for record in here.source or [] if record[0] != 1]
    here.stage = [record for record in here.stage if record[0] != 0]
    here.allowed = Allowances(
        source_compacts=True, left_out={"stage_trimmed": OffsetRanges([(0, 0)])}
    )
    assert here.verdict() == Verdict((), {"source_trimmed": 1, "stage_trimmed": 1}, 0)


def without_stage(source: Sequence[int], reason: str) -> World:
    """Offsets 0 and 1 were deleted from the stage, and neither map nor target has them."""
    here = world(range(3))
    here.source = [record for record in here.source or [] if record[0] in source]
    here.stage, here.target, here.pairs = here.stage[2:], here.target[2:], here.pairs[2:]
    here.allowed = Allowances(left_out={reason: OffsetRanges([(0, 1)])})
    return here


def test_what_was_removed_from_the_stage_has_to_be_mapped_or_decided() -> None:
    here = without_stage(range(3), "removed")
    assert here.found() == [("not_mapped", 0, 1)] and here.verdict().excused == {}
    here.echo = {0, 1}
    assert here.verdict() == Verdict((), {"echo": 2})
    for decided in ("given_up", "parked", "forgotten", "stage_trimmed"):
        here = without_stage(range(3), decided)
        here.allowed = Allowances(
            left_out={**here.allowed.left_out, "removed": OffsetRanges([(0, 1)])}
        )
        assert here.verdict() == Verdict((), {decided: 2})
    here = without_stage((2,), "removed")
    here.allowed = replace(here.allowed, source_start=2)
    assert here.verdict() == Verdict((), {}), "nothing shows that there were records"


def test_what_was_removed_from_the_stage_is_compared_by_the_map() -> None:
    here = world(range(3))
    here.stage = here.stage[2:]
    here.allowed = Allowances(left_out={"removed": OffsetRanges([(0, 1)])})
    assert here.verdict() == Verdict((), {"stage_trimmed": 2})
    del here.target[1]
    assert here.found() == [("missing_at_target", 1, 1)]
    here = world(range(3))
    here.stage = here.stage[2:]
    del here.pairs[0]
    here.allowed = Allowances(left_out={"removed": OffsetRanges([(0, 1)])})
    assert here.found() == [("not_mapped", 0, 0)]
