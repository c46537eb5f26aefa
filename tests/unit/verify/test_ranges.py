"""Ranges: nothing is left out, nothing comes twice, and the same ones come out each time."""

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.offsets.ranges import merged
from mirrorlake.verify.ranges import Extent, cut, is_in, sampled, without

EXTENTS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda pair: tuple(sorted(pair))),
    max_size=5,
)


def offsets(extents: list[Extent]) -> list[int]:
    return [at for first, last in extents for at in range(first, last + 1)]


@given(st.tuples(st.integers(0, 60), st.integers(0, 60)), EXTENTS)
def test_what_is_left_is_what_is_not_done(wanted: Extent, done: list[Extent]) -> None:
    assert offsets(without(wanted, done)) == sorted(set(offsets([wanted])) - set(offsets(done)))


@given(EXTENTS, st.integers(0, 61))
def test_whether_an_offset_is_in_some_extents(extents: list[Extent], offset: int) -> None:
    assert is_in(merged(extents), offset) == (offset in offsets(extents))


@given(st.tuples(st.integers(0, 300), st.integers(0, 300)))
def test_ranges_are_cut_at_multiples(wanted: Extent) -> None:
    found = cut([wanted], 100)
    assert offsets(found) == offsets([wanted])
    assert all(first // 100 == last // 100 for first, last in found)


@given(st.integers(1, 400), st.floats(0.001, 1))
def test_a_sample_is_the_same_each_time_and_never_empty(count: int, share: float) -> None:
    ranges = cut([(0, count * 100_000 - 1)])
    found = sampled(ranges, "orders-0", share)
    assert (
        found
        and set(found) <= set(ranges)
        and found == sampled(reversed(ranges), "orders-0", share)
    )
    assert len(sampled(ranges, "orders-0", 1)) == count


def test_a_sample_has_about_the_share() -> None:
    ranges = cut([(0, 10_000 * 100_000 - 1)])
    assert 50 <= len(sampled(ranges, "orders-0", 0.01)) <= 150
