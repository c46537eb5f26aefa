"""How far the target says that a flow is, and what was written there that the flow's map may not
have yet."""

from collections.abc import Collection
from dataclasses import dataclass

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.committed import committed_by
from mirrorlake.lake.deployment import Deployment
from mirrorlake.naming.at_target import name_at_target
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.runs import decode_written
from mirrorlake.verify.ranges import Extent


@dataclass(frozen=True)
class TargetPosition:
    """What the target has committed for a flow in one of its partitions.

    `offset` is the next source offset, of this `generation` of the source topic: the flow is done
    with all in front of it, be it written or left out on purpose. `written` are the target offsets
    that were written since the map was last appended to, in this `target_generation`.
    """

    offset: int
    generation: int
    target_generation: int
    written: tuple[Extent, ...]

    def is_mapped(self, target_end: int) -> bool:
        """Whether a map that ends in front of a target offset has all that was written."""
        return all(last < target_end for _, last in self.written)


def target_positions(
    flow: ResolvedFlow, deployment: Deployment, partitions: Collection[TopicAndPartition]
) -> dict[TopicAndPartition, TargetPosition]:
    """By target partition. One of which the target knows no position is missing: it cannot be known
    what lies behind the map's end there. Raises KafkaException."""
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
        metadata = decode_written(text)
        written = tuple(
            (one.target_first, one.target_first + one.record_count - 1) for one in metadata.written
        )
        positions[key] = TargetPosition(
            offset, metadata.generation, metadata.target_generation, written
        )
    return positions
