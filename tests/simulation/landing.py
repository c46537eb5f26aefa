"""Landing as the simulation has it: the real plans of landing over memory, and a model of Spark's
query."""

from collections.abc import Collection, Mapping

from mirrorlake.kafka.values import Row as SingleRow
from mirrorlake.landing.plan import LandingPlanner
from mirrorlake.landing.planned import Planned
from mirrorlake.landing.ports import SourceTopic
from mirrorlake.landing.source_comparison import (
    NO_GENERATIONS,
    CurrentGenerations,
    Decision,
    Loss,
    TopicGeneration,
)
from mirrorlake.offsets.positions import LogEnd, LogEnds, PartitionGeneration, TopicAndPartition
from tests.simulation.kafka import timed_out
from tests.simulation.streaming import Checkpoint, Query, QueryFailed, QueryPlan
from tests.simulation.world import SOURCE, Incident, World

_LOSSES = ("topic_recreated", "source_truncated", "source_rewound")


class MemorySource:
    """`landing.plan.Source` over the simulated cluster."""

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
    """`landing.plan.LandingStore` over the simulated tables."""

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
        found: dict[TopicAndPartition, tuple[int, int]] = {}
        for row in self._world.stage.rows():
            key = (row.topic, row.partition)
            found[key] = max(found.get(key, (0, 0)), (row.generation, row.offset + 1))
        for topic, partition, generation, offset in self._world.forgotten:
            key = (topic, partition)
            found[key] = max(found.get(key, (0, 0)), (generation, offset + 1))
        return found

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


class Lander:
    """The loop of `landing/worker.py` without its thread: one call is one batch."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._planner = LandingPlanner(
            SOURCE, MemorySource(world), MemoryLandingStore(world), lambda: 0.0
        )
        self._covered: dict[TopicAndPartition, int] = {}
        self._covered_in = NO_GENERATIONS
        self._selected: frozenset[str] = frozenset()
        self._planned: Planned | None = None
        self._query: Query | None = None

    def land(self) -> bool:
        """One batch; False when there is nothing new."""
        world, planned = self._world, self._planned
        if self._query is not None and planned is not None:
            changed = self._selected != world.selected
            polls = world.salt % 2 == 0 or world.unseen
            if changed or (polls and self._planner.differs(planned, self._covered)):
                self._query = None
        if self._query is None or planned is None:
            self._end_queries()
            planned = self._planned = self._planner.plan(self._covered, self._covered_in)
            world.unseen = False
            self._selected, self._covered = frozenset(world.selected), dict(planned.covered)
            self._covered_in = planned.current_generations
            self._tell(planned)
            if not planned.plan.starts:
                return False
            self._query = self._begin(planned)
        query = self._query
        try:
            moved = query.trigger(world.salt)
            query.check_owner()
        except QueryFailed:
            self._query = None
            now = self._planner.plan(self._covered, self._covered_in)
            if not now.explains(planned.plan, self._covered):
                raise
            return True
        self._covered.update(query.progress)
        world.saw(planned.plan, sampled=world.salt % 4 == 0, covered=self._covered)
        return moved

    def _end_queries(self) -> None:
        """Nothing of a query before this one can be committed any more."""
        world = self._world
        for name, checkpoint in list(world.checkpoints.items()):
            world.stage.fence(checkpoint.query_id)
            del world.checkpoints[name]

    def _begin(self, planned: Planned) -> Query:
        world = self._world
        name = f"query{world.next_id()}"
        checkpoint = world.checkpoints[name] = Checkpoint(name)
        settings = world.settings
        told = QueryPlan(
            SOURCE,
            planned.plan.starts,
            planned.plan.generations,
            settings.land_records,
            settings.land_files,
        )
        return Query(world.source, world.stage, checkpoint, told, world.steps)

    def _tell(self, planned: Planned) -> None:
        self._world.steps.write("incidents append", timed_out)
        for loss in planned.given_up:
            self._world.tell(loss.kind, loss.topic, loss.partition, **_facts(loss))
            self._world.incidents[-1].resolution = "continue"
        for loss in planned.losses:
            self._world.tell(loss.kind, loss.topic, loss.partition, **_facts(loss))


def _facts(loss: Loss) -> dict[str, int | None]:
    return {name: getattr(loss, name) for name in ("first", "last", "generation")}
