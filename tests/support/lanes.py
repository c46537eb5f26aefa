"""Tests of the laws run on both lanes: natively, and (slow ones, `make test-all`) with records as Python's objects."""

import pytest

#: What the fixtures `lane` (conftest.py) and `replicated` (test_fidelity.py) may be.
LANES = ("native", pytest.param("python", marks=pytest.mark.slow))
#: For `pytestmark`: each test of a module on both lanes.
BOTH_LANES = [pytest.mark.usefixtures("lane"), pytest.mark.parametrize("lane", LANES, indirect=True)]
