"""What a flow's target lacks now of its source's topics."""

from collections.abc import Mapping

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.topic_plan import TopicPlan, plan_topics
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import TopicInfo


def observe_topics(
    flow: ResolvedFlow, connections: Connections, left_out: Mapping[str, str] | None
) -> list[TopicPlan]:
    """What the target of a flow lacks now, by querying both clusters; `left_out` says why topics
    are not mirrored. Users' tests call it (docs/library.md)."""
    return compare_topics(flow, connections, left_out, connections.admin(flow.source).topics())


def compare_topics(
    flow: ResolvedFlow,
    connections: Connections,
    left_out: Mapping[str, str] | None,
    there: Mapping[str, TopicInfo],
) -> list[TopicPlan]:
    """What the target of a flow lacks now, by querying it, of the topics that are `there` at the
    source; `left_out` says why topics are not mirrored."""
    target = connections.admin(flow.target)

    def planned(brokers: int) -> list[TopicPlan]:
        asked = flow.settings.replication_factor
        return plan_topics(
            flow.selection,
            source=there,
            target=topics,
            target_brokers=brokers,
            factor=asked,
            left_out=left_out,
        )

    topics, known = target.topics(), target.known_brokers()
    plans = planned(known)
    lowered = [plan for plan in plans if plan.action == "create" and plan.note]
    if lowered:
        wanted = flow.settings.replication_factor or max(
            there[plan.topic].factor for plan in lowered
        )
        registered = target.registered_brokers(lowered[0].target_topic, wanted)
        plans = planned(registered) if registered > known else plans
    return plans
