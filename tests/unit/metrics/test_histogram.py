"""Histograms made of what tasks report."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.metrics.histogram import BOUNDS, Histogram, observed, of_records
from mirrorlake.produce.report import LATENCY, _percentiles


def reported(milliseconds: list[int]) -> dict[str, object]:
    return _percentiles("landing", [np.array(milliseconds) * 1_000])


def test_one_record_is_in_its_bucket() -> None:
    late = of_records("landing", reported([700]), 1)
    assert late == observed(0.7)
    assert dict(zip([*BOUNDS, None], late.cumulative(), strict=True))[1.0] == 1
    assert (late.count, late.total) == (1, 0.7)


def test_a_bound_belongs_to_its_bucket() -> None:
    assert of_records("landing", reported([1000, 1000]), 2).cumulative()[BOUNDS.index(1.0)] == 2
    assert observed(1.0).cumulative()[BOUNDS.index(1.0)] == 1


def test_what_no_clock_says_counts_nowhere() -> None:
    row = {f"landing_{name}_ms": None for name in LATENCY}
    assert of_records("landing", row, 5) == Histogram()


def test_a_sum_never_falls() -> None:
    """Prometheus would take it for a new process, and all that was summed before for new."""
    late = of_records("landing", reported([700]), 1)
    ahead = of_records("landing", reported([-5000]), 1)  # by the clock of its producer
    both = late.plus(ahead)
    assert (both.count, both.total) == (2, 0.7) and ahead.counts[0] == 1


@given(st.lists(st.integers(-100, 4_000_000), min_size=1, max_size=300))
def test_it_is_right_at_the_percentiles(milliseconds: list[int]) -> None:
    late = of_records("landing", reported(milliseconds), len(milliseconds))
    assert late.count == len(milliseconds) and min(late.counts) >= 0
    assert abs(late.total * 1_000 - max(0, sum(milliseconds))) < 1
    for bound, below in zip(BOUNDS, late.cumulative(), strict=False):
        exact = sum(value <= bound * 1_000 for value in milliseconds)
        # between two of the percentiles 0, 50, 95, 99 and 100 it is taken to be even
        assert abs(exact - below) <= len(milliseconds) / 2 + 1
        if exact in (0, len(milliseconds)):
            assert below == exact
