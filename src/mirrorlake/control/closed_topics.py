"""Which source topics are no longer the ones that a flow has mirrored, and which target topics are
not the ones that it writes to, or no longer are."""

import logging
from collections.abc import Collection

from confluent_kafka import KafkaException

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnusable
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import TopicIdentity
from mirrorlake.lake.other_logs import made_again, other_logs
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.targets import living_targets
from mirrorlake.landing.generations import since_landed

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


def closed_sources(
    lake: Reader,
    source: ClusterAdmin,
    flow: ResolvedFlow,
    topics: Collection[str],
    sure: bool = True,
) -> dict[str, str]:
    """Which of these source topics were made again since they were landed, and why they are closed:
    the map leads to offsets of a lost log, and a position in the new one has no counterpart until
    an operator lets its generation begin. With `sure` a topic is closed too of which the source
    does not say which one it has. Raises ClusterUnreachable."""
    now = since_landed(lake, source, topics)
    again = now.made_again | other_logs(lake, flow.name).topics.intersection(topics)
    unknown = sorted(now.unknown) if sure else ()
    unsaid = (
        f"cluster {flow.source} does not say whether it is the topic that was mirrored; run this "
        "again once it does"
    )
    return dict.fromkeys(unknown, unsaid) | dict.fromkeys(sorted(again), made_again(flow.source))
