"""Ranges: nothing is left out, nothing comes twice, and the same ones come out each time."""

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.offsets.ranges import Extent
from mirrorlake.verify.plan import cut, sampled


def offsets(extents: list[Extent]) -> list[int]:
    return [at for first, last in extents for at in range(first, last + 1)]


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
