"""How far the target reports a flow, and what was written there that the map may not have yet."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.answered_offsets import committed_by
from mirrorlake.lake.deployment import Deployment
from mirrorlake.naming.at_target import name_at_target
from mirrorlake.offsets.generations import GenerationIds, number_of
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.runs import decode_metadata
from mirrorlake.verify.ranges import Extent


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
