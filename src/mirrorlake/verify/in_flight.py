"""What a flow has written at its target that its map does not have yet, by the target's own word."""

from collections.abc import Collection

from confluent_kafka import Consumer, KafkaException, TopicPartition

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.lake import Lake
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.runs import decode_written
from mirrorlake.produce.spec import name_at_target
from mirrorlake.verify.ranges import Extent

_ANSWER_SECONDS = 30.0


def in_flight(
    flow: ResolvedFlow, lake: Lake, connections: Connections, partitions: Collection[TopicAndPartition]
) -> dict[TopicAndPartition, tuple[Extent, ...]]:
    """Target offsets, by target partition, that were written since the map was last appended to.

    A partition of which the target knows no position is missing: nobody can know what lies behind the map's end there.
    Raises KafkaException.
    """
    if flow.settings.delivery != "exactly_once" or not lake.stored_id or not partitions:
        return {}
    settings = {"group.id": name_at_target(lake, flow.name), "isolation.level": "read_committed"}
    consumer = Consumer({**connections.client(flow.target, "admin"), **settings, "enable.auto.commit": False})
    try:
        asked = [TopicPartition(topic, partition) for topic, partition in sorted(partitions)]
        found: dict[TopicAndPartition, tuple[Extent, ...]] = {}
        for item in consumer.committed(asked, _ANSWER_SECONDS):
            if item.error is not None:
                raise KafkaException(item.error)
            if item.offset >= 0:
                written = decode_written(item.metadata or "").written
                extents = ((one.target_first, one.target_first + one.record_count - 1) for one in written)
                found[item.topic, item.partition] = tuple(extents)
        return found
    finally:
        consumer.close()
