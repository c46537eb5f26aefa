"""Records that a target has lost although it had acknowledged them, while the topic is the same
one: a leader that lacks them was elected, or a disk was restored from an older copy.

What is lost is reported, and taken out of the map: no choice makes it true again. The positions
that the flow has in its group stood for it too, so they are set back. Once an operator has decided
how, the flow goes on from the end of the map.
"""

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from mirrorlake.errors import TargetLost
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.incidents import Lost
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.rising_times import time_behind
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.progress import Floor
from mirrorlake.produce.flow import FlowProducer

logger = logging.getLogger(__name__)

#: How long an end has to lie below the map's, seconds, until what is missing counts as lost.
SURE_SECONDS = 3.0
#: The verdict of `verify` on records that are not at the target (docs/trust.md).
_MISSING = "missing_at_target"
Ends = Callable[[Collection[TopicAndPartition]], Mapping[TopicAndPartition, int]]
"""Gives the log ends of target partitions, uncommitted records included, as far as leaders
answer."""


def log_ends_below(producer: FlowProducer, ends: Ends) -> dict[TopicAndPartition, Lost]:
    """Source partitions whose map goes on behind the end of the log of the target, and what is lost
    of each."""
    below = _below(producer, producer.floors(), ends)
    if below:
        threading.Event().wait(SURE_SECONDS)
        floors = producer.floors()
        below = _below(producer, {key: floors[key] for key in below}, ends)
    return below


def _below(
    producer: FlowProducer, floors: Mapping[TopicAndPartition, Floor], ends: Ends
) -> dict[TopicAndPartition, Lost]:
    mapped = {}
    for key, floor in floors.items():
        name = producer.spec.remote_topic(key[0])
        if floor.target is not None and name is not None:
            mapped[key] = ((name, key[1]), floor)
    end_offsets = ends([place for place, _ in mapped.values()]) if mapped else {}
    return {
        key: Lost(floor.target_generation, end_offsets[place])
        for key, (place, floor) in mapped.items()
        if floor.target is not None and place in end_offsets and end_offsets[place] < floor.target
    }


def loss_errors(
    lake: Lake,
    flow: str,
    name: str,
    key: TopicAndPartition,
    *,
    lost: Lost,
    written: tuple[int, int] | None = None,
) -> list[TargetLost]:
    """What operators hear of a loss in the target topic `name`: of each generation of the source
    topic that had records there, oldest first. `written` is the generation and the source offset of
    the last record that was written, where the map may not have it yet."""
    parts: dict[int, dict[str, Any]] = {
        row["generation"]: dict(row) for row in _in_map(lake, flow, name, key, lost)
    }
    if written is not None:
        generation, last = written
        part = parts.setdefault(
            generation, {"first_offset": last, "last_offset": last, "record_count": 0}
        )
        part["last_offset"] = max(part["last_offset"], last)
    nothing: dict[int, dict[str, Any]] = {
        0: dict.fromkeys(("first_offset", "last_offset")) | {"record_count": 0}
    }
    return [
        _loss_error(flow, name, key, lost=lost, generation=generation, part=part)
        for generation, part in sorted((parts or nothing).items())
    ]


def _loss_error(
    flow: str,
    name: str,
    key: TopicAndPartition,
    *,
    lost: Lost,
    generation: int,
    part: Mapping[str, Any],
) -> TargetLost:
    topic, partition = key
    where = f"source offsets {part['first_offset']} to {part['last_offset']}"
    return TargetLost(
        f"{name}-{partition} has lost records that it had acknowledged: all from offset "
        f"{lost.target_offset} on, which are {part['record_count']} records of {topic}-{partition} "
        f"({where}), though the topic is the same one; the partition waits until you decide: "
        f"mirrorlake resolve --flow '{flow}' --topic '{topic}' --choice produce-again (or accept, "
        "or stop)",
        target_offset=lost.target_offset,
        topic=topic,
        partition=partition,
        first_offset=part["first_offset"],
        last_offset=part["last_offset"],
        generation=generation,
        target_generation=lost.target_generation,
    )


def take_out(lake: Lake, producer: FlowProducer, lost: Mapping[TopicAndPartition, Lost]) -> bool:
    """Let the map, the target's positions and what was proven say nothing of lost records any more;
    returns whether they did, and the flow has to begin anew. Who dies in between does it again."""
    floors, spec = producer.floors(), producer.spec
    names = {key: name for key in lost if (name := spec.remote_topic(key[0])) is not None}
    due = {
        key: loss
        for key, loss in lost.items()
        if key in names and _is_mapped(floors.get(key), loss)
    }
    if due:
        producer.set_back(
            {(names[key], key[1]): loss.target_generation for key, loss in due.items()}
        )
    for key, loss in due.items():
        _take_out_proofs(lake, spec.name, names[key], key, loss)
        lake.change("cut_map", None, flow=spec.name, **_place(names[key], key, loss))
        logger.warning(
            "flow %s: the map of %s-%d ends where the target's log does", spec.name, *key
        )
    return bool(due)


def _is_mapped(floor: Floor | None, lost: Lost) -> bool:
    """Whether the map has lost records still."""
    return (
        floor is not None
        and floor.target_generation == lost.target_generation
        and (floor.target or 0) > lost.target_offset
    )


def _place(name: str, key: TopicAndPartition, lost: Lost) -> dict[str, object]:
    return {"topic": key[0], "partition": key[1], "target_topic": name, **lost._asdict()}


def _in_map(
    lake: Lake, flow: str, name: str, key: TopicAndPartition, lost: Lost
) -> list[dict[str, int]]:
    """What the map has of lost records, by generation of the source topic."""
    return list(lake.ask("lost_of_map", None, flow=flow, **_place(name, key, lost)))


def _take_out_proofs(lake: Lake, flow: str, name: str, key: TopicAndPartition, lost: Lost) -> None:
    """What was proven of lost records is not there any more."""
    gone = {
        row["generation"]: (row["first_offset"], row["last_offset"])
        for row in _in_map(lake, flow, name, key, lost)
    }
    rows = []
    proven = lake.ask("proven_ranges", flow=flow)
    now = time_behind(max((row["audited_at"] for row in proven), default=None))
    for row in proven:
        first, last = gone.get(row["generation"], (0, -1))
        low, high = max(first, row["first_offset"]), min(last, row["last_offset"])
        place = (row["topic"], row["partition"], row["target_generation"])
        if place == (*key, lost.target_generation) and row["proven"] and low <= high:
            kept = {name: row[name] for name in ("topic", "partition", "generation")}
            kept |= {"target_topic": name, "target_generation": lost.target_generation}
            counts = {"stage_count": high - low + 1, "target_count": 0, "verdict": _MISSING}
            kept |= {"flow": flow, "first_offset": low, "last_offset": high, **counts}
            rows.append({**kept, "audited_at": now})
    lake.append("audits", rows_of("audits", rows))
