"""Two processes of one lake: one stands still at any step of its work, another one takes over, and
the first one goes on in the middle of what it did.

Nothing is lost, staged or sent twice, and no row of the map is wrong, whatever each of them
believes of its lease; who was overtaken ends with an error, or stands by.
"""

from contextlib import closing
from functools import partial
from typing import Any

import pytest
from hypothesis.stateful import rule

from mirrorlake.produce import task
from tests.simulation.driver import Driver
from tests.simulation.machine import NUMBER, TRANSACTIONS, Dice, Replication
from tests.simulation.run import simulate
from tests.simulation.steps import STILL, Fault, Parkable
from tests.simulation.world import TOPICS, Suspended

SCHEDULES = 25
#: What may happen while one process stands still: no VACUUM, which keeps for long what no version
#: needs, and so what one that stands still is about to commit.
MEANWHILE = ("resolve", "truncate", "compact", "optimize", "forget", "rewind", "killed")
MEANWHILE += ("make_again", "select", "come_back_otherwise", "check", "lose_target", "expire")
#: At which of its next steps a process stands still.
STEPS = range(1, 30)


class TwoProcesses(Replication):
    """Schedules in which a process stands still in the middle of its work."""

    def __init__(self) -> None:
        super().__init__()
        self._still: list[tuple[Driver, Suspended, Parkable, tuple[Any, str]]] = []

    @rule(number=NUMBER)
    def happens(self, number: int) -> None:
        """A process stands still; another one works; it goes on."""
        dice = Dice(number)
        self.world.settings.stands_by = dice.among((False, True))
        for _ in range(dice.upto(2)):
            write = (dice.among(TOPICS), dice.upto(1), 1 + dice.upto(5), dice.among(TRANSACTIONS))
            self.world.write(*write)
        if dice.among((False, False, True)):
            self._die()
        if dice.among((True, False)):
            self._do("land", dice.among(range(1 << 12)), None)
        name, salt = dice.among(("land", "produce")), dice.among(range(1 << 12))
        self._stand_still(name, salt, dice.among(STEPS))
        self.world.write(dice.among(TOPICS), dice.upto(1), dice.upto(3))
        if dice.among((True, False)):
            getattr(self, f"_{dice.among(MEANWHILE)}")(dice)
        self._works(dice)
        if dice.among((True, True, False)):
            self._wake()

    def _stand_still(self, name: str, salt: int, steps: int) -> None:
        """Do a piece of work, in a step of which the process stands still, if it has so many."""
        world = self.world
        world.salt = salt
        world.steps.fault = Fault(STILL, steps)
        self._say(f"{name}, standing still")
        call = world.steps.process = Parkable(getattr(self.driver, name))
        call.start()
        world.steps.fault = world.steps.process = None
        if not call.parked:
            self._answer(call)
            return
        worker = (task._writers, task.WORKER)
        self._still.append((self.driver, world.suspend(), call, worker))
        self.driver = Driver(world)

    def _wake(self) -> None:
        super()._wake()
        while self._still:
            driver, kept, call, worker = self._still.pop(0)
            self._say("a process that stood still goes on")

            self.world.resumed(kept, partial(self._goes_on, driver, call, worker))
            driver.die()

    def _goes_on(self, driver: Driver, call: Parkable, worker: tuple[Any, str]) -> None:
        task._writers, task.WORKER = worker
        call.resume()
        self._answer(call)
        driver.come_back()

    def _answer(self, call: Parkable) -> None:
        try:
            call.answer()
        except Exception as error:  # noqa: BLE001 - the replicator goes on after failures
            self._say(f"  {type(error).__name__}: {str(error)[:150]}")

    def close(self) -> None:
        try:
            for driver, _, call, _ in self._still:
                call.bury()
                driver.die()
        finally:
            super().close()


@pytest.mark.parametrize("steps", range(1, 9))
@pytest.mark.parametrize("few", [100, 0], ids=["itself", "by a session"])
def test_what_another_process_has_staged_is_staged_by_no_other_one(few: int, steps: int) -> None:
    """Wherever it stands still between what it asks first and its last word."""
    with closing(TwoProcesses()) as schedule:
        schedule.begin(number=0)
        world = schedule.world
        world.settings.few = few
        world.write("t0", 0, 3)
        schedule._die()
        schedule.driver._lander.lake.session.left = 3 if few else 0
        schedule._stand_still("land", 0, steps)
        world.write("t0", 0, 4)
        for _ in range(4):
            schedule._do("land", 0, None)
        schedule._wake()
        assert sorted(row.offset for row in world.stage.rows()) == list(range(7))
        assert not world.incidents
        schedule.check()


def test_what_another_process_sends_while_this_one_restores_is_in_the_map() -> None:
    """A batch that was planned to hold all that the target took does not, if another process that
    was not fenced yet has sent more by then: its rows are restored with the next one."""
    with closing(TwoProcesses()) as schedule:
        schedule.begin(number=0)
        world = schedule.world
        for name, value in {"catalog": True, "max_records": 3, "produce_tasks": 1}.items():
            setattr(world.settings, name, value)
        schedule._die()
        for topic, works in (
            ("t1", ("land", "produce")),  # rows of the map wait
            ("t1", ("land", "produce")),
            ("t0", ("land",)),  # which goes first, and fills a batch
            ("t1", ("land",)),
        ):
            world.write(topic, 0, 3)
            for work in works:
                schedule._do(work, 0, None)
        schedule._die()
        schedule._do("produce", 0, None)
        schedule._suspend()
        schedule._do("produce", 0, None)
        schedule._wake()
        for _ in range(3):
            schedule._do("produce", 0, None)
        schedule.check()


def test_no_schedule_of_two_processes_breaks_a_law() -> None:
    simulate(SCHEDULES, 11, frozenset(), kind=TwoProcesses)
