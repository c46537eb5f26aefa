"""What the lake knows of a flow's target topics: generations, what is mapped, decisions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Frame, Reader, one_of
from mirrorlake.lake.rising_times import next_time
from mirrorlake.offsets.generations import NotedTarget, TargetDecision


@dataclass(frozen=True)
class MappedTarget:
    """What the map holds of a partition of a target topic, in the newest generation there. `first`
    and `last` are source offsets, inclusive; `end` is the target offset behind the last record."""

    topic: str
    partition: int
    generation: int
    first: int
    last: int
    record_count: int
    end: int


@dataclass(frozen=True)
class LivingTarget:
    """The newest generation of a target topic. It `lives` unless over, with none since."""

    target_topic: str
    generation: int
    topic_id: str
    lives: bool


class LivingMirror(NamedTuple):
    """The topic that a source topic is mirrored to now (None: it is mirrored to none), and that
    topic's generation (None: it is over and no other has begun)."""

    name: str | None
    generation: int | None

    def is_of(self, row: Mapping[str, Any]) -> bool:
        """Whether an incident (a row of `mirror_incidents`) may be about this topic and generation:
        a name or number that one side lacks is not compared."""
        noted = (row["target_topic"], row["target_generation"])
        return all(None in pair or len({*pair}) == 1 for pair in zip(noted, self, strict=True))


def noted_targets(lake: Lake, flow: str) -> tuple[dict[str, list[NotedTarget]], dict[str, str]]:
    """All generations of each target topic of a flow, ordered by number, whatever the clocks said
    when they were noted; and the newest target topic of each source topic."""
    generations: dict[str, list[NotedTarget]] = {}
    names: dict[str, str] = {}
    for row in lake.ask("target_generations_of", flow=flow):
        noted = NotedTarget(
            row["target_generation"],
            row["topic_id"],
            row["begins"],
            tuple(row["began"] or ()),
            row["started_at"],
        )
        generations.setdefault(row["target_topic"], []).append(noted)
        names[row["topic"]] = row["target_topic"]
    for of_target in generations.values():
        of_target.sort(key=lambda noted: noted.number)
    return generations, names


def note_targets(lake: Lake, flow: str, begun: Mapping[tuple[str, str], NotedTarget]) -> None:
    """Note generations that begin, by (source topic, target topic)."""
    if not begun:
        return
    common = {"flow": flow, "started_at": next_time(lake.now, "newest_target")}
    rows = [
        {
            **common,
            "topic": topic,
            "target_topic": target,
            "target_generation": noted.number,
            "topic_id": noted.topic_id,
            "begins": noted.begins,
            "began": list(noted.began),
        }
        for (topic, target), noted in begun.items()
    ]
    lake.append("target_generations", rows_of("target_generations", rows))


def target_decisions(lake: Lake, flow: str) -> list[TargetDecision]:
    """The target topics that are gone or were made again, with what was decided; oldest first."""
    rows = lake.ask("target_decisions", flow=flow)
    return [
        TargetDecision(
            row["topic"],
            row["target_generation"],
            None if row["open"] else row["resolution"] or "",
            row["target_topic"] or "",
        )
        for row in rows
    ]


def stopped_targets(lake: Lake, flow: str) -> set[tuple[str, str]]:
    """The source topics, each with a target topic, that an operator has decided to stop, since the
    newest generation of the target topic is gone: nothing is sent there any more."""
    stopped = {
        (decision.topic, decision.target, decision.generation)
        for decision in target_decisions(lake, flow)
        if decision.resolution == "stop"
    }
    rows = lake.ask("target_generations_of", flow=flow) if stopped else ()
    newest: dict[str, int] = {}
    for row in rows:
        target, number = row["target_topic"], row["target_generation"]
        newest[target] = max(number, newest.get(target, number))
    return {
        (topic, target)
        for topic, target in {(row["topic"], row["target_topic"]) for row in rows}
        if {(topic, target, newest[target]), (topic, "", newest[target])} & stopped
    }


def closed_topics(lake: Reader, flow: str, known: Mapping[str, LivingTarget]) -> set[str]:
    """The source topics whose target topic is gone or was made again, and which wait for a decision
    or were stopped by one. `known` are the newest generations, by source topic."""
    return {
        row["topic"]
        for row in lake.query_rows("target_decisions", flow=flow)
        if row["topic"] in known
        and row["target_topic"] in (None, known[row["topic"]].target_topic)
        and row["target_generation"] == known[row["topic"]].generation
        and (row["open"] or row["resolution"] == "stop")
    }


def mapped_targets(lake: Lake, flow: str, topics: Collection[str]) -> dict[str, list[MappedTarget]]:
    """What the map of a flow holds of the target topics of some source topics, by target topic."""
    condition, names = one_of("topic", topics)
    runs = f"SELECT * FROM offset_map WHERE flow = :flow AND {condition}"
    by_target: dict[str, list[MappedTarget]] = {}
    for row in lake.ask("mapped_targets", {"runs": runs}, flow=flow, **names) if names else ():
        key = (row["topic"], row["target_partition"], row["target_generation"])
        mapped = MappedTarget(
            *key, row["source_first"], row["source_last"], row["record_count"], row["target_end"]
        )
        by_target.setdefault(row["target_topic"], []).append(mapped)
    return by_target


def close_unfounded(lake: Lake, flow: str, noted: Collection[tuple[str, str, int]]) -> None:
    """Close incidents, and decisions of operators, about target topics that are the noted ones
    after all: (source topic, target topic, generation)."""
    if noted:
        frame = Frame("topic STRING, target_topic STRING, target_generation INT", list(noted))
        lake.change("close_unfounded_targets", {"noted": frame}, flow=flow)


def living_targets(lake: Reader, flow: str) -> dict[str, LivingTarget]:
    """The newest generation of the target topic of each source topic."""
    return {
        row["topic"]: LivingTarget(
            row["target_topic"], row["target_generation"], row["topic_id"], row["lives"]
        )
        for row in lake.query_rows("living_targets_of", flow=flow)
    }


def generations_begun(lake: Lake, flow: str) -> dict[str, datetime | None]:
    """When the newest generation of each target topic of a flow was noted."""
    noted, _ = noted_targets(lake, flow)
    return {name: of_target[-1].noted_at for name, of_target in noted.items()}
