"""Landing as the simulation has it: the real worker and its plans over memory, and a model of
Spark's query, and of its session, which may take its time to start."""

import itertools
import random
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mirrorlake.config.cluster import Landing
from mirrorlake.errors import Fenced, LeaseTaken
from mirrorlake.kafka.values import Row as SingleRow
from mirrorlake.lake import small_batches
from mirrorlake.landing import checkpoints, driver_query, land, source_ends
from mirrorlake.landing import worker as landing_worker
from mirrorlake.landing.driver_query import DriverQuery
from mirrorlake.landing.job import LandJob
from mirrorlake.landing.land import LandingQuery
from mirrorlake.landing.plan import LandingPlanner
from mirrorlake.landing.reading_flows import Reading
from mirrorlake.landing.source_comparison import (
    CurrentGenerations,
    Decision,
    LandingPlan,
    Loss,
    Planned,
    SourceTopic,
    TopicGeneration,
)
from mirrorlake.landing.worker import COMPARE_SECONDS, LandingWorker
from mirrorlake.offsets.positions import (
    Ends,
    LogEnd,
    LogEnds,
    PartitionGeneration,
    TopicAndPartition,
)
from tests.simulation.kafka import timed_out
from tests.simulation.steps import Parkable, WorkerDeath
from tests.simulation.streaming import Query, QueryPlan, Reader, Sink
from tests.simulation.world import SOURCE, Incident, World

_LOSSES = ("topic_recreated", "source_truncated", "source_rewound")


class MemorySource:
    """In place of `ClusterSource`, over the simulated cluster."""

    def __init__(self, world: World) -> None:
        self._world = world

    def topics(self) -> Mapping[str, SourceTopic]:
        self._world.steps.reach("source topics", timed_out)
        there = self._world.source.topics
        return {
            name: SourceTopic(topic.topic_id, len(topic.logs))
            for name, topic in there.items()
            if name in self._world.selected
        }

    def denied(self, topics: Collection[str]) -> Mapping[str, str | None]:
        return {}

    def ends(self, keys: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, LogEnds]:
        silent: set[TopicAndPartition] = set()
        try:
            self._world.steps.reach("source ends", timed_out)
        except Exception:
            # Nobody answers; or the leaders of some partitions do not.
            silent = {key for number, key in enumerate(keys) if self._world.salt >> number & 1}
            if not silent:
                raise
        logs = {key: self._world.source.log(*key) for key in keys if key not in silent}
        return {
            key: LogEnds(log.start, log.end, log.epoch)
            for key, log in logs.items()
            if log is not None
        }

    def high_watermarks(
        self, keys: Collection[TopicAndPartition]
    ) -> Mapping[TopicAndPartition, LogEnd]:
        return {key: LogEnd(log.end, log.epoch) for key, log in self.ends(keys).items()}

    def rows(
        self, offsets: Mapping[TopicAndPartition, int]
    ) -> Mapping[TopicAndPartition, SingleRow]:
        found = {}
        for key, first in offsets.items():
            log = self._world.source.log(*key)
            for offset, entry in () if log is None else log.read(first, log.end):
                found[key] = SingleRow(offset, entry.timestamp, entry.key, entry.value, entry.epoch)
                break
        return found


class MemoryLandingStore:
    """In place of `LakeLandingStore`, over the simulated tables."""

    def __init__(self, world: World) -> None:
        self._world = world

    def current_generations(self) -> CurrentGenerations:
        return self._world.living()

    def begin(self, begun: Mapping[str, TopicGeneration]) -> None:
        self._world.steps.write("generations append", timed_out)
        for topic, generation in begun.items():
            self._world.begin_generation(topic, generation.generation, generation.topic_id)

    def decisions(self) -> Collection[Decision]:
        return [
            Decision(
                item.topic or "",
                item.partition,
                item.kind,
                last_offset=item.last,
                open=item.resolution is None,
                resolution=item.resolution,
            )  # type: ignore[arg-type]
            for item in self._world.incidents
            if item.kind in _LOSSES
            and (item.kind == _LOSSES[0] or item.generation >= self._newest(item))
        ]

    def _newest(self, item: Incident) -> int:
        """The newest generation of what an incident is about; what was lost of another one says
        nothing of it."""
        return self._world.living().generation((str(item.topic), item.partition or 0))

    def staged_ends(self) -> Mapping[TopicAndPartition, tuple[int, int]]:
        self._world.steps.reach("staged ends", timed_out)
        found: dict[TopicAndPartition, tuple[int, int]] = {}
        for row in self._world.stage.rows():
            key = (row.topic, row.partition)
            found[key] = max(found.get(key, (0, 0)), (row.generation, row.offset + 1))
        for topic, partition, generation, offset in self._world.forgotten:
            key = (topic, partition)
            found[key] = max(found.get(key, (0, 0)), (generation, offset + 1))
        return found

    def newest_batch(self) -> int:
        return -1

    def seen(self, places: Collection[PartitionGeneration]) -> Mapping[PartitionGeneration, int]:
        return {place: end for place, end in self._world.samples.items() if place in set(places)}

    def staged_firsts(
        self, since: Mapping[TopicAndPartition, int]
    ) -> Mapping[TopicAndPartition, int]:
        found: dict[TopicAndPartition, int] = {}
        for row in self._world.stage.rows():
            key = (row.topic, row.partition)
            if row.generation >= since.get(key, 1 << 30):
                found[key] = min(found.get(key, row.offset), row.offset)
        return found

    def staged_rows(
        self, offsets: Mapping[TopicAndPartition, int], since: Mapping[TopicAndPartition, int]
    ) -> Mapping[TopicAndPartition, SingleRow]:
        found: dict[TopicAndPartition, SingleRow] = {}
        for row in sorted(self._world.stage.rows(), key=lambda row: row.generation):
            key = (row.topic, row.partition)
            if offsets.get(key) == row.offset and row.generation >= since.get(key, 0):
                found[key] = SingleRow(row.offset, row.timestamp, row.key, row.value)
        for topic, partition, generation, offset in self._world.forgotten:
            key = (topic, partition)
            if key not in found and offsets.get(key) == offset and generation >= since.get(key, 0):
                found[key] = SingleRow(offset, 0, None, None, forgotten_to=offset)
        return found

    def epochs(self) -> Mapping[TopicAndPartition, int]:
        return dict(self._world.epochs)

    def note_epochs(self, epochs: Mapping[TopicAndPartition, int]) -> None:
        self._world.epochs = dict(epochs)


class SessionFailed(Exception):
    """Spark cannot start: the process ends."""


class Session:
    """The session of a process, which is there so many batches after it was begun, or fails
    then."""

    def __init__(self, batches: int, fails: bool) -> None:
        self.left, self.fails = batches, fails
        self.begun = False

    @property
    def over(self) -> bool:
        """See `SessionStart.over`."""
        return self.left <= 0

    def begin(self) -> None:
        """See `SessionStart.begin`."""
        self.begun = True


class Marks:
    """The place of the marks of queries: `Place`, as far as they ask it. A process that is gone
    changes nothing there."""

    def __init__(self, lake: "MemoryLake", path: str = "") -> None:
        self._lake, self._world, self._path = lake, lake.lander.world, path
        self.name = path.rpartition("/")[2]

    def __truediv__(self, path: str) -> "Marks":
        return Marks(self._lake, f"{self._path}/{path}")

    def names(self) -> list[str]:
        """Those of all queries."""
        return list(self._world.marks)

    def create(self, content: bytes) -> None:
        """Make one."""
        self._lake.lander.check_alive()
        self._world.steps.write("mark", timed_out)
        self._world.marks[self.name] = content
        self._world.steps.reach("marked", timed_out)

    def read(self) -> bytes:
        """What one says."""
        if self.name not in self._world.marks:
            raise FileNotFoundError(self._path)
        return self._world.marks[self.name]

    def delete(self) -> None:
        """Let one go."""
        self._lake.lander.check_alive()
        self._world.steps.reach("unmark", timed_out)
        self._world.marks.pop(self.name, None)


class MemoryLake:
    """The lake of one process, as landing asks it."""

    directory = None
    checkpoints = Path("/sim/checkpoints")

    def __init__(self, lander: "Lander", session: Session) -> None:
        self.lander, self.session = lander, session
        self.leases = Marks(self)

    @property
    def later_session(self) -> Session | None:
        """See `SessionTables.later_session`."""
        return None if self.session.over else self.session

    def fence(self, _table: str, application: str, version: int) -> None:
        """See `Lake.fence`."""
        assert version == checkpoints._NO_MORE
        self.lander.world.stage.fence(application)

    def application_version(self, _table: str, application: str) -> int | None:
        """See `Lake.application_version`."""
        return checkpoints._NO_MORE if self.lander.world.stage.is_fenced(application) else None


class Flows:
    """The flow that reads from the source, as `ReadingFlows` tells of it."""

    pace = SimpleNamespace(owners=COMPARE_SECONDS, leases=1.0)
    keep_configs = False
    connections = SimpleNamespace(admin=lambda _alias: None)
    selections: tuple[object, ...] = ()

    def __init__(self, _alias: str, deployment: Any) -> None:
        self._lake: MemoryLake = deployment.lake
        settings = self._lake.lander.world.settings
        self._landing = Landing(
            small_batch_records=settings.few,
            max_records_per_batch=settings.land_records,
            files_per_batch=settings.land_files,
        )

    def reading(self) -> Reading:
        """See `ReadingFlows.reading`."""
        client: Any = SimpleNamespace(now={"lander": self._lake.lander}, renewed=lambda: False)
        return Reading(client, self._landing, 0.0)

    def begins(self, _current: CurrentGenerations) -> Mapping[TopicAndPartition, int]:
        """Nothing was noted."""
        return {}

    def names(self) -> list[str]:
        """The flow's."""
        return [SOURCE]

    def named(self) -> list[tuple[str, object]]:
        """The same."""
        return [(SOURCE, None)]

    def known_heartbeats(self) -> Any:
        """There are none."""
        return lambda _topic: False


class Told:
    """`LandingIncidents`, as the simulation keeps them."""

    def __init__(self, _alias: str, event_log: Any) -> None:
        self._world: World = event_log.world

    def report_plan(self, planned: Planned, _flows: object) -> None:
        """Note what is new."""
        world, world.unseen = self._world, False
        world.steps.write("incidents append", timed_out)
        for loss in planned.given_up:
            world.tell(loss.kind, loss.topic, loss.partition, **_facts(loss))
            world.incidents[-1].resolution = "continue"
        for loss in planned.losses:
            world.tell(loss.kind, loss.topic, loss.partition, **_facts(loss))

    def succeeded(self, *_: object) -> None:
        """Nothing is closed."""


class Waits:
    """The event that stops a worker. Who waits for it stands still here until the schedule goes
    on."""

    def __init__(self, lander: "Lander") -> None:
        self._lander, self._is_set = lander, False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def wait(self, seconds: float) -> bool:
        if not self._is_set:
            self._lander.pause(seconds)
        return self._is_set


class MemoryLease:
    """What says whether a process is the only one: Kafka at once, a store when it is renewed."""

    def __init__(self, lander: "Lander") -> None:
        self._lander = lander
        self.stands_by = lander.world.settings.stands_by

    @property
    def held(self) -> bool:
        """See `AnyLease.held`."""
        world = self._lander.world
        return world.newest is self._lander or not (self.stands_by or world.salt >> 6 & 1)

    def take(self, sure: bool = False) -> None:
        """See `AnyLease.take`."""
        if self._lander.world.newest is not self._lander:
            raise LeaseTaken("another process lands")

    def release(self) -> None:
        """Another process takes it when it begins."""


class MemoryEnds:
    """`SourceEnds` over the simulated cluster, for a process that plans its batches itself."""

    def __init__(self, _alias: str, client: Mapping[str, Any]) -> None:
        self._world: World = client["lander"].world

    def known(self, reached: Ends) -> Ends:
        """See `SourceEnds.known`."""
        self._world.steps.reach("ends of logs", timed_out)
        logs = {key: self._world.source.log(*key) for key in reached}
        return {key: log.stable for key, log in logs.items() if log is not None}

    def noted(self, _ends: Ends, _log_ends: Ends) -> None:
        """See `SourceEnds.noted`."""

    def close(self) -> None:
        """Nothing is kept."""


class Ended:
    """The thread of a `DriverQuery`, which works when a schedule says so."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.over = False

    def done(self) -> bool:
        return self.over

    def exception(self) -> Exception | None:
        return self.failure


def lands_itself(query: DriverQuery, salt: int) -> bool:
    """One batch of a process without a session; False when there is nothing to do. What it fails
    with ends the query."""
    ended: Any = query._ended
    sink: Any = query._sink
    before, sink.salt = sink.covered(), salt
    try:
        query._land_next(sink.numbers)
    except BaseException as error:
        ended.over = True
        if not isinstance(error, Exception):
            raise
        ended.failure = error  # who runs the query sees it
        return True
    ended.over = query.outgrown
    return query.outgrown or sink.covered() != before


class Lander:
    """The landing worker of one process, a turn of which goes on from wait to wait: one call is one
    batch of its query."""

    def __init__(self, world: World) -> None:
        self.world = world
        chance = random.Random(world.next_id())
        waits = world.settings.waits and not world.settings.catalog
        batches = chance.choice((0, 1, 2, 4)) if waits else 0
        self.lake = MemoryLake(self, Session(batches, batches == 1 and chance.random() < 0.3))
        self._is_gone = False
        deployment: Any = SimpleNamespace(
            lake=self.lake, event_log=SimpleNamespace(world=world, states=None)
        )
        world.newest = self
        self.lease: Any = MemoryLease(self)
        self._worker = LandingWorker(SOURCE, deployment, None, False, self.lease)  # type: ignore[arg-type]
        self._stopping: Any = Waits(self)
        self._worker._stopping = self._worker.thread.stopping = self._stopping
        self._selected = frozenset(world.selected)
        self._turn: Parkable | None = None
        self._polls = False

    def land(self) -> bool:
        """One batch; False when there is nothing new."""
        world, version = self.world, self.world.stage.version
        if self._selected != world.selected:
            self._selected = frozenset(world.selected)
            self._worker._changed.set()
        self._polls = world.salt % 2 == 0 or world.unseen
        begun, session = self._goes_on(), self.lake.session
        session.left -= session.begun
        query = self._worker._query
        of_query: Any = None if query is None else query.query
        if of_query is not None and of_query.isActive:
            itself = isinstance(of_query, DriverQuery)
            moved = lands_itself(of_query, world.salt) if itself else of_query.trigger(world.salt)
            if not of_query.isActive:
                begun = self._goes_on() or begun
        else:
            moved = False
        if query is not None and not query.fenced():
            current = self._worker.generations()
            starts = self._worker._begun
            plan = LandingPlan(SOURCE, starts, {key: current.generation(key) for key in starts})
            world.saw(plan, sampled=world.salt % 4 == 0, covered=self._worker.covered())
        return moved or begun or world.stage.version != version

    def end(self) -> None:
        """The process is gone."""
        self._is_gone = True
        if self._turn is not None:
            self._turn.bury()

    def check_ends(self, error: Exception) -> None:
        """Be sure that a process that was overtaken, and stands by for none, ends with an error."""
        if isinstance(error, Fenced) and not self.lease.stands_by:
            assert self._worker._ends(error, error, 0), "it would take back what another one has"

    def check_alive(self) -> None:
        """Raise WorkerDeath where the process is gone."""
        if self._is_gone:
            raise WorkerDeath

    def stop(self) -> None:
        """End in order."""
        self._stopping.set()
        if self._turn is not None:
            self._goes_on()

    def pause(self, seconds: float) -> None:
        """Stand still, as in a wait, until the schedule goes on."""
        assert self._turn is not None
        self._turn.park()
        # Longer than it has to be, as a wait is: of floats a difference may be less than was added.
        self.world.seconds += COMPARE_SECONDS + seconds if self._polls else seconds

    def _goes_on(self) -> bool:
        """Go on to the next wait; whether a turn ended, and another one began. Raises what it
        raised."""
        for again in (False, True, True):
            if self._turn is None:
                self._turn = Parkable(self._worker._turn)
                self._turn.start()
            else:
                self._turn.resume()
            if self._turn.parked:
                return again
            turn, self._turn = self._turn, None
            turn.answer()
            if self._stopping.is_set():
                break
        return True


def stand_ins(world: World) -> list[tuple[Any, str, object]]:
    """What takes the place of what landing asks of clusters, tables and Spark: (module, name,
    stand-in)."""
    quiet = SimpleNamespace(
        **{name: lambda *_: None for name in ("debug", "info", "warning", "error", "exception")}
    )
    names = map("{:012}".format, itertools.count())
    made_up = SimpleNamespace(make_up=lambda *_, **__: None, reported=None)
    return [
        (landing_worker, "ReadingFlows", Flows),
        (landing_worker, "LandingIncidents", Told),
        (landing_worker, "UnreadOffsets", lambda *_: made_up),
        (landing_worker, "CoveredNotes", lambda *_: None),
        (landing_worker, "ClusterSource", lambda *_: MemorySource(world)),
        (landing_worker, "LakeLandingStore", lambda *_: MemoryLandingStore(world)),
        (landing_worker, "LandingPlanner", partial(LandingPlanner, clock=lambda: 0.0)),
        (landing_worker, "generations_of", lambda *_: world.living()),
        (landing_worker, "note_removals", lambda *_: None),
        (landing_worker, "note_fresh_topics", lambda *_: None),
        (landing_worker, "time", SimpleNamespace(monotonic=lambda: world.seconds)),
        (landing_worker, "logger", quiet),
        (source_ends, "SourceEnds", MemoryEnds),
        (driver_query, "in_thread", lambda *_: Ended()),
        (small_batches, "MANY", 2),
        (land, "_path_sink", partial(_sink, world)),
        (land, "_stream", partial(_stream, world)),
        (land, "make_folder", lambda _checkpoint: None),
        (checkpoints, "uuid", SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=next(names)))),
    ]


def _sink(world: World, _lake: MemoryLake, job: LandJob, application: str) -> Sink | None:
    """See `land._path_sink`."""
    return None if world.settings.catalog else _made(world, job, application)


def _made(world: World, job: LandJob, application: str) -> Sink:
    settings = world.settings
    bounds = (settings.land_records, settings.land_files)
    plan = QueryPlan(SOURCE, job.starts, job.generations, *bounds)
    reader = Reader(world.source, world.stage, application, plan, world.steps)
    return Sink(reader, settings.few)


def _stream(
    world: World, lake: MemoryLake, job: LandJob, _landing: Landing, checkpoint: Path
) -> LandingQuery:
    """See `land._stream`."""
    if lake.session.fails:
        raise SessionFailed("there is no Java")
    sink = _made(world, job, checkpoints.application_of(checkpoint))
    sink.query = Query(sink.reader)
    return LandingQuery(sink, sink.query, None, name=checkpoint.name)  # type: ignore[arg-type]


def _facts(loss: Loss) -> dict[str, int | None]:
    return {name: getattr(loss, name) for name in ("first", "last", "generation")}
