"""Tests of the laws run on both lanes: natively, and (slow ones, `make test-all`) with records as
Python's objects. Who answers what is asked of a lake is DuckDB, and (slow ones) Spark."""

import pytest

#: What the fixtures `lane` (conftest.py) and `replicated` (test_fidelity.py) may be.
LANES = ("native", pytest.param("python", marks=pytest.mark.slow))
#: For `pytestmark`: each test of a module on both lanes.
BOTH_LANES = [
    pytest.mark.usefixtures("lane"),
    pytest.mark.parametrize("lane", LANES, indirect=True),
]
#: For `pytestmark`: who answers in each test of a module that asks `now_of` (lake_rows.py).
BOTH_ENGINES = [
    pytest.mark.usefixtures("engine"),
    pytest.mark.parametrize(
        "engine", ["duckdb", pytest.param("spark", marks=pytest.mark.slow)], indirect=True
    ),
]
