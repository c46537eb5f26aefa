"""Which target topics are not the ones that a flow writes to, or no longer are."""

import logging
from collections.abc import Collection

from confluent_kafka import KafkaException

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnusable
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import TopicIdentity
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.targets import living_targets

logger = logging.getLogger(__name__)


def closed_targets(
    lake: Reader, connections: Connections, flow: ResolvedFlow, sure: bool = True
) -> dict[str, str]:
    """Source topics whose target topic is not the one that the flow writes to, or no longer is, and
    why: their target offsets mean nothing.

    With `sure` a topic is closed too of which the target does not say which one it has, and a
    target that does not answer raises ClusterUnusable. Without, the lake's knowledge counts.
    """
    living = living_targets(lake, flow.name)
    identities: dict[str, TopicIdentity] = {}
    missing: frozenset[str] = frozenset()
    try:
        names = {target.target_topic for target in living.values()}
        identities, missing = _identities(connections, flow, names)
    except ClusterUnusable as error:
        if sure:
            raise
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
        elif sure and there is None:
            closed[topic] = (
                f"cluster {flow.target} does not say whether {target.target_topic} is the topic "
                f"that flow {flow.name} wrote to; run this again once it does"
            )
    return closed


def _identities(
    connections: Connections, flow: ResolvedFlow, names: Collection[str]
) -> tuple[dict[str, TopicIdentity], frozenset[str]]:
    try:
        return connections.admin(flow.target).identities(sorted(names))
    except KafkaException as error:
        message = f"cluster {flow.target} does not say which topics it has: {error.args[0].str()}"
        raise ClusterUnusable(message, alias=flow.target) from error
