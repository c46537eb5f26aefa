"""A lake goes on as it was some time ago, as from a backup, while the clusters did not: what it
lacks is landed again, where the target has it is found by its content, and none is sent twice."""

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from hypothesis.stateful import initialize, rule

from tests.simulation.kafka import ODD
from tests.simulation.machine import NUMBER, Dice, Replication
from tests.simulation.run import simulate
from tests.simulation.schedule import Schedule
from tests.simulation.world import TOPICS, World

SCHEDULES, FEWER = 80, 30
#: What of a world is in its lake.
IN_THE_LAKE = ("stage", "tables", "generations", "branches", "begun", "incidents", "parked")
IN_THE_LAKE += ("forgotten", "noted", "samples", "epochs", "seen", "marks")


def copied(world: World) -> Mapping[str, Any]:
    """A lake as it is now. What stands for the process itself is not copied."""
    kept = {id(world.steps): world.steps}
    return deepcopy({name: getattr(world, name) for name in IN_THE_LAKE}, kept)


def put_back(world: World, copy: Mapping[str, Any]) -> None:
    """The lake is as it was when it was copied."""
    world.later.clear()
    world.__dict__.update(deepcopy(copy, {id(world.steps): world.steps}))
    world.put_back = True


def wrong(world: World) -> list[str]:
    """Rows of the map that say what is not so."""
    problems = []
    for key, pairs in world._mapped()[0].items():
        if key[0] not in world.selected and world._is_lost(key[0]):
            continue  # nobody polls
        log = world.target.log(*key)
        entries = [] if log is None else log.entries
        for _, offset, at in pairs:
            value = (entries[at].value if at < len(entries) else None) or b"nothing"
            if not value.endswith(b"/%d" % offset):
                problems.append(f"{key}: offset {offset} is not at {at}, there is {value!r}")
    return problems


class OlderLake(Replication):
    """Schedules in which the lake is copied, and a copy takes its place."""

    def __init__(self) -> None:
        super().__init__()
        self._copy: Mapping[str, Any] | None = None

    @rule(number=NUMBER)
    def happens(self, number: int) -> None:
        """The lake is copied; later it is the copy; else what happens to any."""
        dice = Dice(number)
        if dice.upto(2):
            (self._back_up if self._copy is None else self._older_lake)(dice)
        else:
            getattr(self, f"_{dice.among(self._events)}")(dice)

    @rule(number=NUMBER)
    def catches_up(self, number: int) -> None:
        """Batches are produced, and the map has them, before the next one."""
        dice = Dice(number)
        for _ in range(1 + dice.upto(2)):
            refused = dice.among((b"", b"", b"", ODD))
            self.world.write(dice.among(TOPICS), dice.upto(1), 1 + dice.upto(5), refused=refused)
            for name in ("land", "produce", "append_map"):
                self._do(name, 0, None)

    def _back_up(self, _: Dice) -> None:
        self._say("the lake is copied")
        self._copy = copied(self.world)

    def _older_lake(self, _: Dice) -> None:
        if self._copy is not None:
            self._say("the lake is as it was")
            self._die()
            put_back(self.world, self._copy)
            self._die()

    def check(self) -> None:
        super().check()
        problems = wrong(self.world)
        assert not problems, "; ".join(problems)


@pytest.mark.parametrize(
    "schedules",
    [
        FEWER,
        pytest.param(
            SCHEDULES,
            marks=pytest.mark.wide(
                "test_a_lake_that_is_older_than_the_target_maps_nothing_wrong_and_sends_nothing_twice"
            ),
        ),
    ],
)
def test_a_lake_that_is_older_than_the_target_maps_nothing_wrong_and_sends_nothing_twice(
    schedules: int,
) -> None:
    simulate(schedules, 7, frozenset(), kind=OlderLake)


#: What says that a lake does not know what the target has of a topic: an operator decides.
TOLD = ("target_recreated", "map_unknown", "map_behind")


def untold(world: World) -> list[str]:
    """What is wrong about topics of which nothing was told."""
    told = {item.topic for item in world.incidents if item.kind in TOLD}
    return [
        problem
        for problem in World.violations(world)
        if not (world.put_back and any(f"('{topic}', " in problem for topic in told))
    ]


class NewerGenerations(OlderLake):
    """Schedules in which topics are made again, at the source or at the target, between the copy
    and the day on which it takes the lake's place: the target's metadata names generations that it
    does not know. The copy gives the same number to the next topic of a name that it meets.
    """

    def __init__(self) -> None:
        super().__init__()
        self._left = ["t0", "t1"] * 2
        self._events = [name for name in self._events if name != "make_again"]

    @initialize(number=NUMBER)
    def begin(self, number: int) -> None:
        super().begin(number)
        for topic in TOPICS[:2]:
            self.world.write(topic, 0, 3)
        for name in ("land", "land", "produce", "produce", "append_map"):
            self._do(name, 0, None)
        self._back_up(Dice(0))
        self.world.violations = partial(untold, self.world)  # type: ignore[method-assign]

    @rule(number=NUMBER)
    def is_made_again(self, number: int) -> None:
        """A topic is made again, an operator goes on, and batches are produced, of which the map
        may have all; then the lake is as it was."""
        dice = Dice(number)
        if self._left and dice.upto(2):
            topic = self._left.pop(dice.upto(len(self._left) - 1))
            self._say(f"{topic} is made again")
            self.world.source.delete(topic)
            self.world.create(topic, 2)
            self.world.unseen = True
        else:
            topic = dice.among(TOPICS[:2])
            self._say(f"{topic} of the target is lost")
            self.world.lose_target(topic, bool(dice.upto(1)))
        self._goes_on(dice, topic)
        if dice.upto(1):
            self._older_lake(dice)
            self._goes_on(dice, topic)

    def _back_up(self, dice: Dice) -> None:
        """Once: what an operator decides in a lake that is put back again is forgotten with it."""
        if not self.world.put_back:
            super()._back_up(dice)

    def _older_lake(self, dice: Dice) -> None:
        super()._older_lake(dice)
        self._copy = None

    def _goes_on(self, dice: Dice, topic: str) -> None:
        for _ in range(1 + dice.upto(2)):
            self.world.write(topic, dice.upto(1), dice.upto(5))
            for name in ("land", "produce"):
                self._do(name, 0, None)
            self._resolve()
        for name in ("land", "produce", "append_map")[: 2 + dice.upto(1)]:
            self._do(name, 0, None)


@pytest.mark.parametrize("knew", [True, False])
def test_what_a_target_took_of_another_generation_of_the_same_number_is_told(
    schedule: Schedule, knew: bool
) -> None:
    """A lake that is put back gives the next topic of a name the number which it had given another
    one since; what the target took of that one is not taken for records of this one."""
    world = schedule.world
    copy = copied(world)
    world.write("t0", 0, 3)
    schedule.do("land", "produce", "append_map")
    if knew:
        copy = copied(world)
        _is_made_again(schedule)
    schedule._die()
    put_back(world, copy)
    schedule._die()
    _is_made_again(schedule)
    assert [item.kind for item in world.open_incidents()] == ["map_unknown"]
    schedule.check()


def _is_made_again(schedule: Schedule) -> None:
    world = schedule.world
    world.source.delete("t0")
    world.create("t0", 2)
    world.unseen = True
    world.write("t0", 0, 5)
    schedule.do("land")
    schedule._resolve()
    schedule.do("land", "produce", "produce", "produce", "append_map")


@pytest.mark.parametrize(
    "schedules",
    [
        FEWER // 4,
        pytest.param(
            SCHEDULES // 4,
            marks=pytest.mark.wide(
                "test_a_lake_that_is_older_than_generations_at_the_target_maps_nothing_wrong"
            ),
        ),
    ],
)
def test_a_lake_that_is_older_than_generations_at_the_target_maps_nothing_wrong(
    schedules: int,
) -> None:
    simulate(schedules, 9, frozenset(), kind=NewerGenerations)
