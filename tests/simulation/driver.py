"""The process `mirrorlake run` as the simulation has it: the real code of producing over memory.

What is real: the driver's side of a flow, its map writer, the index of the stage, planning, tasks
and writers. What is replaced: Spark, Delta, the Kafka clients, the clock that numbers batches, and
threads, whose work is done when a schedule says so.
"""

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from mirrorlake import failpoints
from mirrorlake.errors import Fenced, MirrorlakeError, TargetLost, TargetRefused, TopicRefused
from mirrorlake.forget.still_needed import FlowPositions, StillNeeded, known_position, still_needed
from mirrorlake.kafka import python_log
from mirrorlake.kafka.client_pool import ClientPool
from mirrorlake.lake.decisions import Lost
from mirrorlake.lake.incidents import WENT_ON
from mirrorlake.lake.owners import fenced
from mirrorlake.lake.reader import Frame
from mirrorlake.offsets.generations import SourceGenerations
from mirrorlake.offsets.parked import Parked
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.positions import GenerationOffset, PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.progress import MappedEnd, floors_of
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.offsets.runs import decode_metadata
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.produce import (
    culprit,
    delivery,
    fencing,
    flow_positions,
    map_writer,
    patience,
    python_producer,
    refused_records,
    shard_writing,
    stage_files,
    target_log,
    task,
    writer,
)
from mirrorlake.produce import flow as produce_flow
from mirrorlake.produce.batch import PartitionPlan, shard_of
from mirrorlake.produce.counted import Stretch
from mirrorlake.produce.fencing import fence_all
from mirrorlake.produce.flow import FlowProducer
from mirrorlake.produce.ports import BatchWay
from mirrorlake.produce.python_producer import PythonProducer
from mirrorlake.produce.spec import FlowSpec, Target
from mirrorlake.produce.task import ShardJob, produce_shards
from mirrorlake.run import target_losses
from mirrorlake.run.flow_failures import FlowFailures
from mirrorlake.run.target_losses import MappedLoss, log_ends_below, loss_errors, take_out
from mirrorlake.spark.tasks import (
    NUMBER,
    OUTCOMES,
    Done,
    SparkTask,
    Work,
    by_number,
    done_of,
    run_here,
)
from tests.simulation.kafka import Consumer, Producer, timed_out
from tests.simulation.landing import Lander
from tests.simulation.landing import stand_ins as of_landing
from tests.simulation.stage import RECORDS, ParquetView, arrow, lake_failed
from tests.simulation.steps import TaskFailed
from tests.simulation.targets import MemoryTargets, TargetsUnmade, stand_ins
from tests.simulation.world import FLOW, HOLDS, SOURCE, TARGET, Incident, World

#: When schedules begin, ms.
EPOCH_MS = 1_790_000_000_000
_ROWS = [name for name in RECORDS.names if name != "source_cluster"]


class Later(Future):  # type: ignore[type-arg]
    """Work of a thread, which is done when it is asked for, or when a schedule says so."""

    def __init__(self, work: Callable[[], object], queue: "list[Later]") -> None:
        super().__init__()
        self._work = work
        self._queue = queue
        queue.append(self)

    def run(self) -> None:
        """Do it now, if nobody has."""
        if self in self._queue:
            self._queue.remove(self)
            try:
                self.set_result(self._work())
            except Exception as error:  # noqa: BLE001 - raised to whoever asks for the result
                self.set_exception(error)

    def result(self, timeout: float | None = None) -> Any:
        self.run()
        return super().result(timeout)


class Threads:
    """A pool of threads: the map writer's one thread works later, the two that append beside it
    work at once."""

    def __init__(self, queue: list[Later], count: int) -> None:
        self._queue = queue
        self._at_once = count > 1

    def submit(self, work: Callable[..., object], *args: object) -> Later:
        """Note the work."""
        later = Later(lambda: work(*args), self._queue)
        if self._at_once:
            later.run()
        return later

    def shutdown(self) -> None:
        """Nothing is left running."""


class MemoryStage:
    """`produce.ports.Stage` over the simulated table: follows commits, builds anew where they are
    forgotten. In a `catalog`, as there, files that commits take away stay in the index until
    somebody finds them gone."""

    storage = None
    is_its_files = True

    def __init__(self, world: World, catalog: bool) -> None:
        self._world = world
        self._catalog = catalog
        self._index: StageIndex | None = None

    @contextmanager
    def reading(self) -> Iterator[StageIndex]:
        """The index as of the newest commit."""
        stage = self._world.stage
        stage.steps.reach("index", lake_failed)
        if self._index is None or self._index.version + 1 < stage.known_from:
            index = self._index = self._index or StageIndex()
            paths = stage.paths()
            index.apply(
                [(path, self._ranges(path)) for path in paths],
                set(index.paths()) - set(paths),
                stage.version,
            )
        while self._index.version < stage.version:
            commit = stage.commits[self._index.version + 1]
            adds: Sequence[str] = [] if self._catalog and commit.removes else commit.adds
            removes = () if self._catalog else commit.removes
            told = [(path, self._ranges(path)) for path in adds if path in stage.files]
            if len(told) < len(adds):
                self._index = None
                break
            self._index.apply(told, removes, self._index.version + 1)
        if self._index is None:
            with self.reading() as index:
                yield index
            return
        yield self._index

    def forget(self) -> None:
        """Build it again."""
        self._index = None

    def invalidate(self) -> None:
        """Build it again where it does not follow all commits."""
        if self._catalog:
            self.forget()

    def _ranges(self, path: str) -> list[StagedRange]:
        offsets: dict[tuple[str, str, int, int], list[int]] = {}
        for row in self._world.stage.files[path]:
            offsets.setdefault(row[:4], []).append(row.offset)
        return [StagedRange(*place, min(of), max(of), len(of)) for place, of in offsets.items()]


class MemoryMap:
    """In place of `LakeMap`, over the simulated tables. In a `catalog` rows wait until the flow
    needs them there, or ends."""

    def __init__(self, world: World) -> None:
        self.rows_wait_seconds = math.inf if world.settings.catalog else 0.0
        self._world = world
        self._tables = world.tables
        self._application = f"mirrorlake/{world.lake_id}/{FLOW}"
        self._number = -1

    def take_over(self, least: int) -> int:
        """Fence what an older process has on its way."""
        number = self._tables.take_over("latency", f"{self._application}/latency", least)
        self._number = self._tables.take_over("offset_map", f"{self._application}/map", number)
        return self._number

    def check_owner(self) -> None:
        """Raise Fenced if another process has taken over since."""
        known = self._tables.application_version(f"{self._application}/map")
        if known is not None and known > self._number:
            raise fenced("offset_map", self._application, known, self._number)

    def produce_tasks(self) -> int | None:
        """The newest one that was noted."""
        noted = self._tables.of("changes")
        return noted[-1]["after"] if noted else None

    def note_produce_tasks(self, count: int) -> None:
        """Append."""
        self._tables.append("changes", pa.table({"after": [count]}))

    def ends(self) -> tuple[Sequence[MappedEnd], int]:
        """What `sql/queries/mapped_ends.sql` says."""
        found: dict[tuple[Any, ...], tuple[int, int]] = {}
        newest = -1
        for row in self._tables.of("offset_map"):
            place = (
                row["topic"],
                row["partition"],
                row["target_topic"],
                row["target_generation"],
                row["generation"],
            )
            source, target = found.get(place, (0, 0))
            found[place] = (
                max(source, row["source_last"] + 1),
                max(target, row["target_last"] + 1),
            )
            newest = max(newest, row["batch_id"])
        return [MappedEnd(*place, *ends) for place, ends in found.items()], newest

    def append_map(self, rows: pa.Table, batch_id: int) -> None:
        """Append, once."""
        self._tables.append("offset_map", rows, f"{self._application}/map", batch_id)
        self._number = max(self._number, batch_id)

    def append_latency(self, rows: pa.Table, batch_id: int) -> None:
        """Append, once."""
        self._tables.append("latency", rows, f"{self._application}/latency", batch_id)

    def parked(self) -> Sequence[Parked]:
        """What the flow goes on behind."""
        return list(self._world.parked)

    def park(self, rows: Sequence[Parked]) -> None:
        """Note it, each record once."""
        self._world.steps.write("parked append", lake_failed)
        self._world.parked += [row for row in rows if row not in self._world.parked]
        self._world.steps.reach("parked appended", lake_failed)


class MemoryLosses:
    """What `run/target_losses.py` asks of a lake, and changes there."""

    def __init__(self, world: World) -> None:
        self._world = world

    def lost_runs(self, key: TopicAndPartition, lost: Lost) -> list[dict[str, Any]]:
        """Runs of the map that have something from the target offset on."""
        return [
            run
            for run in self._world.tables.of("offset_map")
            if (run["topic"], run["partition"]) == key
            and (run["target_generation"] or 0) == lost.target_generation
            and run["target_last"] >= lost.target_offset
        ]

    def ask(
        self, query: str, frames: Mapping[str, Frame] | None = None, **of: Any
    ) -> list[dict[str, Any]]:
        """What `sql/queries/lost_of_map.sql` says; nothing was ever proven."""
        if query != "lost_of_map" or frames is None:
            return []
        found: dict[tuple[str, int, int], list[int]] = {}
        for lost in _lost(frames):
            for run in self._runs({**of, **lost}):
                for one in run["segments"]:
                    for number in range(one["record_count"]):
                        if one["target_first"] + number >= lost["target_offset"]:
                            offset = one["source_first"] + number * one["stride"]
                            place = (run["topic"], run["partition"], run["generation"] or 0)
                            found.setdefault(place, []).append(offset)
        names = ("topic", "partition", "generation")
        return [
            {
                **dict(zip(names, place, strict=True)),
                "first_offset": min(at),
                "last_offset": max(at),
                "record_count": len(at),
            }
            for place, at in sorted(found.items())
        ]

    def append(self, _table: str, _rows: pa.Table) -> None:
        """No proofs are kept."""

    def change(self, _query: str, frames: Mapping[str, Frame] | None = None, **of: Any) -> None:
        """What `sql/queries/cut_map.sql` does."""
        self._world.steps.reach("map cut", lake_failed)
        for lost in _lost(frames or {}):
            for run in self._runs({**of, **lost}):
                self._world.tables.of("offset_map").remove(run)
                if kept := _kept_of(run, lost["target_offset"]):
                    self._world.tables.of("offset_map").append(kept)
        self._world.steps.reach("map is cut", lake_failed)

    def _runs(self, of: dict[str, Any]) -> list[dict[str, Any]]:
        return self.lost_runs(
            (of["topic"], of["partition"]), Lost(of["target_generation"], of["target_offset"])
        )


def _lost(frames: Mapping[str, Frame]) -> list[dict[str, Any]]:
    """The rows of the frame `lost`, by name."""
    frame = frames["lost"]
    names = [name for name, _ in frame.columns]
    return [dict(zip(names, row, strict=True)) for row in frame.rows]


def _kept_of(run: dict[str, Any], end: int) -> dict[str, Any] | None:
    """What is left of a row of the map below a target offset."""
    kept = [
        {**one, "record_count": min(one["record_count"], end - one["target_first"])}
        for one in run["segments"]
        if one["target_first"] < end
    ]
    if not kept:
        return None
    last, count = kept[-1], sum(one["record_count"] for one in kept)
    ends = {
        "source_last": last["source_first"] + (last["record_count"] - 1) * last["stride"],
        "target_last": last["target_first"] + last["record_count"] - 1,
    }
    return {**run, **ends, "segments": kept, "record_count": count}


#: What the shards of a batch report.
Shards = Done[pa.RecordBatch]


class MemoryWorkers:
    """In place of `SparkWorkers`: one task a shard, one after another, in workers that may die (the
    long way) or in the driver itself (the short way), as the salt says."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._written_here: set[str] = set()

    def at_most(self, records: int) -> int:
        """What is much is for a session, which is there."""
        return records

    def can_read_files(self) -> bool:
        """There are neither deletion vectors nor column mapping."""
        return True

    def close(self) -> None:
        """Let go of the producers that this process has."""
        for name in self._written_here:
            self._world.here.writers.take(name)

    def files(self, jobs: Sequence[ShardJob]) -> tuple[BatchWay, Shards]:
        """Run jobs whose workers read files."""
        if self._goes_the_short_way(jobs):
            # Threads of the driver: all of them end, whatever one of them meets.
            return "short", _joined([self._here([(job, None)]) for job in jobs])
        worker = SparkTask(produce_shards, [[job] for job in jobs])
        return "long", self._run(
            worker,
            [[pa.RecordBatch.from_pydict({NUMBER: [number]})] for number in range(len(jobs))],
        )

    def count(self, stretches: Sequence[Stretch]) -> Sequence[int]:
        """How many rows the newest version has of some offsets, as a query counts them, which may
        not read all."""
        counts = []
        for place, first, last in stretches:
            rows = [
                row
                for row in self._world.stage.rows()
                if row[:4] == (SOURCE, *place) and first <= row.offset <= last
            ]
            short = rows and self._world.steps.ends_early("count rows")
            counts.append(len(rows) // 2 if short else len(rows))
        return counts

    def rows(
        self, jobs: Sequence[ShardJob], plans: Sequence[PartitionPlan], produce_tasks: int
    ) -> tuple[BatchWay, Shards]:
        """Run jobs over sorted rows of the newest version."""
        wanted = {(plan.topic, plan.partition, plan.generation): plan for plan in plans}
        by_shard: dict[int, list[Any]] = {}
        for row in self._world.stage.rows():
            plan = wanted.get((row.topic, row.partition, row.generation))
            if plan is not None and plan.first <= row.offset <= plan.last:
                by_shard.setdefault(shard_of(row.topic, row.partition, produce_tasks), []).append(
                    row
                )
        parts: dict[int, list[pa.RecordBatch]] = {}
        for shard, found in sorted(by_shard.items()):
            found.sort(key=lambda row: (row.topic, row.partition, row.offset))
            if self._world.steps.ends_early("read rows"):
                del found[len(found) // 2 :]
            if not found:
                continue  # Spark runs no task
            batch = arrow(found)
            columns = [
                pa.array([shard] * batch.num_rows, pa.int32()),
                *(batch.column(name) for name in _ROWS),
            ]
            # Spark's hash puts several shards into one task.
            parts.setdefault(shard % 2, []).append(
                pa.RecordBatch.from_arrays(columns, names=[NUMBER, *_ROWS])
            )
        by_shard = {job.plan.shard: job for job in jobs}
        if self._goes_the_short_way(jobs):
            every = [batch for batches in parts.values() for batch in batches]
            return "short", self._world.run_here(
                lambda: run_here(produce_shards, [by_number(every, by_shard)])
            )
        worker = SparkTask(produce_shards, by_shard, over_rows=True)
        return "long", self._run(worker, list(parts.values()))

    def _goes_the_short_way(self, jobs: Sequence[ShardJob]) -> bool:
        short = bool(self._world.salt >> 3 & 1)
        if short:
            self._written_here |= {job.target.transactional_id for job in jobs}
        return short

    def _here(self, work: Work[ShardJob]) -> Shards:
        return self._world.run_here(lambda: run_here(produce_shards, [work]))  # type: ignore[no-any-return]

    def _run(
        self, worker: SparkTask[ShardJob, pa.RecordBatch], tasks: Sequence[list[pa.RecordBatch]]
    ) -> Shards:
        """Tasks of Spark's: what one of them is lost with, all are."""
        found: list[pa.RecordBatch] = []
        failure: TaskFailed | None = None
        for number, batches in enumerate(tasks):
            try:
                found.extend(
                    self._world.run_task(
                        number, lambda batches=batches: list(worker(iter(batches)))
                    )
                )
            except TaskFailed as error:
                failure = failure or error
                if self._world.salt % 3 == 0:
                    break  # the others are called off before they begin
        if failure is not None:
            raise failure
        return done_of(pa.Table.from_batches(found, OUTCOMES))


def _joined(parts: Sequence[Shards]) -> Shards:
    failure = next((part.failure for part in parts if part.failure is not None), None)
    return Done([one for part in parts for one in part.results], failure)


def install(world: World, stack: ExitStack) -> None:
    """Put the simulation in the place of the real things, until the stack is closed."""
    clusters = {SOURCE: world.source, TARGET: world.target}
    quiet = SimpleNamespace(
        **{name: lambda *_: None for name in ("debug", "info", "warning", "error", "exception")}
    )
    clock = itertools.count(1)

    def time_ns() -> int:
        return (EPOCH_MS + next(clock) + world.clock_ahead) * 1_000_000

    def client_of(kind: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
        return lambda settings: kind(clusters[settings["bootstrap.servers"]], world.steps, settings)

    def record_producer(settings: dict[str, Any], throttle: Any, group: Any) -> PythonProducer:
        made = PythonProducer(settings, throttle, quiet, group)  # type: ignore[arg-type]
        if world.salt >> 4 & 1:
            made.ask_each = True  # as the native one, which is told every offset
        return made

    for module, name, value in (
        (python_producer, "Producer", client_of(Producer)),
        (python_producer, "logger", quiet),
        (writer, "new_producer", record_producer),
        (writer, "Consumer", client_of(Consumer)),
        (target_log, "open_log", python_log.PythonLog),
        (target_log, "Consumer", client_of(Consumer)),
        (target_log, "OPEN_SECONDS", 0.0),
        (python_log, "Consumer", client_of(Consumer)),
        (fencing, "Consumer", client_of(Consumer)),
        (delivery, "NEW_PARTITION_SECONDS", -1.0),
        (delivery, "_JOINED_ROWS", (1, 5, 4_096)[world.salt % 3]),
        *(
            (module, "time", SimpleNamespace(monotonic=lambda: 0.0))
            for module in (writer, delivery, patience)
        ),
        (flow_positions, "METADATA_BYTES", world.settings.metadata_bytes),
        (writer, "logger", quiet),
        (culprit, "AdminClient", lambda _settings: world.target),
        (
            culprit,
            "topic_rights",
            lambda target, names: {n: {"READ"} if n in target.denied else None for n in names},
        ),
        (shard_writing, "TRANSACTION_RECORDS", world.settings.transaction_records),
        (task, "_writers", ClientPool()),
        (task, "_paces", ClientPool()),
        (task, "WORKER", ""),
        (failpoints, "reached", lambda point: world.steps.reach(point, timed_out)),
        (map_writer, "ThreadPoolExecutor", lambda count, **_: Threads(world.later, count)),
        (
            stage_files,
            "open_parquet",
            lambda uri, _coded, _storage: ParquetView(world.stage.batch(uri), world.steps),
        ),
        *stand_ins(),
        *of_landing(world),
        (produce_flow, "logger", quiet),
        (target_losses, "logger", quiet),
        (target_losses, "SURE_SECONDS", 0.0),
        (refused_records, "logger", quiet),
        (produce_flow, "time", SimpleNamespace(time_ns=time_ns)),
    ):
        stack.enter_context(patch.object(module, name, value))


class Driver:
    """One process. It notes incidents as the real one does, and begins the flow anew after a
    failure."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._flow: FlowProducer | None = None
        self._begun_with: object = None
        self._stage = MemoryStage(world, world.settings.catalog)
        self._lander = Lander(world)
        self._targets = MemoryTargets(world)
        self._closed: frozenset[str] = frozenset()
        self._denied: set[str] = set()
        self._begins_anew = False

    def land(self) -> bool:
        """One batch of landing; False when there is nothing new."""
        return self._lander.land()

    def produce(self) -> bool:
        """One batch of the flow; False when there is nothing to do."""
        try:
            self._denied &= self.world.target.denied
            differs = (
                self._begins_anew or self._wanted() != self._begun_with or self._targets_differ()
            )
            if self._flow is not None and differs:
                self.stop_flow()
            self._begins_anew = False
            if self._flow is None:
                self._targets.refresh(begins=True)
                self.world.target_unseen = False
                self._begun_with = self._wanted()
                self._flow = FlowProducer(
                    self._stage,
                    MemoryMap(self.world),
                    MemoryWorkers(self.world),
                    self._spec(),
                    self._targets.ensure,
                )
                if self._stops_where_lost(self._flow):
                    self.stop_flow()
                    return True
            report = self._flow.step()
            self._close_mapped(self._flow)
            return report is not None
        except TargetsUnmade:
            self.stop_flow()
            return True
        except Exception as error:
            if isinstance(error, MirrorlakeError):
                self.world.tell("flow_stopped", None, detail=str(error))
            self.stop_flow()
            raise

    def _stops_where_lost(self, flow: FlowProducer) -> bool:
        """As `run/stopped_partitions.py: stop_where_lost`; whether the flow has to begin anew."""
        world = self.world
        known = self._open_losses()
        for key, lost in log_ends_below(flow, self._target_ends).items():
            if key not in known and key[0] not in self._targets.closed():
                losses = {key: MappedLoss(key[0], lost)}
                self._tell_lost(*loss_errors(MemoryLosses(world), FLOW, losses))  # type: ignore[arg-type]
        open_ones = self._open_losses()
        flow.spec = replace(flow.spec, blocked=flow.spec.blocked | open_ones.keys())
        return take_out(MemoryLosses(world), flow, open_ones)  # type: ignore[arg-type]

    def has_lost(self, item: Incident) -> bool:
        """Whether the map has still what an incident says that the target lost."""
        lost = Lost(item.target_generation, item.target_offset)
        key = (str(item.topic), item.partition or 0)
        return bool(MemoryLosses(self.world).lost_runs(key, lost))

    def _open_losses(self) -> dict[TopicAndPartition, Lost]:
        return {
            (str(item.topic), item.partition or 0): Lost(item.target_generation, item.target_offset)
            for item in self.world.open_incidents()
            if item.kind == "target_lost" and self._holds(item)
        }

    def _target_ends(self, places: Collection[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        self.world.steps.reach("target ends", timed_out)
        logs = {key: self.world.target.log(*key) for key in places}
        return {key: log.end for key, log in logs.items() if log is not None}

    def _tell_lost(self, *problems: TargetLost) -> None:
        self.world.steps.reach("incident append", timed_out)
        for problem in problems:
            self.world.tell(
                problem.incident_kind,
                *problem.topic_partition,
                first=problem.first_offset,
                last=problem.last_offset,
                detail=str(problem),
                generation=problem.generation,
                target_generation=problem.target_generation,
                target_offset=problem.target_offset,
            )
        self.world.steps.reach("incident appended", timed_out)

    def append_map(self) -> None:
        """What was produced gets into the map."""
        for later in list(self.world.later):
            later.run()

    def drain(self) -> None:
        """Wait until all that was produced is in the map; where that fails, the flow is begun
        anew."""
        if self._flow is None:
            return
        try:
            self._flow.drain()
        except Exception:
            self._flow = None
            raise

    def still_needed(self, topic: str) -> list[StillNeeded]:
        """What of a topic must stay in the stage for the flow. Where this process does not run it,
        nobody does: what outlived a process is fenced."""
        world = self.world
        floors = floors_of(MemoryMap(world).ends()[0], lambda name: name, self._targets.living)
        committed: dict[TopicAndPartition, GenerationOffset] | None = None
        if self._flow is None:
            committed, group = {}, f"mirrorlake-{world.lake_id}-{FLOW}"
            shards = [
                Target({"bootstrap.servers": TARGET}, {}, group, f"{group}-{shard}", True)
                for shard in range(3)
            ]
            fence_all(shards, world.target.topics)
            for (owner, key), (offset, metadata) in world.target.positions.items():
                if owner == group:
                    ids = SourceGenerations(world.begun).ids(key)
                    committed[key] = known_position(ids, offset, decode_metadata(metadata))
        known = FlowPositions(
            FLOW,
            {key: (at.generation, at.source) for key, at in floors.items()},
            committed,
            world.selected | world.noted.keys(),
        )
        with MemoryStage(world, catalog=False).reading() as index:
            staged = index.topics(SOURCE)
            return list(still_needed(known, {topic: staged[topic]} if topic in staged else {}))

    def stop(self) -> None:
        """End in order."""
        try:
            self._lander.stop()
        finally:
            self._lander.end()
            if self.world.newest is self._lander:  # another one is begun
                self._lander = Lander(self.world)
        self.stop_flow()

    def die(self) -> None:
        """Do nothing more."""
        self._lander.end()

    def come_back(self) -> None:
        """Go on after being suspended, with what a process may be at then, and end. Its threads
        hear one by one that another process has taken over."""
        flow, landing = [self.append_map, self.produce, self.produce, self.drain], [self.land] * 2
        for work in (*flow[:2], *landing, *flow[2:], self.stop):
            if work not in (*flow, *landing, self.stop):
                continue
            try:
                work()
            except Exception as error:  # noqa: BLE001 - it goes on after failures, until it is fenced
                self.world.steps.taken.append(f"  {type(error).__name__}: {str(error)[:150]}")
                if isinstance(error, Fenced):
                    self.check_ends(error, landed=work == self.land)
                    (landing if work == self.land else flow).clear()

    def check_ends(self, error: Exception, landed: bool) -> None:
        """Be sure that what another process has taken over ends here, and not as if it had come to
        its end: with an error, or, where processes stand by, as nothing that it has done."""
        if landed:
            self._lander.check_ends(error)
            return
        failures = FlowFailures(FLOW, False, self._lander.lease, None)  # type: ignore[arg-type]
        assert failures.ends(error, error, 0), "it would fence the other one for ever"  # type: ignore[arg-type]

    def stop_flow(self) -> None:
        """End the flow in order."""
        flow, self._flow = self._flow, None
        if flow is not None:
            flow.close()

    def _targets_differ(self) -> bool:
        """From time to time, and before the first batch after one was lost."""
        polls = self.world.salt % 2 == 0 or self.world.target_unseen
        if (
            polls
            and self._flow is not None
            and log_ends_below(self._flow, self._target_ends).keys() - self._open_losses().keys()
        ):
            return True
        return polls and self._targets.differs(self._closed)

    def _wanted(self) -> object:
        """What the flow is begun anew for when it changes."""
        world = self.world
        decided = [
            (item.kind, item.topic, item.partition, item.resolution) for item in world.incidents
        ]
        left_out = [sorted(names) for names in (world.paused, self._denied)]
        return sorted(world.selected), left_out, [item for item in decided if item[3] is not None]

    def _spec(self) -> FlowSpec:
        world = self.world
        self._closed = self._targets.closed()
        produced = frozenset(world.selected - world.paused - self._closed - self._denied)
        held = [item for item in world.incidents if item.kind in HOLDS and self._holds(item)]
        stopped = frozenset(item.place for item in held if item.resolution == "stop")
        decided: dict[str, dict[PartitionGeneration, OffsetRanges]] = {"skip": {}, "park": {}}
        for item in held:
            said = "skip" if item.resolution == "accept" else item.resolution
            if item.kind in ("target_refused", "target_lost") and said in decided:
                ranges = decided[said].setdefault(item.place, OffsetRanges())
                ranges.add([(item.first or 0, item.last or 0)])
        forgotten: dict[PartitionGeneration, list[tuple[int, int]]] = {}
        for *place, offset in world.forgotten:
            forgotten.setdefault(PartitionGeneration(*place), []).append((offset, offset))
        foreign = {item.place: item.first or 0 for item in held if item.resolution == "foreign"}
        return FlowSpec(
            FLOW,
            source_cluster=SOURCE,
            name_at_target=f"mirrorlake-{world.lake_id}-{FLOW}",
            remote_topic=lambda topic: topic if topic in produced else None,
            client={"bootstrap.servers": TARGET},
            producer={},
            produce_tasks=world.settings.produce_tasks,
            transactional=True,
            max_records=world.settings.max_records,
            reader=world.settings.reader,
            stopped=stopped,
            skipped=decided["skip"],
            again=self._again(held),
            known_foreign=foreign,
            targets=self._targets.living,
            on_refused=self._refused,
            forgotten={place: OffsetRanges(ranges) for place, ranges in forgotten.items()},
            parks=world.settings.parks,
            park_at=decided["park"],
            generations=lambda: SourceGenerations(world.begun),
        )

    @staticmethod
    def _again(held: Sequence[Incident]) -> dict[PartitionGeneration, int]:
        """As `lake/incidents.py: decided`."""
        again: dict[PartitionGeneration, int] = {}
        for item in sorted(held, key=lambda item: item.at):
            if item.kind == "target_lost":
                again.pop(item.place, None)
            elif item.kind.startswith("map_") and item.resolution == "produce-again":
                again[item.place] = item.target_offset
        return again

    @staticmethod
    def _is_behind(item: Incident) -> bool:
        return item.kind == "map_unknown" and item.resolution is None

    def _close_mapped(self, flow: FlowProducer) -> None:
        """As `run/stopped_partitions.py: check`: what the map has by now is over."""
        for item in filter(self._is_behind, self.world.incidents):
            floor = flow.floors().get(item.place.topic_partition)
            at = (item.generation, item.last or 0)
            if floor is not None and (floor.generation, floor.next) > at:
                item.resolution = WENT_ON

    def _holds(self, item: Incident) -> bool:
        """As `lake/incidents.py: decided`: what was decided about another target topic does not
        hold."""
        living = self._targets.living.get(str(item.topic))
        return living is None or item.target_generation == living.number

    def report_behind(self) -> None:
        """As `run/stopped_partitions.py: report_behind`, once there is nothing else to do."""
        if self._flow is not None:
            self._refused(list(self._flow.spec.whole.values()))

    def _refused(self, errors: Sequence[TargetRefused]) -> None:
        for error in errors:
            if isinstance(error, TargetLost):
                self._lost_under_way(error)
                continue
            if isinstance(error, TopicRefused):
                self._denied.add(error.topic)
                self._begins_anew = True
            names = {"first": "first_offset", "last": "last_offset"}
            names |= {name: name for name in ("generation", "target_generation", "target_offset")}
            facts = {name: getattr(error, attribute) for name, attribute in names.items()}
            self.world.tell(error.incident_kind, *error.topic_partition, detail=str(error), **facts)

    def _lost_under_way(self, error: TargetLost) -> None:
        self._targets.differs(self._closed)
        if error.topic not in self._targets.closed() and self._flow is not None:
            key, flow = error.topic_partition, self._flow
            lost = Lost(flow.floors()[key].target_generation, error.target_offset)
            try:
                flow.drain()
            finally:
                last = (error.generation or 0, (error.first_offset or 0) - 1)
                losses = {key: MappedLoss(key[0], lost, last)}
                self._tell_lost(*loss_errors(MemoryLosses(self.world), FLOW, losses))  # type: ignore[arg-type]
        self._begun_with = None  # it begins anew
