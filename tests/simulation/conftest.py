"""What schedules that are written out by hand begin with."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.simulation.schedule import Schedule


@pytest.fixture
def schedule() -> Iterator[Schedule]:
    machine = Schedule()
    machine.begin(number=0)
    with closing(machine):
        yield machine
