"""A lake goes on as it was some time ago, as from a backup, while the clusters did not: what it
lacks is landed again, where the target has it is found by its content, and none is sent twice."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from hypothesis.stateful import rule

from tests.simulation.kafka import ODD
from tests.simulation.machine import NUMBER, Dice, Replication
from tests.simulation.run import simulate
from tests.simulation.world import TOPICS, World

SCHEDULES = 80
#: What of a world is in its lake.
IN_THE_LAKE = ("stage", "tables", "generations", "branches", "begun", "incidents", "parked")
IN_THE_LAKE += ("forgotten", "noted", "samples", "epochs", "seen", "marks")


def copied(world: World) -> Mapping[str, Any]:
    """A lake as it is now. What stands for the process itself is not copied."""
    kept = {id(world.steps): world.steps}
    return deepcopy({name: getattr(world, name) for name in IN_THE_LAKE}, kept)


def wrong(world: World) -> list[str]:
    """Rows of the map that say what is not so."""
    problems = []
    for key, pairs in world._mapped()[0].items():
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
            self.world.later.clear()
            self.world.__dict__.update(
                deepcopy(self._copy, {id(self.world.steps): self.world.steps})
            )
            self.world.put_back = True
            self._die()

    def check(self) -> None:
        super().check()
        problems = wrong(self.world)
        assert not problems, "; ".join(problems)


def test_a_lake_that_is_older_than_the_target_maps_nothing_wrong_and_sends_nothing_twice() -> None:
    simulate(SCHEDULES, 7, frozenset(), kind=OlderLake)
