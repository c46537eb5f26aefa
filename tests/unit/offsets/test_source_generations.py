"""Positions of source topics in the generations that these have had."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.offsets.generations import Begun, SourceGenerations, number_of
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.offsets.ranges import OffsetRanges

KEY = ("orders", 0)


def living(generation: int, offset: int, *begun: Begun) -> int:
    return SourceGenerations(begun).living(PartitionGeneration(*KEY, generation), offset)


def test_a_topic_made_again_begins_anew() -> None:
    begun = [Begun("orders", 0), Begun("orders", 1), Begun("other", 2)]
    assert SourceGenerations(begun).newest(KEY) == 1
    assert [living(0, 40, *begun), living(1, 40, *begun)] == [0, 40]
    assert living(0, 40) == 40 and SourceGenerations(()).newest(KEY) == 0


def test_a_log_that_went_back_is_the_same_up_to_where_it_did() -> None:
    begun = [
        Begun("orders", 0),
        Begun("orders", 1, 0, 50),
        Begun("orders", 1, 1, 10),
        Begun("orders", 2, 0, 30),
    ]
    assert (
        SourceGenerations(begun).newest(KEY) == 2
        and SourceGenerations(begun).newest(("orders", 1)) == 1
    )
    assert [living(0, at, *begun) for at in (20, 30, 40, 60)] == [20, 30, 30, 30]
    assert [living(1, at, *begun) for at in (20, 40)] == [20, 30]
    assert living(2, 60, *begun) == 60
    assert (
        living(0, 20, *begun, Begun("orders", 3)) == living(2, 20, *begun, Begun("orders", 3)) == 0
    )


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6))),
    st.integers(0, 35),
    st.integers(0, 9),
)
def test_ranges_cover_what_each_offset_of_it_lies_in(
    pairs: list[tuple[int, int]], first: int, more: int
) -> None:
    ranges = OffsetRanges((start, start + count) for start, count in pairs)
    each = {at for start, count in pairs for at in range(start, start + count + 1)}
    assert ranges.covers(first, first + more) is each.issuperset(range(first, first + more + 1))
    assert (first in ranges) is (first in each) and bool(ranges) is bool(pairs)


ONE, OTHER, OWN = "zUf7-GCUTkmm", "b3Qx0sMOQm6x", "zUf7-GCUTkmm@1795925426000"
KNOWN = SourceGenerations(
    [
        Begun("orders", 0, id=ONE),
        Begun("orders", 1, 0, 50, id=OWN),
        Begun("orders", 2, 1, 10, id="of another partition"),
        Begun("orders", 3, id=OTHER),
    ]
).ids(KEY)


@pytest.mark.parametrize(
    ("number", "id_", "own"),
    [
        (0, ONE, 0),
        (1, OWN, 1),
        (3, OTHER, 3),
        (2, OTHER, 3),  # a lake that was put back met it earlier, or later
        (5, ONE, 0),
        (1, "of no generation of ours", None),
        (2, "of another partition", None),
        (7, "of no generation of ours", None),
        (1, "", 1),  # an earlier version wrote it
        (7, "", 7),
    ],
)
def test_a_generation_is_recognized_by_its_id(number: int, id_: str, own: int | None) -> None:
    assert number_of(KNOWN, number, id_) == own


def test_where_the_lake_has_no_id_the_number_is_all_that_is_known() -> None:
    assert number_of((), 4, ONE) == 4, "a lake of before generations were noted"
    assert number_of(((0, ""), (1, ONE)), 0, OTHER) == 0
    assert number_of(((0, ""), (1, ONE)), 1, OTHER) is None
    assert number_of(((0, ONE), (1, ONE)), 2, ONE) is None, "it may be either"
