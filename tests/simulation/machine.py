"""The schedules: what may happen to a replicator, in any order, and what must be true in the end.

Each step is one number, which `Dice` takes apart: so a schedule costs few draws, any mix of steps
is as likely as it is written here, and smaller numbers are simpler steps, which is what hypothesis
looks for once it has found a failure.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from mirrorlake.errors import Fenced
from tests.simulation.driver import Driver, install
from tests.simulation.kafka import ODD, OTHERS_FAULTS, TOO_LARGE
from tests.simulation.landing import SessionFailed
from tests.simulation.steps import FULL, KINDS, Death, Fault
from tests.simulation.world import TOPICS, Settings, Suspended, World

ROUNDS = 400
#: What ends a process.
ENDS = (Fenced, SessionFailed)
#: Of integers Hypothesis mostly draws small ones, and constants of the source code: two of three
#: were below 2 ** 16, and faults are what large ones name. Bytes it draws evenly.
NUMBER = st.binary(min_size=9, max_size=9).map(lambda drawn: int.from_bytes(drawn, "little"))
Item = TypeVar("Item")

WORK = ("produce", "land", "produce", "land", "append_map", "produce", "stop")
TRANSACTIONS = ("plain", "plain", "committed", "aborted", "plain", "committed", "plain", "open")
#: How often each happens, among what is rare.
EVENTS = {
    "killed": 4,
    "come_back_otherwise": 4,
    "select": 3,
    "pause": 2,
    "resolve": 2,
    "create": 2,
    "make_again": 1,
    "stop": 2,
    "lose_target": 2,
    "rewind_target": 2,
    "trim_target": 2,
    "compact": 2,
    "truncate": 1,
    "rewind": 2,
    "optimize": 2,
    "vacuum": 2,
    "clean_log": 1,
    "move_lake": 1,
    "expire": 1,
    "zombies": 2,
    "suspend": 2,
    "step_clock": 2,
    "check": 1,
    "write_refused": 4,
    "deny": 3,
    "answer_otherwise": 3,
    "forget_producers": 3,
    "forget": 3,
}
#: In which one of the next steps a fault strikes.
STRIKES = (0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 16, 20)
#: In one of how many pieces of work the lake's disk is full.
FULL_EVERY = 8


class Dice:
    """Takes a number apart into choices."""

    def __init__(self, number: int) -> None:
        self._number = number

    def among(self, items: Sequence[Item]) -> Item:
        """One of some items; the first one for small numbers."""
        self._number, at = divmod(self._number, len(items))
        return items[at]

    def some(self, items: Sequence[Item]) -> set[Item]:
        """Any of some items."""
        return {item for item in items if self.among((False, True))}

    def upto(self, most: int) -> int:
        """A number from 0 to `most`."""
        return self.among(range(most + 1))


class Replication(RuleBasedStateMachine):
    """One replicator between two clusters, through everything that a schedule holds."""

    #: Events and kinds of faults that are left out, and settings that do not vary.
    without: frozenset[str] = frozenset()
    fixed: dict[str, Any] = {}

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self._events = [
            name for name, times in EVENTS.items() for _ in range(times) if name not in self.without
        ]
        self._kinds = [name for name in KINDS if name not in self.without]

    @initialize(number=NUMBER)
    def begin(self, number: int) -> None:
        dice = Dice(number)
        settings = Settings(
            max_records=dice.among((100, 2, 5, 3)),
            land_records=dice.among((100, 3, 100)),
            land_files=dice.among((1, 2)),
            produce_tasks=dice.among((1, 2, 3)),
            transaction_records=dice.among((600_000, 2)),
            metadata_bytes=dice.among((4_000, 4_000, 60)),
            catalog=dice.among((False, False, True)),
            parks=dice.among((True, False)),
            few=dice.among((100, 3, 1, 0)),
            waits=True,
        )
        self.world = World(Settings(**{**vars(settings), **self.fixed}))
        self._say(f"{self.world.settings}")
        self.suspended: list[tuple[Driver, Suspended]] = []
        with ExitStack() as stack:  # what fails here is undone here
            install(self.world, stack)
            self.driver = Driver(self.world)
            self.world.create("t0", 2)
            self.world.create("t1", 1)
            self.world.create("t2", 1)
            self._stack = stack.pop_all()

    @rule(number=NUMBER)
    def goes_on(self, number: int) -> None:
        """Records come, and the replicator works; in one of its tasks a fault may strike."""
        dice = Dice(number)
        for _ in range(1 + dice.upto(2)):
            write = (dice.among(TOPICS), dice.upto(1), 1 + dice.upto(5), dice.among(TRANSACTIONS))
            self._say(f"write{write}")
            self.world.write(*write)
        self._works(dice)

    @rule(number=NUMBER)
    def works(self, number: int) -> None:
        """The replicator works; in one of its tasks a fault may strike."""
        self._works(Dice(number))

    @rule(number=NUMBER)
    def happens(self, number: int) -> None:
        """Something rarer happens."""
        dice = Dice(number)
        name = dice.among(self._events)
        getattr(self, f"_{name}")(dice)

    def _works(self, dice: Dice) -> None:
        strikes = dice.among(STRIKES)
        fault = Fault(dice.among(self._kinds), strikes) if strikes and self._kinds else None
        work = [dice.among(WORK) for _ in range(1 + dice.upto(4))]
        at = dice.upto(len(work) - 1)
        salt = dice.among(range(1 << 12))
        for number, name in enumerate(work):
            self._do(name, salt + number, fault if number == at else None)

    def _killed(self, _: Dice) -> None:
        self._say("killed")
        self._die()

    def _write_refused(self, dice: Dice) -> None:
        """Records come, of which the target refuses the last one, or its batch."""
        write = (
            dice.among(TOPICS),
            dice.upto(1),
            1 + dice.upto(3),
            dice.among(("plain", "committed")),
        )
        refused = dice.among((TOO_LARGE, ODD))
        self._say(f"write {refused!r}{write}")
        self.world.write(*write, refused=refused)

    def _deny(self, dice: Dice) -> None:
        """The right to write some topics is revoked, and given back for the others, while records
        come."""
        self.world.target.denied = dice.some(TOPICS)
        self._say(f"denied {sorted(self.world.target.denied)}")
        for topic in TOPICS:
            self.world.write(topic, dice.upto(1), 2)
        self._do("land", 0, None)
        self._works(dice)

    def _answer_otherwise(self, dice: Dice) -> None:
        """Records come, and the target answers their batches with errors that are no fault of
        theirs: these are sent again, none is parked or skipped, and none is there twice."""
        answers = [dice.among(OTHERS_FAULTS)] * (1 + dice.upto(15))
        self._say(f"answers {answers}")
        self.world.write(dice.among(TOPICS), dice.upto(1), 1 + dice.upto(4))
        self._do("land", 0, None)
        self.world.target.answers = answers
        self._works(dice)

    def _forget_producers(self, dice: Dice) -> None:
        """The flow was idle for long, and goes on."""
        self._say("producers are forgotten")
        self.world.target.forget_producers()
        self.world.write(dice.among(TOPICS), 0, 2)
        for name in ("land", "produce"):
            self._do(name, 0, None)

    def _forget(self, dice: Dice) -> None:
        """Staged records are deleted by a predicate; the process that does it may die in
        between."""
        topic, salt, finishes = dice.among(TOPICS), dice.upto(99), dice.among((True, True, False))
        if finishes and dice.among((False, True)):
            self._die()
        count = self.world.forget(topic, salt, self.driver.still_needed(topic), finishes)
        self._say(f"forget {count} records of {topic}, finished: {finishes}")

    def _come_back_otherwise(self, dice: Dice) -> None:
        self._die()
        changed = {
            "max_records": dice.among((100, 2, 5)),
            "produce_tasks": 1 + dice.upto(2),
            "reader": dice.among(("auto", "rows")),
            "parks": dice.among((True, False)),
        }
        self._say(f"killed; comes back with {changed}")
        for name, value in changed.items():
            if name not in self.fixed:
                setattr(self.world.settings, name, value)

    def _select(self, dice: Dice) -> None:
        self.world.selected = dice.some(TOPICS)
        self._say(f"selected {sorted(self.world.selected)}")

    def _pause(self, dice: Dice) -> None:
        self.world.paused = dice.some(TOPICS)
        self._say(f"paused {sorted(self.world.paused)}")

    def _create(self, dice: Dice) -> None:
        self._say("create")
        self.world.create(dice.among(TOPICS), 1 + dice.upto(1))

    def _make_again(self, dice: Dice) -> None:
        topic = dice.among(TOPICS)
        self._say(f"make again {topic}")
        if topic in self.world.source.topics:
            self.world.source.delete(topic)
            self.world.create(topic, 1 + dice.upto(1))
            self.world.unseen = True

    def _stop(self, dice: Dice) -> None:
        """An operator stops a partition that waits, as it is now; what takes its topic's name goes
        on."""
        held = [item for item in self.world.open_incidents() if item.kind == "target_refused"]
        for item in held[: 1 + dice.upto(1)]:
            item.resolution = "stop"
            self._say(f"stop {item.place}")

    def _lose_target(self, dice: Dice) -> None:
        place = (dice.among(TOPICS), dice.among((False, True)))
        self._say(f"lose target{place}")
        self.world.lose_target(*place)

    def _rewind_target(self, dice: Dice) -> None:
        place = (dice.among(TOPICS), dice.upto(1), 1 + dice.upto(7))
        self._say(f"rewind target{place}")
        self.world.rewind_target(*place)

    def _trim_target(self, dice: Dice) -> None:
        place = (dice.among(TOPICS), dice.upto(1), 1 + dice.upto(7))
        self._say(f"trim target{place}")
        self.world.trim_target(*place)

    def _compact(self, dice: Dice) -> None:
        topic = dice.among(TOPICS)
        self._say(f"compact {topic}")
        self.world.compact(topic, dice.upto(99))

    def _truncate(self, dice: Dice) -> None:
        place = (dice.among(TOPICS), dice.upto(1), 1 + dice.upto(7))
        self._say(f"truncate{place}")
        self.world.truncate(*place)

    def _rewind(self, dice: Dice) -> None:
        place = (dice.among(TOPICS), dice.upto(1), 1 + dice.upto(7), dice.upto(3))
        self._say(f"rewind{place}")
        self.world.rewind(*place)

    def _optimize(self, dice: Dice) -> None:
        self._say("optimize")
        self.world.stage.optimize(4 - dice.upto(3), dice.among((False, True)))

    def _vacuum(self, _: Dice) -> None:
        self._say("vacuum")
        self.world.stage.vacuum()

    def _clean_log(self, _: Dice) -> None:
        self._say("clean log")
        self.world.stage.clean_log()

    def _move_lake(self, _: Dice) -> None:
        """The lake is copied to another place, or `lake.checkpoints` changed: its identity is in
        its tables."""
        self._die()
        self._say("the lake is moved")

    def _expire(self, _: Dice) -> None:
        self._say("positions expire")
        self.world.target.expire()

    def _zombies(self, _: Dice) -> None:
        self._say("zombies go on")
        self._wake()

    def _suspend(self, _: Dice | None = None) -> None:
        """The process stands still, and another one takes over."""
        self._say("suspended")
        self.suspended.append((self.driver, self.world.suspend()))
        self.driver = Driver(self.world)

    def _wake(self) -> None:
        self.world.wake()
        while self.suspended:
            driver, kept = self.suspended.pop(0)
            self._say("a suspended process goes on")
            self.world.resumed(kept, driver.come_back)
            driver.die()

    def _step_clock(self, dice: Dice) -> None:
        self.world.clock_ahead += dice.among((-3_600_000, 3_600_000, -5, 100_000_000))
        self._say(f"the clock is {self.world.clock_ahead} ms ahead")

    def _check(self, _: Dice) -> None:
        self.check()

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        try:
            self.check()
            self.world.paused, self.world.selected = set(), set(TOPICS)
            self.check()
        except AssertionError:
            note("\n".join(self.world.steps.taken))
            raise
        finally:
            self.close()

    def close(self) -> None:
        """End what is left of the schedule, and what stands in for the real things, whatever
        fails."""
        with self._stack:
            self.world.steps.bury()
            for driver in (self.driver, *(driver for driver, _ in self.suspended)):
                driver.die()

    # How

    def _say(self, text: str) -> None:
        self.world.steps.taken.append(text)

    def _do(self, name: str, salt: int, fault: Fault | None) -> None:
        steps = self.world.steps
        self.world.salt = salt
        steps.fault = self._full_disk(salt) if fault is None else Fault(fault.kind, fault.steps)
        self._say(name)
        try:
            getattr(self.driver, name)()
        except Death:
            self._die()
        except ENDS as error:  # it ends, and is started again
            self._say(f"  {type(error).__name__}: {str(error)[:150]}")
            self._die()
        except Exception as error:  # noqa: BLE001 - the replicator goes on after failures
            self._say(f"  {type(error).__name__}: {str(error)[:150]}")
        steps.fault = None

    def _full_disk(self, salt: int) -> Fault | None:
        """Of the pieces of work in which nothing else strikes, some find the lake's disk full from
        a step on."""
        return (
            Fault(FULL, 1 + salt // FULL_EVERY % 8)
            if salt % FULL_EVERY == 5 and FULL not in self.without
            else None
        )

    def _die(self) -> None:
        self.driver.die()
        self.world.die()
        self.driver = Driver(self.world)

    def _resolve(self, _: Dice | None = None) -> None:
        """An operator decides, always to go on."""
        world = self.world
        for item in world.open_incidents():
            if item.kind == "topic_recreated":
                topic = world.source.topics.get(str(item.topic))
                if topic is None:
                    continue
                if world.generation_of(topic.topic_id) is None:
                    newest = max(
                        generation[1]
                        for generation in world.generations
                        if generation[0] == item.topic
                    )
                    world.begin_generation(topic.name, newest + 1, topic.topic_id)
                item.resolution = "new-generation"
            elif item.kind == "source_rewound":
                world.begin_branch((str(item.topic), item.partition or 0), item.first or 0)
                item.resolution = "new-generation"
            elif item.kind == "target_recreated":
                item.resolution = ("again", "continue")[item.at % 2]
            elif item.kind == "target_lost":
                over = item.target_generation != world.target_generation(str(item.topic))
                if over or not self.driver.has_lost(item):
                    item.resolution = ("produce-again", "accept")[item.at % 2]
            elif item.kind in ("map_behind", "map_unknown"):
                item.resolution = "produce-again"
            elif item.kind == "position_lost":
                # The operator looks at the target: is anything there that the map does not have?
                if not world.unmapped_at_target(str(item.topic), item.partition or 0):
                    item.resolution = "foreign"
            else:
                refused = ("skip", "park")[item.at % 2]
                item.resolution = {"source_truncated": "continue", "target_refused": refused}.get(
                    item.kind, "over"
                )

    def check(self) -> None:
        """Recover, catch up, and see that nothing is wrong."""
        world = self.world
        self._say("check")
        world.salt = 0
        world.steps.fault = None
        world.target.denied.clear()
        world.target.answers.clear()
        self._wake()
        world.end_transactions("committed")
        idle = failures = 0
        work: tuple[Callable[[], object], ...] = (
            lambda: self.driver.land(),
            lambda: self.driver.produce(),
            lambda: self.driver.append_map(),
            lambda: self.driver.drain(),
        )
        for _ in range(ROUNDS):
            self._resolve()
            world.target.time_out()
            problem: Exception | None = None
            moved = False
            for task in work:
                try:
                    moved = bool(task()) or moved
                except ENDS as error:
                    problem = error
                    self._die()
                except Exception as error:  # noqa: BLE001 - tried again, as the replicator does
                    problem = error
            failures = failures + 1 if problem is not None else 0
            assert failures < 6, f"it stopped for good: {problem!r}"
            if not moved and problem is None:
                self.driver.report_behind()
            idle = idle + 1 if not moved and problem is None and not world.undecided() else 0
            if idle == 2:
                break
        else:
            raise AssertionError("it never comes to an end")
        wrong = world.violations()
        assert not wrong, "; ".join(wrong)
