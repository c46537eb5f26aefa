"""How far the target reports a flow to be, and what was written there that the flow's map may not
have yet; where the target does not know that, what the flow's samples prove; and whether records
that nothing holds up are on their way."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from mirrorlake.attempts import attempts
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.answered_offsets import committed_by
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.samples import newest_samples
from mirrorlake.naming.at_target import name_at_target
from mirrorlake.offsets.generations import GenerationIds, number_of
from mirrorlake.offsets.positions import MirroredPartition, PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.ranges import Extent
from mirrorlake.offsets.runs import decode_metadata
from mirrorlake.verify.not_compared import NO_ANSWER, NotCompared

#: How long the map of a running flow may take to have what was written, and how often to look,
#: seconds: rows wait for those of later batches, and a batch takes as long as its transactions.
MAP_SECONDS, _LOOK_SECONDS = 60.0, 2.0
_SAMPLED = ("produced_end", "target_passed_end", "mapped_end")


@dataclass(frozen=True)
class TargetPosition:
    """What the target has committed for a flow in one of its partitions.

    `offset` is the next source offset, of this `generation` of the source topic: the flow has
    passed all records in front of it, written or left out on purpose. `written` are the target
    offsets written since the map was last appended to, in this `target_generation`. The generations
    are numbered by the lake that wrote them, see `own`.
    """

    offset: int
    generation: int
    target_generation: int
    written: tuple[Extent, ...]
    source_id: str = ""
    target_id: str = ""

    def own(self, source: GenerationIds, target: GenerationIds) -> "TargetPosition | None":
        """The same position in a lake's own numbers, by its ids of the generations of the source
        and target topics; None if it does not know one of these."""
        generation = number_of(source, self.generation, self.source_id)
        target_generation = number_of(target, self.target_generation, self.target_id)
        if generation is None or target_generation is None:
            return None
        return replace(self, generation=generation, target_generation=target_generation)

    def is_mapped(self, target_end: int) -> bool:
        """Whether a map that ends in front of a target offset has all that was written."""
        return all(last < target_end for _, last in self.written)


def target_positions(
    flow: ResolvedFlow, deployment: Deployment, partitions: Collection[TopicAndPartition]
) -> dict[TopicAndPartition, TargetPosition]:
    """Positions by target partition. Partitions without a committed position are missing, as are
    all where delivery is not exactly once: it cannot be known whose the records behind the map's
    end are there (`coverage.find_not_compared`). Raises KafkaException."""
    lake = deployment.lake
    if flow.settings.delivery != "exactly_once" or not lake.stored_id or not partitions:
        return {}
    committed = committed_by(
        deployment.connections.client(flow.target, "admin"),
        name_at_target(lake.lake_id, flow.name),
        partitions,
    )
    positions: dict[TopicAndPartition, TargetPosition] = {}
    for key, (offset, text) in committed.items():
        metadata = decode_metadata(text)
        written = tuple(
            (one.target_first, one.target_first + one.record_count - 1) for one in metadata.written
        )
        numbers = (offset, metadata.generation, metadata.target_generation)
        positions[key] = TargetPosition(*numbers, written, metadata.source_id, metadata.target_id)
    return positions


@dataclass(frozen=True)
class SampledEnd:
    """What the newest sample of a partition proves, once the map has come to the source position
    `mapped_end`: the flow has passed all records in front of the source position `offset`, and what
    it wrote in front of the target position `target_end` is in the map."""

    offset: int
    target_end: int
    mapped_end: int


def sampled_ends(lake: Lake, flow: str) -> dict[MirroredPartition, SampledEnd]:
    """What the newest samples of a flow prove. A broker forgets a position after a week without a
    commit, while the sample of a partition holds until it changes."""
    return {
        MirroredPartition.from_row(row): SampledEnd(*(row[name] for name in _SAMPLED))
        for row in newest_samples(lake, flow)
        if None not in (row["generation"], *(row[name] for name in _SAMPLED))
    }


def not_on_the_way(
    lake: Lake, flow: str, waiting: Sequence[NotCompared], stuck_seconds: float
) -> dict[NotCompared, str]:
    """The records that are not on their way although a process runs the flow, with why: the flow
    does not read their partition, or has stood in front of them for `stuck_seconds`, or its map
    does not come to what the target has behind it."""
    samples = {(row["topic"], row["partition"]): row for row in newest_samples(lake, flow)}
    held: dict[NotCompared, str] = {}
    for stretch in waiting:
        row = samples.get((stretch.topic, stretch.partition))
        if row is not None and row["source_end"] is None:
            held[stretch] = "the flow is running, and does not read the partition"
        elif row is not None and (since := row["stalled_since"]) is not None:
            since = since.replace(tzinfo=timezone.utc)
            if row["held_at"] - since.timestamp() >= stuck_seconds:
                held[stretch] = f"the flow is running, and has not moved here since {_text(since)}"
    written = [one for one in waiting if one.reason == NO_ANSWER and one not in held]
    return held | {one: one.detail for one in _left_behind(lake, flow, written)}


def _left_behind(lake: Lake, flow: str, tails: Sequence[NotCompared]) -> Sequence[NotCompared]:
    """What the target has behind the end of the map, in partitions whose map does not go on."""
    lake_map = LakeMap(lake, flow)
    for _ in attempts(MAP_SECONDS, _LOOK_SECONDS) if tails else ():
        ends = {
            PartitionGeneration(end.topic, end.partition, end.generation): end.source_position
            for end in sorted(lake_map.ends()[0], key=lambda end: end.target_generation)
        }  # of the newest generation of the target topic
        tails = [one for one in tails if ends.get(one.place, 0) <= one.first]
        if not tails:
            break
    return tails


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
