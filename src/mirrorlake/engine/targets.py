"""Target topics: made, with their configs, and grown, before the first record needs them."""

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence

from mirrorlake.core.batch import PartitionPlan
from mirrorlake.core.policy import check_topic_name
from mirrorlake.core.topic_plan import TopicPlan, plan_topics, refusals
from mirrorlake.core.topology import ResolvedFlow
from mirrorlake.engine.connections import Connections
from mirrorlake.engine.control_configs import ConfigSync
from mirrorlake.errors import ClusterUnreachable, ReplicationError, TargetRefused
from mirrorlake.kafka.admin import ClusterAdmin, TopicInfo
from mirrorlake.lake.journal import Journal

logger = logging.getLogger(__name__)

#: How old the target's last answer may be before a batch is handed to tasks, seconds. Tasks that wait for a target that
#: is gone hold the cores that other flows need.
ANSWERED_SECONDS = 2.0


def observe_topics(flow: ResolvedFlow, connections: Connections, left_out: Mapping[str, str] | None) -> list[TopicPlan]:
    """What the target of a flow lacks now, by asking both clusters; `left_out` says why topics are not mirrored."""
    aliases = connections.topology.aliases
    source, target = connections.admin(flow.source), connections.admin(flow.target)
    return plan_topics(
        flow.selection(aliases),
        flow.policy_object(aliases),
        flow.source,
        source.topics(),
        target.topics(),
        target.broker_count(),
        flow.settings.replication_factor,
        left_out,
    )


class TopicsUnmade(Exception):
    """The target refused to make or grow a topic of this batch: plan it again without (`TargetTopics.unmade`)."""


class TargetTopics:
    """Keeps the topics of one flow's target as its source has them. `left_out` says why topics are not mirrored."""

    def __init__(
        self,
        flow: ResolvedFlow,
        connections: Connections,
        journal: Journal,
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        aliases = connections.topology.aliases
        self.flow = flow
        self.selection = flow.selection(aliases)
        self.policy = flow.policy_object(aliases)
        self.configs = ConfigSync(flow, connections, journal, self.remote_topic)
        self._connections = connections
        self._target: ClusterAdmin = connections.admin(flow.target)
        self._journal = journal
        self.left_out = dict(sorted((left_out or {}).items()))
        #: Source topics that the target would not make or grow, and what it said; each refresh tries them again.
        self.unmade: dict[str, TargetRefused] = {}
        self._looked = False
        self._told: set[TopicPlan] = set()
        self._ready: dict[str, int] = {}  # target topic -> partitions known to be there
        self._answered = float("-inf")
        self._use = threading.RLock()  # control refreshes while the flow produces

    def remote_topic(self, topic: str) -> str | None:
        """The target topic of a source topic; None where it could not bear that name, or must not be mirrored."""
        if topic in self.left_out:
            return None
        name = self.policy.remote_topic(self.flow.source, topic)
        return None if check_topic_name(name) else name

    def produced_topic(self, topic: str) -> str | None:
        """The target topic of a staged topic; None where its records are not to be produced (now)."""
        if not self.selection.selects(topic) or self.flow.pauses(topic):
            return None
        return self.remote_topic(topic)

    def plan(self) -> list[TopicPlan]:
        """What the target lacks now, by asking both clusters."""
        return observe_topics(self.flow, self._connections, self.left_out)

    def refresh(self) -> list[TopicPlan]:
        """Make what is missing; returns the plans that were carried out or refused."""
        with self._use:
            plans = self.plan()
            refused = self._carry_out(plans)
            for plan in plans:
                if plan.action != "refuse" and plan.topic not in refused:
                    self._ready[plan.target_topic] = plan.partitions
            self._note_unmade(refused, {*refused, *(plan.topic for plan in refusals(plans))})
            done = [plan for plan in plans if plan.action != "none" and plan not in self._told]
            for plan in refusals(done):
                self._told.add(plan)
                self._journal.incidents.tell(self.flow.name, "topic_refused", _refused(self.flow.name, plan))
            done = [plan for plan in done if plan.topic not in refused]
            self._journal.topics(self.flow.name, done)
            return done

    def _carry_out(self, plans: Sequence[TopicPlan]) -> dict[str, TargetRefused]:
        """Make and grow topics; returns what the target refused, by source topic. One refused topic stops no other."""
        refused = self._create([plan for plan in plans if plan.action == "create"])
        for plan in plans:
            if plan.action == "add_partitions":
                try:
                    self._target.add_partitions(plan.target_topic, plan.partitions)
                except TargetRefused as error:
                    refused[plan.target_topic] = error
        return {plan.topic: refused[plan.target_topic] for plan in plans if plan.target_topic in refused}

    def _create(self, plans: Sequence[TopicPlan]) -> dict[str, TargetRefused]:
        if not plans:
            return {}
        configs = {}
        if self.flow.settings.sync_topic_configs_enabled:
            configs = self.configs.creation({plan.topic: plan.factor for plan in plans})
        refused = self._target.try_create_topics(
            [TopicInfo(plan.target_topic, plan.partitions, plan.factor, configs.get(plan.topic, {})) for plan in plans]
        )
        return {str(error.facts["topic"]): error for error in refused}

    def _note_unmade(self, refused: Mapping[str, TargetRefused], still: Collection[str]) -> None:
        incidents, flow = self._journal.incidents, self.flow.name
        for topic in refused.keys() - self.unmade.keys():
            error = refused[topic]
            incidents.tell(
                flow, "topic_refused", ReplicationError(f"{error}; the flow goes on without it", topic=topic)
            )
        if not self._looked or self.unmade.keys() - refused.keys():  # a process before this one told some, perhaps
            incidents.over(flow, "topic_refused", still)
            self._looked = True
        self.unmade = dict(sorted(refused.items()))

    def ensure(self, plans: Sequence[PartitionPlan]) -> None:
        """Be sure that the target answers and that the partitions of a batch are there; asks the clusters only for
        those not seen before. Raises ClusterUnreachable, TopicsUnmade, TargetRefused."""
        with self._use:
            if time.monotonic() - self._answered > ANSWERED_SECONDS:
                self._target.cluster_id()
                self._answered = time.monotonic()
            if all(plan.partition < self._ready.get(plan.target_topic, 0) for plan in plans):
                return
            try:
                self.refresh()
            except ClusterUnreachable as error:
                if error.facts.get("alias") != self.flow.source:
                    raise
                logger.warning("flow %s: %s; making target topics by what is staged", self.flow.name, error)
            if any(plan.topic in self.unmade for plan in plans):
                raise TopicsUnmade
            self._make_staged(plans)

    def _make_staged(self, plans: Sequence[PartitionPlan]) -> None:
        """A topic that is gone at the source still has staged records: make it by what the stage holds."""
        seen = self._target.topics()
        for plan in plans:
            needed = 1 + max(other.partition for other in plans if other.target_topic == plan.target_topic)
            if plan.target_topic not in seen:
                seen[plan.target_topic] = TopicInfo(plan.target_topic, needed, 1)
                self._target.create_topics([seen[plan.target_topic]])
            elif seen[plan.target_topic].partitions < needed:
                self._target.add_partitions(plan.target_topic, needed)
                seen[plan.target_topic] = TopicInfo(plan.target_topic, needed, 1)
            known = self._ready.get(plan.target_topic, 0)
            self._ready[plan.target_topic] = max(known, seen[plan.target_topic].partitions)


def _refused(flow: str, plan: TopicPlan) -> ReplicationError:
    return ReplicationError(
        f"flow {flow} does not mirror topic {plan.topic}: {plan.reason}; exclude it with topics_exclude, or give it "
        "another name at the target",
        topic=plan.topic,
    )
