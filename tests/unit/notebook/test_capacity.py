"""Cores for a load, from what was measured."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mirrorlake.notebook.cores import Cost, fitted


def test_a_line_is_found_again() -> None:
    cost = fitted([(rate, 0.25 + rate * 20 / 1e6) for rate in (0, 1_000, 20_000, 50_000)])
    assert cost is not None
    assert (cost.idle_cores, cost.cpu_seconds_per_million) == pytest.approx((0.25, 20))
    assert cost.cores(100_000, 1.0) == pytest.approx(2.25)
    assert cost.cores(100_000, 0.5) == pytest.approx(4.5)


def test_nothing_is_said_from_nothing() -> None:
    assert fitted([]) is None
    assert fitted([(0, 0.3), (0, 0.2)]) is None, "no record was seen"


def test_one_sample_puts_all_on_the_records() -> None:
    assert fitted([(1_000, 0.5)]) == Cost(0.0, 500.0)


@example([(2.2e-313, 1.0)])
@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 64)), min_size=1, max_size=50))
def test_it_is_never_negative(points: list[tuple[float, float]]) -> None:
    cost = fitted(points)
    if cost is not None:
        assert cost.idle_cores >= 0 and cost.cpu_seconds_per_million >= 0
        assert cost.cores(0) <= cost.cores(1000)
