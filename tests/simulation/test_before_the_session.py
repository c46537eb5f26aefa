"""What a process lands while its session starts, with everything that may happen meanwhile: a
kill, a take-over, topics made again, logs that go back, an edited selection, records deleted from
the stage, a session that cannot start."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis.stateful import rule

from tests.simulation.driver import Driver
from tests.simulation.machine import NUMBER, TRANSACTIONS, Dice, Replication
from tests.simulation.run import simulate
from tests.simulation.schedule import Schedule
from tests.simulation.steps import Fault
from tests.simulation.world import TOPICS

SCHEDULES = 25
MEANWHILE = ("make_again", "rewind", "rewind", "truncate", "compact", "select", "create", "resolve")
MEANWHILE += ("forget", "optimize", "vacuum", "killed", "killed", "overtaken", "overtaken")
MEANWHILE += ("suspend", "zombies", "check")


def waits_for_session(driver: Driver) -> None:
    """Have a process that has just begun wait for its session."""
    if driver._lander._turn is None:
        driver._lander.lake.session.left = 3


class BeforeTheSession(Replication):
    """Processes of which each waits for its session, unless it has come by then."""

    fixed = {"catalog": False}

    @rule(number=NUMBER)
    def happens(self, number: int) -> None:
        """A process begins, records come, and before its session does, something happens."""
        dice = Dice(number)
        if dice.upto(1):
            self._say("another process begins")
            self._die()
        self._waits_for_session()
        for _ in range(1 + dice.upto(1)):
            for _ in range(1 + dice.upto(1)):
                write = (dice.among(TOPICS), dice.upto(1), 1 + dice.upto(5))
                self.world.write(*write, dice.among(TRANSACTIONS))
            self._do("land", dice.among(range(1 << 6)), None)
            getattr(self, f"_{dice.among(MEANWHILE)}")(dice)
        self._works(dice)

    def _overtaken(self, dice: Dice) -> None:
        """The process stands still where it is, and goes on behind what another one has done."""
        self._suspend()
        self._works(dice)
        self._wake()

    def _waits_for_session(self) -> None:
        waits_for_session(self.driver)


@pytest.fixture
def schedule() -> Iterator[Schedule]:
    """A process whose session is not there yet."""
    with closing(Schedule()) as machine:
        machine.begin(number=0)
        machine._die()
        waits_for_session(machine.driver)
        yield machine


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_process_landed_before_its_session_came_is_staged_once(
    schedule: Schedule, fails: bool
) -> None:
    world, driver = schedule.world, schedule.driver
    world.settings.few = 1
    driver._lander.lake.session.fails = fails
    world.write("t0", 0, 9)
    schedule.do("land")
    assert len(list(world.stage.rows())) == 1
    schedule.do("land", "land", "land", "land")
    assert (schedule.driver is not driver) == fails, "a session that cannot start ends it"
    schedule.do("land", "land")
    assert sorted(row.offset for row in world.stage.rows()) == list(range(9))
    schedule.check()


@pytest.mark.parametrize("steps", (1, 6))
def test_what_was_covered_of_a_topic_says_nothing_of_the_one_that_took_its_name(
    schedule: Schedule, steps: int
) -> None:
    """What the new one loses behind records that are staged, and were not covered by a query that
    came to its end, is told."""
    world = schedule.world
    world.write("t0", 0, 20)
    schedule.do("land", "land", "land", "land")
    assert schedule.driver._lander._worker.covered()["t0", 0] == 20
    world.source.delete("t0")
    world.create("t0", 2)
    world.unseen = True
    schedule.do("land", "land")
    schedule._resolve()
    schedule.do("land", "land")
    world.write("t0", 0, 3)
    schedule._do("land", 0, Fault("error", steps))
    world.write("t0", 0, 12)
    world.truncate("t0", 0, 8)
    schedule.check()


def test_no_schedule_breaks_a_law_while_a_session_starts() -> None:
    simulate(SCHEDULES, 5, frozenset(), kind=BeforeTheSession)
