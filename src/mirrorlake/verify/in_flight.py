"""How far the target says that a flow is, and what was written there that the flow's map may not
have yet."""

from collections.abc import Collection
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, TopicPartition

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.lake import Lake
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.runs import decode_written
from mirrorlake.produce.spec import name_at_target
from mirrorlake.verify.ranges import Extent

_ANSWER_SECONDS = 30.0


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
    flow: ResolvedFlow,
    lake: Lake,
    connections: Connections,
    partitions: Collection[TopicAndPartition],
) -> dict[TopicAndPartition, TargetPosition]:
    """By target partition. One of which the target knows no position is missing: it cannot be known
    what lies behind the map's end there. Raises KafkaException."""
    if flow.settings.delivery != "exactly_once" or not lake.stored_id or not partitions:
        return {}
    settings = {"group.id": name_at_target(lake, flow.name), "isolation.level": "read_committed"}
    consumer = Consumer(
        {**connections.client(flow.target, "admin"), **settings, "enable.auto.commit": False}
    )
    try:
        asked = [TopicPartition(topic, partition) for topic, partition in sorted(partitions)]
        positions: dict[TopicAndPartition, TargetPosition] = {}
        for committed in consumer.committed(asked, _ANSWER_SECONDS):
            if committed.error is not None:
                raise KafkaException(committed.error)
            if committed.offset >= 0:
                metadata = decode_written(committed.metadata or "")
                written = tuple(
                    (one.target_first, one.target_first + one.record_count - 1)
                    for one in metadata.written
                )
                place = (committed.offset, metadata.generation, metadata.target_generation)
                positions[committed.topic, committed.partition] = TargetPosition(*place, written)
        return positions
    finally:
        consumer.close()
