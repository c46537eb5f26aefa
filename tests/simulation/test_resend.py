"""A replay, killed at each of its steps in turn: what a predicate picks within bounds is at the
target once, in order, and mapped, whatever is landed and rewritten meanwhile."""

import json
import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest

from mirrorlake.offsets.generations import TargetGeneration
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.produce import task
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.flow import FlowProducer
from mirrorlake.produce.marked import SOURCE_HEADER
from mirrorlake.produce.ports import BatchWay
from mirrorlake.produce.spec import FlowSpec
from mirrorlake.produce.task import ShardJob
from mirrorlake.resend.matches import REPLAY_HEADER
from mirrorlake.resend.sender import BoundedStage
from tests.simulation.driver import Driver, MemoryMap, MemoryStage, MemoryWorkers, Shards, install
from tests.simulation.stage import Row
from tests.simulation.steps import Death, Fault, Kind
from tests.simulation.world import SOURCE, TARGET, Settings, World

NAME = "replay:1:a->b"
MARK = (REPLAY_HEADER, b"1")
#: Steps that a replay takes here at most, without a fault.
MOST_STEPS = 150
SCHEDULES = 30
FAULTS: Sequence[Kind] = ("driver", "worker", "zombie", "error")
Picks = Callable[[Row], bool]


class Picking(MemoryWorkers):
    """Workers that get only some rows of those that Spark reads, with a replay's headers."""

    def __init__(self, world: World, picks: Picks) -> None:
        super().__init__(world)
        self._picks = picks

    def rows(
        self, jobs: Sequence[ShardJob], plans: Sequence[PartitionPlan], produce_tasks: int
    ) -> tuple[BatchWay, Shards]:
        """See `MemoryWorkers`."""
        picked = [with_headers(row) for row in self._world.stage.rows() if self._picks(row)]
        with patch.object(self._world.stage, "rows", lambda: picked):
            return super().rows(jobs, plans, produce_tasks)


def with_headers(row: Row) -> Row:
    place = {"cluster": row.cluster, "topic": row.topic, "partition": row.partition}
    document = json.dumps({**place, "offset": row.offset}).encode()
    return row._replace(headers=(*row.headers, MARK, (SOURCE_HEADER, document)))


class Scene:
    """Two topics, landed in several batches; what is sent, and where. `forgets`: once a process is
    dead the target forgets how far it was."""

    def __init__(
        self, picks: Picks | None, settings: Settings | None = None, forgets: bool = False
    ) -> None:
        self.forgets = forgets
        self.world = World(
            settings
            or Settings(max_records=6, land_records=5, produce_tasks=2, transaction_records=2)
        )
        with ExitStack() as stack:  # what fails here is undone here
            install(self.world, stack)
            self._begin(picks)
            self._stack = stack.pop_all()

    def _begin(self, picks: Picks | None) -> None:
        self.picks = picks
        self.world.create("t0", 2)
        self.world.create("t1", 1)
        for number in range(2):
            self.write(number)
        rows = [row for row in self.world.stage.rows() if picks is None or picks(row)]
        places = sorted({row[:4] for row in rows})
        offsets = {place: [row.offset for row in rows if row[:4] == place] for place in places}
        self.ranges = [
            StagedRange(*place, min(of), max(of), len(of)) for place, of in offsets.items()
        ]
        self.wanted = {
            (place[1], place[2]): sorted(
                (row.offset, row.value) for row in rows if row[:4] == place
            )
            for place in places
        }
        for topic, partitions in (("t0", 2), ("t1", 1)):
            self.world.target.create(f"{topic}.again", partitions)

    def close(self) -> None:
        self._stack.close()

    def write(self, number: int) -> None:
        """Records, some of them aborted, are landed."""
        for partition in (0, 1):
            self.world.write("t0", partition, 3)
            self.world.write("t0", partition, 1, "aborted")
            self.world.write("t1", 0, 1 + number, "committed")
        driver = Driver(self.world)
        while driver.land():
            pass
        driver.stop()

    def send(self) -> None:
        """One process: all that is left, to the end."""
        spec = FlowSpec(
            NAME,
            source_cluster=SOURCE,
            name_at_target=f"mirrorlake-{NAME}",
            remote_topic=lambda topic: f"{topic}.again",
            client={"bootstrap.servers": TARGET},
            producer={},
            produce_tasks=self.world.settings.produce_tasks,
            transactional=True,
            max_records=self.world.settings.max_records,
            reader="auto" if self.picks is None else "rows",
            counted=self.picks is None,
            mark=None if self.picks is None else MARK,
            targets={
                "t0.again": TargetGeneration(began=(0, 0)),
                "t1.again": TargetGeneration(began=(0,)),
            },
        )
        workers = (
            MemoryWorkers(self.world) if self.picks is None else Picking(self.world, self.picks)
        )
        stage = BoundedStage(MemoryStage(self.world, False), self.ranges)
        producer = FlowProducer(stage, MemoryMap(self.world), workers, spec, lambda _plans: None)
        while producer.step() is not None:
            pass
        producer.drain()

    def check(self) -> None:
        """What is at the target is what was wanted, once, in order, and mapped."""
        mapped: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for run in self.world.tables.of("offset_map"):
            for segment in run["segments"]:
                for at in range(segment["record_count"]):
                    pair = (
                        segment["source_first"] + at * segment["stride"],
                        segment["target_first"] + at,
                    )
                    mapped.setdefault((run["topic"], run["partition"]), []).append(pair)
        for key, wanted in self.wanted.items():
            log = self.world.target.log(f"{key[0]}.again", key[1])
            assert log is not None
            there = list(log.read(0, log.end))
            assert [entry.value for _, entry in there] == [value for _, value in wanted], key
            assert sorted(mapped[key]) == [
                (offset, at) for (offset, _), (at, _) in zip(wanted, there, strict=True)
            ]


def every_third(row: Row) -> bool:
    return row.offset % 3 == 1 and (row.topic, row.partition) != ("t0", 1)


@pytest.mark.parametrize(
    "picks",
    [
        pytest.param(None, id="all", marks=pytest.mark.wide("test_at_each_step")),
        pytest.param(every_third, id="some"),
    ],
)
@pytest.mark.parametrize(
    "kind",
    [
        "driver",
        *(
            pytest.param(kind, marks=pytest.mark.wide("test_at_each_step"))
            for kind in FAULTS
            if kind != "driver"
        ),
    ],
)
def test_at_each_step(kind: Kind, picks: Picks | None) -> None:
    at_each_step(kind, picks)


@pytest.mark.parametrize(
    "picks",
    [
        pytest.param(every_third, id="some"),
        pytest.param(
            lambda _: True,
            id="all",
            marks=pytest.mark.wide("test_at_each_step_where_the_target_forgets_how_far_it_is"),
        ),
    ],
)
def test_at_each_step_where_the_target_forgets_how_far_it_is(picks: Picks) -> None:
    """Which records it has of the replay their headers say."""
    at_each_step("driver", picks, forgets=True)


def at_each_step(kind: Kind, picks: Picks | None, forgets: bool = False) -> None:
    for steps in range(1, MOST_STEPS):
        scene = Scene(picks, forgets=forgets)
        try:
            # 8: the driver itself produces
            scene.world.salt = 8 * (steps % 2) if kind in ("driver", "error") else 0
            struck = strike(scene, Fault(kind, steps))
            scene.check()
        finally:
            scene.close()
        if not struck:
            break
    assert steps > 20 and not struck, "it takes more steps than are tried"


def strike(scene: Scene, fault: Fault) -> bool:
    """A process that meets a fault, if it comes to it, and another one that comes to the end;
    records are landed and files rewritten in between."""
    struck = meets(scene, fault)
    if scene.forgets:
        scene.world.target.expire()
    scene.write(1)
    scene.world.stage.optimize(per_file=7, reverse=False)
    scene.send()
    scene.world.wake()
    return struck


def meets(scene: Scene, fault: Fault) -> bool:
    """A process that meets a fault, if it comes to it."""
    world = scene.world
    world.steps.fault = fault
    try:
        scene.send()
    except Death:
        world.die()
    except Exception:  # noqa: BLE001 - what a process ends with that the next one makes up for
        world.die()
    struck, world.steps.fault = world.steps.fault is None, None
    return struck


def test_a_scene_that_fails_in_its_beginning_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    real = task._writers

    def fails(*_: object) -> None:
        raise LookupError

    monkeypatch.setattr(World, "create", fails)
    with pytest.raises(LookupError):
        Scene(None)
    assert task._writers is real


def drawn(_: Path, chance: random.Random) -> None:
    """Several processes, each of which meets a fault, before one comes to the end."""
    sizes = {
        "max_records": (2, 6, 100),
        "land_records": (3, 5, 100),
        "land_files": (1, 2),
        "produce_tasks": (1, 2, 3),
        "transaction_records": (2, 600_000),
        "metadata_bytes": (4_000, 60),
    }
    settings = Settings(**{name: chance.choice(values) for name, values in sizes.items()})
    scene = Scene(chance.choice((None, every_third)), settings)
    try:
        scene.world.steps.taken.append(f"{settings}, {scene.picks}")
        for _ in range(chance.randint(1, 4)):
            scene.world.salt = chance.randrange(1 << 12)
            meets(scene, Fault(chance.choice(FAULTS), chance.randint(1, MOST_STEPS)))
            for event in (
                lambda: scene.write(chance.randrange(2)),
                lambda: scene.world.stage.optimize(chance.randint(1, 7), chance.random() < 0.5),
                scene.world.wake,
            ):
                if chance.random() < 0.5:
                    event()
        scene.world.salt = 0
        scene.send()
        scene.world.wake()
        scene.check()
    except AssertionError as error:
        error.args = ("\n".join([*scene.world.steps.taken, str(error)]),)
        raise
    finally:
        scene.close()


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_no_schedule_of_replays_sends_more_or_less(tmp_path: Path, seed: int) -> None:
    drawn(tmp_path, random.Random(seed))
