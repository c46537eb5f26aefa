"""What stands in for the real things is gone with a schedule, also where that fails: tests of the
same process get the real ones."""

from contextlib import closing

import pytest

from mirrorlake.produce import task, writer
from tests.simulation.driver import Driver
from tests.simulation.schedule import Schedule
from tests.simulation.world import World

REAL = writer.new_producer, task._writers


class Planned(Exception):
    """What the test lets happen."""


def fails(*_: object) -> None:
    raise Planned


def test_a_schedule_that_fails_in_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "create", fails)
    with pytest.raises(Planned):
        Schedule().begin(number=0)
    assert (writer.new_producer, task._writers) == REAL


def test_a_schedule_that_fails_in_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = Schedule()
    schedule.begin(number=0)
    assert (writer.new_producer, task._writers) != REAL
    monkeypatch.setattr(Driver, "die", fails)
    with pytest.raises(Planned), closing(schedule):
        pass
    assert (writer.new_producer, task._writers) == REAL
