"""Which target topics are not the ones that a flow writes to, or no longer are."""

import logging

from confluent_kafka import KafkaException

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnusable
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import TopicIdentity
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.targets import living_targets

logger = logging.getLogger(__name__)


def closed_targets(lake: Reader, connections: Connections, flow: ResolvedFlow) -> dict[str, str]:
    """Source topics whose target topic is not the one that the flow writes to, or no longer is, and
    why: their target offsets mean nothing. If the target does not answer, the lake's knowledge
    counts."""
    living = living_targets(lake, flow.name)
    identities: dict[str, TopicIdentity] = {}
    missing: frozenset[str] = frozenset()
    try:
        names = sorted({target.target_topic for target in living.values()})
        identities, missing = connections.admin(flow.target).identities(names)
    except (ClusterUnusable, KafkaException) as error:
        logger.warning("%s", error)
    closed = {}
    for topic, target in living.items():
        there = identities.get(target.target_topic)
        gone = target.target_topic in missing or (there and there.topic_id != target.topic_id)
        if gone or not target.lives:
            closed[topic] = (
                f"{target.target_topic} at cluster {flow.target} is gone, or not the topic that "
                f"flow {flow.name} wrote to; run the flow, and decide with mirrorlake resolve"
            )
    return closed
