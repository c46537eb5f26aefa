"""Target topics as the simulation has them: the real watch over their generations, over memory.

What is around it in a process, `control/topic_sync.py`, is a model: which topics are wanted, making
them, growing them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from mirrorlake.control import target_generations
from mirrorlake.control.target_generations import TargetGenerations
from mirrorlake.errors import TargetRecreated
from mirrorlake.kafka.values import TopicIdentity
from mirrorlake.lake.targets import MappedTarget
from mirrorlake.offsets.generations import NotedTarget, TargetDecision
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.batch import PartitionPlan
from tests.simulation.kafka import Log, timed_out
from tests.simulation.world import FLOW, TARGET, World


class TargetsUnmade(Exception):
    """A batch's topic waits for an operator: the flow begins anew without it."""


class MemoryTargets:
    """The target topics of one process. They have the names of the source's."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._generations = TargetGenerations(world, FLOW, _Admin(world), _Incidents(world))  # type: ignore[arg-type]

    @property
    def living(self) -> Mapping[str, Any]:
        """The generations that may be written to."""
        return self._generations.living

    def closed(self) -> frozenset[str]:
        """The topics that get nothing for now."""
        known = self._generations
        return frozenset(known.waiting) | known.stopped | known.decided

    def differs(self, closed: frozenset[str]) -> bool:
        """Whether the flow has to begin anew, which left these out."""
        self._comparison(())
        return closed != self.closed() or bool(self._generations.decided)

    def refresh(self, begins: bool, staged: Iterable[str] = ()) -> None:
        """Make what is missing of what the source has and of what is `staged`; with `begins` also
        what was decided."""
        wanted = {*(self._world.source.topics.keys() & self._world.selected), *staged}
        found = self._comparison(wanted)
        wanted = (
            (wanted | found.decided if begins else wanted - found.decided)
            - found.waiting
            - found.stopped
        )
        for topic in sorted(wanted):
            self._make(topic)
        self._generations.begin(
            found, {topic: topic for topic in sorted(wanted) if topic in found.begin}
        )

    def ensure(self, plans: Sequence[PartitionPlan]) -> None:
        """Be sure that a batch's topics are there."""
        self._world.steps.reach("targets", timed_out)
        self.refresh(False, {plan.target_topic for plan in plans})
        if any(plan.target_topic not in self.living for plan in plans):
            raise TargetsUnmade

    def _comparison(self, names: Collection[str]) -> Any:
        noted = self._generations.names().keys() & self._world.selected
        return self._generations.comparison({topic: topic for topic in sorted({*names, *noted})})

    def _make(self, topic: str) -> None:
        """With as many partitions as the source ever had."""
        world = self._world
        count = max(len(made.logs) for made in world.topics if made.name == topic)
        if topic not in world.target.topics:
            world.target.create(topic, count)
        logs = world.target.topics[topic].logs
        logs.extend(Log() for _ in range(count - len(logs)))


class _Admin:
    """`kafka.admin.ClusterAdmin` of the target, as far as the watch asks it."""

    alias = TARGET

    def __init__(self, world: World) -> None:
        self._world = world

    def identities(
        self, topics: Collection[str]
    ) -> tuple[dict[str, TopicIdentity], frozenset[str]]:
        self._world.steps.reach("target ids", timed_out)
        there = self._world.target.topics
        found = {
            name: TopicIdentity(there[name].topic_id, len(there[name].logs))
            for name in topics
            if name in there
        }
        return found, frozenset(topics) - found.keys()

    def end_offsets(
        self, keys: Iterable[TopicAndPartition], committed: bool, skip_silent: bool
    ) -> dict[TopicAndPartition, int]:
        assert skip_silent, "one silent leader must not hold up the others"
        self._world.steps.reach("target ends", timed_out)
        logs = {key: self._world.target.log(*key) for key in keys}
        return {
            key: log.stable if committed else log.end
            for key, log in logs.items()
            if log is not None
        }


class _Incidents:
    """`lake.incidents.Incidents`, as far as the watch tells."""

    def __init__(self, world: World) -> None:
        self._world = world

    def open_all(self, _flow: str, kind: str, problems: Sequence[TargetRecreated]) -> None:
        if not problems:
            return
        self._world.steps.write("incident append", timed_out)
        for problem in problems:
            self._world.tell(
                kind,
                problem.topic,
                first=problem.first_offset,
                last=problem.last_offset,
                detail=problem.message,
                target_generation=problem.target_generation,
            )
        self._world.steps.reach("incident appended", timed_out)


def stand_ins() -> list[tuple[Any, str, object]]:
    """What takes the place of the lake's functions and of the clock: (module, name, stand-in)."""
    functions = {
        "noted_targets": _noted,
        "note_targets": _note,
        "target_decisions": _decisions,
        "mapped_targets": _mapped,
        "close_unfounded": _close_unfounded,
        "GONE_SECONDS": 0.0,
        "MADE_SECONDS": 0.0,
        "attempts": lambda *_: iter([True]),
        "logger": SimpleNamespace(
            **{name: lambda *_: None for name in ("info", "warning", "error")}
        ),
    }
    return [(target_generations, name, value) for name, value in functions.items()]


def _noted(world: World, _flow: str) -> tuple[dict[str, list[NotedTarget]], dict[str, str]]:
    return {topic: list(items) for topic, items in world.noted.items()}, {
        topic: topic for topic in world.noted
    }


def _note(world: World, _flow: str, begun: Mapping[tuple[str, str], NotedTarget]) -> None:
    world.steps.write("target generations append", timed_out)
    for (topic, _), noted in begun.items():
        world.noted.setdefault(topic, []).append(noted)
    world.steps.reach("target generations appended", timed_out)


def _decisions(world: World, _flow: str) -> list[TargetDecision]:
    return [
        TargetDecision(str(item.topic), item.target_generation, item.resolution)
        for item in world.incidents
        if item.kind == "target_recreated"
    ]


def _mapped(world: World, _flow: str, topics: Collection[str]) -> dict[str, list[MappedTarget]]:
    newest: dict[TopicAndPartition, MappedTarget] = {}
    for row in world.tables.of("offset_map"):
        key, number = (row["topic"], row["partition"]), row["target_generation"] or 0
        before = newest.get(key)
        if key[0] not in topics or (before is not None and before.generation > number):
            continue
        first, last, count, end = (
            row["source_first"],
            row["source_last"],
            row["record_count"],
            row["target_last"] + 1,
        )
        if before is not None and before.generation == number:
            first, last = min(first, before.first), max(last, before.last)
            count, end = count + before.record_count, max(end, before.end)
        newest[key] = MappedTarget(*key, number, first, last, count, end)
    found: dict[str, list[MappedTarget]] = {}
    for (topic, _), item in newest.items():
        found.setdefault(topic, []).append(item)
    return found


def _close_unfounded(world: World, _flow: str, noted: Collection[tuple[str, str, int]]) -> None:
    numbers = {topic: number for topic, _, number in noted}
    for item in world.incidents:
        about = (
            item.kind == "target_recreated"
            and numbers.get(str(item.topic)) == item.target_generation
        )
        if about and item.resolution in (None, "again", "continue"):
            item.resolution = "the topic is the one that it was"
