"""Target topics: made, and grown, before the first record needs them."""

import logging
from collections.abc import Sequence

from mirrorlake.core.batch import PartitionPlan
from mirrorlake.core.policy import check_topic_name
from mirrorlake.core.topic_plan import TopicPlan, plan_topics, refusals
from mirrorlake.core.topology import ResolvedFlow
from mirrorlake.engine.connections import Connections
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.admin import ClusterAdmin, TopicInfo
from mirrorlake.lake.journal import Journal

logger = logging.getLogger(__name__)


class TargetTopics:
    """Keeps the topics of one flow's target as its source has them."""

    def __init__(self, flow: ResolvedFlow, connections: Connections, journal: Journal) -> None:
        aliases = connections.topology.aliases
        self.flow = flow
        self.selection = flow.selection(aliases)
        self.policy = flow.policy_object(aliases)
        self._source: ClusterAdmin = connections.admin(flow.source)
        self._target: ClusterAdmin = connections.admin(flow.target)
        self._journal = journal
        self._told: set[TopicPlan] = set()
        self._ready: dict[str, int] = {}  # target topic -> partitions known to be there

    def remote_topic(self, topic: str) -> str | None:
        """The target topic of a source topic; None where it could not bear that name."""
        name = self.policy.remote_topic(self.flow.source, topic)
        return None if check_topic_name(name) else name

    def plan(self) -> list[TopicPlan]:
        """What the target lacks now, by asking both clusters."""
        settings = self.flow.settings
        return plan_topics(
            self.selection,
            self.policy,
            self.flow.source,
            self._source.topics(),
            self._target.topics(),
            self._target.broker_count(),
            settings.replication_factor,
        )

    def refresh(self) -> list[TopicPlan]:
        """Make what is missing; returns the plans that were carried out or refused."""
        plans = self.plan()
        self._target.create_topics(
            [TopicInfo(plan.target_topic, plan.partitions, plan.factor) for plan in plans if plan.action == "create"]
        )
        for plan in plans:
            if plan.action == "add_partitions":
                self._target.add_partitions(plan.target_topic, plan.partitions)
            if plan.action != "refuse":
                self._ready[plan.target_topic] = plan.partitions
        done = [plan for plan in plans if plan.action != "none" and plan not in self._told]
        for plan in refusals(done):
            self._told.add(plan)
            self._journal.incident(self.flow.name, "topic_refused", _refused(self.flow.name, plan))
        self._journal.topics(self.flow.name, done)
        return done

    def ensure(self, plans: Sequence[PartitionPlan]) -> None:
        """Be sure that the partitions of a batch are there; asks the clusters only for those not seen before."""
        if all(plan.partition < self._ready.get(plan.target_topic, 0) for plan in plans):
            return
        self.refresh()
        # A topic that is gone at the source still has staged records: make it by what the stage holds.
        seen = self._target.topics()
        for plan in plans:
            if plan.target_topic not in seen:
                count = 1 + max(other.partition for other in plans if other.target_topic == plan.target_topic)
                self._target.create_topics([TopicInfo(plan.target_topic, count, 1)])
                seen[plan.target_topic] = TopicInfo(plan.target_topic, count, 1)
            self._ready.setdefault(plan.target_topic, seen[plan.target_topic].partitions)


def _refused(flow: str, plan: TopicPlan) -> ReplicationError:
    return ReplicationError(
        f"flow {flow} does not mirror topic {plan.topic}: {plan.reason}; exclude it with topics_exclude or use a "
        "shorter cluster alias",
        topic=plan.topic,
    )
