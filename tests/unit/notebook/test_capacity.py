"""Cores for a load, from what was measured."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mirrorlake.library.capacity_figures import FIGURES, KINDS
from mirrorlake.notebook.capacity import Cost, by_figures, fitted


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


def test_the_widgets_are_the_load() -> None:
    """Positions of groups cost what the figures say, in each kind of lake."""
    given = {"records_per_second": 0.0, "partitions": 0.0, "utilisation": 1.0}

    def at_rest(positions: float) -> list[float]:
        widgets = {**given, "group_positions": positions}
        nb: Any = SimpleNamespace(number=lambda name, default: widgets.get(name, default))
        return list(by_figures(nb)["cores_at_rest"].to_pylist())

    more = [a - b for a, b in zip(at_rest(100_000), at_rest(0), strict=True)]
    each = FIGURES["positions_cores"].values
    assert more == pytest.approx([100 * each[kind] for kind in KINDS], abs=0.02)


@example([(2.2e-313, 1.0)])
@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 64)), min_size=1, max_size=50))
def test_it_is_never_negative(points: list[tuple[float, float]]) -> None:
    cost = fitted(points)
    if cost is not None:
        assert cost.idle_cores >= 0 and cost.cpu_seconds_per_million >= 0
        assert cost.cores(0) <= cost.cores(1000)
