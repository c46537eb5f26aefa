"""Figures of capacity by what the benchmark measures: no clusters."""

from io import StringIO

import pytest
from rich.console import Console

from mirrorlake.devtools.bench.latency import Pace
from mirrorlake.devtools.bench.scale import Size
from mirrorlake.library.capacity_figures import FIGURES
from tests.bench.capacity import Backlog, Capacity, Seen, figures_of, split_cost
from tests.bench.tables import tables

MEASURED = Capacity(
    one=Seen(0.03, 700, 0.28),
    two=Seen(0.05, 760, 0.42),
    many=Seen(0.07, 820),
    groups=Seen(0.12, 830),
    small=Backlog(120, 2.0, 2_000),
    large=Backlog(1_020, 6.5, 2_200),
)
PACE, SIZE = Pace(records_per_second=1_000, record_bytes=200), Size(records=1)


def test_figures_are_those_that_capacity_is_calculated_from() -> None:
    found = figures_of(MEASURED, PACE, SIZE)
    assert found.keys() == FIGURES.keys()
    assert found["idle_cores"] == 0.03 and found["flow_cores"] == 0.02
    assert found["partitions_cores"] == pytest.approx(0.02)  # 0.04 for 2,000
    assert found["positions_cores"] == pytest.approx(0.01)  # 0.05 for 5,000
    assert found["batches_cores"] == pytest.approx(0.25 - (1.4 + 1.0) / 1e3, abs=1e-3)
    assert found["flow_batches_cores"] == pytest.approx(0.12)
    assert (found["record_cpu"], found["gigabyte_cpu"]) == pytest.approx((1.4, 5.0))
    assert (found["flow_mib"], found["partitions_mib"]) == (60, 65)
    assert found["backlog_mib"] == 1_500


def test_noise_is_no_figure() -> None:
    quiet = Capacity(
        MEASURED.one,
        Seen(0.02, 600, 0.2),
        Seen(0.01, 600),
        Seen(0.0, 600),
        small=Backlog(120, 2.0, 600),
        large=Backlog(1_020, 1.0, 600),
    )
    found = figures_of(quiet, PACE, SIZE)
    assert all(value >= 0 for value in found.values())
    assert (found["record_cpu"], found["gigabyte_cpu"]) == (2.0, 0.0)


def test_a_line_through_two_sizes() -> None:
    small, large = (Backlog(size, 1.5 + size * 0.004, 0) for size in (100, 1_000))
    assert split_cost(small, large) == pytest.approx((1.5, 4.0))


def test_its_table_has_each_figure_beside_the_one_in_use() -> None:
    document = {"capacity": {"figures": figures_of(MEASURED, PACE, SIZE)}}
    console = Console(file=(out := StringIO()), width=200)
    console.print(*tables(document))
    assert all(figure.what in out.getvalue() for figure in FIGURES.values())
