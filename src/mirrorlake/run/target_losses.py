"""Records that a target has lost although it had acknowledged them, while the topic is the same
one: a leader that lacks them was elected, or a disk was restored from an older copy.

Lost records are reported, and cut out of the map: no choice brings them back. The flow's positions
in its group stood for them too, so these are set back. Once an operator has decided how, the flow
goes on from the end of the map. Records that replays and restores had sent there are not in the
flow's map: parked ones wait to be replayed once more.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from mirrorlake.attempts import attempts
from mirrorlake.errors import TargetLost
from mirrorlake.lake.decisions import Lost
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Frame
from mirrorlake.lake.rising_times import time_behind
from mirrorlake.offsets.positions import Ends, TopicAndPartition
from mirrorlake.offsets.progress import Floor
from mirrorlake.produce.flow import FlowProducer

logger = logging.getLogger(__name__)

#: How long an end has to lie below the map's end, seconds, until the records count as lost.
SURE_SECONDS = 3.0
_LOOK_SECONDS = 0.5
_LOST = (
    "topic STRING, partition INT, target_topic STRING, target_generation INT, target_offset BIGINT"
)
_WAITING = (
    "topic STRING, partition INT, generation INT, offset BIGINT, target_topic STRING, "
    "target_generation INT"
)
#: The verdict of `verify` on records that are not at the target (docs/trust.md).
_MISSING = "missing_at_target"
AskEnds = Callable[[Collection[TopicAndPartition]], Mapping[TopicAndPartition, int]]
"""Gives the log ends of target partitions, uncommitted records included, as far as leaders
answer."""


class ResentExtent(NamedTuple):
    """How far a replay or restore has written into a partition of a flow's target topic. `topic` is
    the topic that it sent, `mirrored` the one that the flow mirrors there. `target_generation` is
    the target topic's generation by the flow, `resend_generation` by the resend."""

    resend: str
    mirrored: str
    topic: str
    partition: int
    target_topic: str
    target_generation: int
    resend_generation: int
    target_end: int

    @property
    def key(self) -> TopicAndPartition:
        """The partition that the flow mirrors there."""
        return self.mirrored, self.partition


def resent_to(lake: Lake, flow: str) -> list[ResentExtent]:
    """How far resends have written into the target topics of a flow."""
    return [ResentExtent(**row) for row in lake.ask("resent_here", flow=flow)]


def log_ends_below(
    producer: FlowProducer, ends: AskEnds, resent: Iterable[ResentExtent] = ()
) -> dict[TopicAndPartition, Lost]:
    """Source partitions mapped, also by a resend, above the target's log end, with what is lost."""
    places = dict[TopicAndPartition, tuple[TopicAndPartition, int]]()
    mapped = dict[TopicAndPartition, int]()
    name_of = producer.spec.remote_topic
    for key, floor in producer.floors().items():
        name = name_of(key[0])
        if floor.target is not None and name is not None:
            places[name, key[1]] = key, floor.target_generation
            mapped[name, key[1]] = floor.target
    for one in resent:
        place = one.target_topic, one.partition
        if name_of(one.mirrored) == one.target_topic:
            places[place] = one.key, one.target_generation
            mapped[place] = max(one.target_end, mapped.get(place, 0))
    below = ends_below(ends, mapped)
    return {places[place][0]: Lost(places[place][1], end) for place, end in below.items()}


def ends_below(ends: AskEnds, mapped: Ends) -> Ends:
    """The log ends that stay below `mapped` for SURE_SECONDS: a leader that was just elected learns
    its high watermark later. Partitions whose leaders do not answer are left out."""
    below: Ends = mapped
    for _ in attempts(SURE_SECONDS, _LOOK_SECONDS):
        answers = ends(below.keys()) if below else {}
        below = {place: end for place, end in answers.items() if end < mapped[place]}
        if not below:
            break
    return below


class MappedLoss(NamedTuple):
    """What the mirror of a source partition has lost: the target topic's name, the loss, and the
    generation and source offset of the last written record if the map may not have it yet."""

    name: str
    lost: Lost
    written: tuple[int, int] | None = None


Losses = Mapping[TopicAndPartition, MappedLoss]
"""By source partition."""


def loss_errors(lake: Lake, flow: str, losses: Losses) -> list[TargetLost]:
    """The errors that operators see: one per source generation with records there, oldest first."""
    in_map = _in_map(lake, flow, losses)
    return [
        _loss_error(flow, loss.name, key, lost=loss.lost, generation=generation, part=part)
        for key, loss in losses.items()
        for generation, part in _parts(in_map.get(key, ()), loss.written)
    ]


def _parts(
    mapped: Collection[Mapping[str, Any]], written: tuple[int, int] | None
) -> list[tuple[int, Mapping[str, Any]]]:
    """The lost records by generation: those in the map, and those written behind it."""
    parts: dict[int, dict[str, Any]] = {row["generation"]: dict(row) for row in mapped}
    if written is not None:
        generation, last = written
        part = parts.setdefault(
            generation, {"first_offset": last, "last_offset": last, "record_count": 0}
        )
        part["last_offset"] = max(part["last_offset"], last)
    if not parts:
        return [(0, {"first_offset": None, "last_offset": None, "record_count": 0})]
    return sorted(parts.items())


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
    first, last = part["first_offset"], part["last_offset"]
    which = f", which are {part['record_count']} records of {topic}-{partition} "
    which += f"(source offsets {first} to {last})"
    return TargetLost(
        f"{name}-{partition} has lost records that it had acknowledged: all from offset "
        f"{lost.target_offset} on{'' if first is None else which}, though the topic is the same "
        "one; the partition waits until you decide: "
        f"mirrorlake resolve --flow '{flow}' --topic '{topic}' --choice produce-again (or accept, "
        "or stop)",
        target_offset=lost.target_offset,
        topic=topic,
        partition=partition,
        first_offset=first,
        last_offset=last,
        generation=generation,
        target_generation=lost.target_generation,
        target_topic=name,
    )


def take_out(lake: Lake, producer: FlowProducer, lost: Mapping[TopicAndPartition, Lost]) -> bool:
    """Take lost records out of the map, the target's positions and the proofs. Returns whether
    there were any: the flow has to begin anew. The map is cut last: this can be repeated."""
    floors, spec = producer.floors(), producer.spec
    due = {
        key: MappedLoss(name, loss)
        for key, loss in lost.items()
        if _is_mapped(floors.get(key), loss) and (name := spec.remote_topic(key[0])) is not None
    }
    if not due:
        return False
    producer.set_back(
        {(loss.name, key[1]): loss.lost.target_generation for key, loss in due.items()}
    )
    _take_out_proofs(lake, spec.name, due)
    lake.change("cut_map", {"lost": _frame(due)}, flow=spec.name)
    logger.warning(
        "flow %s: the map ends where the target's log does in %d partitions, such as %s-%d",
        spec.name,
        len(due),
        *next(iter(due)),
    )
    return True


def _is_mapped(floor: Floor | None, lost: Lost) -> bool:
    """Whether the map still has lost records."""
    return (
        floor is not None
        and floor.target_generation == lost.target_generation
        and (floor.target or 0) > lost.target_offset
    )


def take_back(lake: Lake, flow: str, losses: Losses, resent: Iterable[ResentExtent]) -> None:
    """Take records that the target has just lost out of the maps of the resends that sent them.

    To be done before the losses are reported: while these wait for a decision, a replay may send
    parked records again. A process that dies in between finds the losses once more.
    """
    touched: dict[TopicAndPartition, MappedLoss] = {}
    cuts = defaultdict[str, list[tuple[object, ...]]](list)
    for one in resent:
        loss = losses.get(one.key)
        if loss is None or loss.lost.target_generation != one.target_generation:
            continue
        offset = loss.lost.target_offset
        if one.target_topic == loss.name and one.target_end > offset:
            touched[one.key] = loss
            place = one.topic, one.partition, one.target_topic
            cuts[one.resend].append((*place, one.resend_generation, offset))
    waiting = lake.ask("parked_lost", {"lost": _frame(touched)}, flow=flow) if touched else ()
    if waiting:
        text = "flow %s: the target has lost %d parked records that were replayed; they wait again"
        logger.warning(text, flow, len(waiting))
        rows = [tuple(row.values()) for row in waiting]
        lake.change("note_parked_lost", {"waiting": Frame(_WAITING, rows)}, flow=flow)
    for resend, rows in cuts.items():
        lake.change("cut_map", {"lost": Frame(_LOST, rows)}, flow=resend)


def _frame(losses: Losses) -> Frame:
    return Frame(_LOST, [(*key, loss.name, *loss.lost) for key, loss in losses.items()])


def _in_map(
    lake: Lake, flow: str, losses: Losses
) -> dict[TopicAndPartition, list[Mapping[str, Any]]]:
    """What the map has of lost records, by source partition, one row per generation."""
    rows: dict[TopicAndPartition, list[Mapping[str, Any]]] = {}
    if losses:
        for row in lake.ask("lost_of_map", {"lost": _frame(losses)}, flow=flow):
            rows.setdefault((row["topic"], row["partition"]), []).append(row)
    return rows


def _take_out_proofs(lake: Lake, flow: str, losses: Losses) -> None:
    """Mark the proofs of lost records as missing at the target. A comparison that read them before
    and is still going on is recognized by when it began (view `proofs`)."""
    gone = {
        (*key, row["generation"]): (row["first_offset"], row["last_offset"])
        for key, rows in _in_map(lake, flow, losses).items()
        for row in rows
    }
    rows = []
    proven = lake.ask("proven_ranges", flow=flow)
    now = time_behind(max((row["audited_at"] for row in proven), default=None))
    for row in proven:
        place = (row["topic"], row["partition"], row["generation"])
        first, last = gone.get(place, (0, -1))
        low, high = max(first, row["first_offset"]), min(last, row["last_offset"])
        if low > high:
            continue
        name, lost, _ = losses[place[:2]]
        if row["target_generation"] == lost.target_generation:
            kept = dict(zip(("topic", "partition", "generation"), place, strict=True))
            kept |= {"target_topic": name, "target_generation": lost.target_generation}
            counts = {"stage_count": high - low + 1, "target_count": 0, "verdict": _MISSING}
            kept |= {"flow": flow, "first_offset": low, "last_offset": high, **counts}
            rows.append({**kept, "audited_at": now})
    lake.append("audits", rows_of("audits", rows))
