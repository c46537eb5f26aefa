"""Everything that would be done, as one document: what `mirrorlake plan` shows."""

from collections.abc import Sequence
from typing import Any

from mirrorlake.core.topic_plan import plan_topics
from mirrorlake.core.topology import ResolvedFlow
from mirrorlake.engine.connections import Connections


def make_plan(connections: Connections, flows: Sequence[ResolvedFlow]) -> dict[str, Any]:
    """Compare both sides of each flow; changes nothing.

    Returns {"clusters": {alias: cluster id}, "flows": [{flow, source, target, policy, delivery, topics: [{topic,
    target_topic, partitions, factor, action, reason}]}]}. Raises TopologyError, ClusterUnreachable.
    """
    connections.check(flows)
    return {
        "clusters": connections.identify([]),
        "flows": [_flow(connections, flow) for flow in flows],
    }


def _flow(connections: Connections, flow: ResolvedFlow) -> dict[str, Any]:
    aliases = connections.topology.aliases
    source, target = connections.admin(flow.source), connections.admin(flow.target)
    plans = plan_topics(
        flow.selection(aliases),
        flow.policy_object(aliases),
        flow.source,
        source.topics(),
        target.topics(),
        target.broker_count(),
        flow.settings.replication_factor,
    )
    return {
        "flow": flow.name,
        "source": flow.source,
        "target": flow.target,
        "policy": flow.settings.policy,
        "delivery": flow.settings.delivery,
        "topics": [vars(plan) for plan in plans],
    }
