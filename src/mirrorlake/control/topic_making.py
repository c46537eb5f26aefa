"""Makes and grows target topics: as a comparison with the source wants them, or, where the source
has them no more, as the lake knows them. One topic that the target refuses stops no other."""

from collections.abc import Mapping, Sequence

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.acl_sync import AclSync
from mirrorlake.control.config_plan import ALWAYS
from mirrorlake.control.config_sync import ConfigSync
from mirrorlake.control.protected_topics import ProtectedTopics
from mirrorlake.control.stated_topics import StatedTopics
from mirrorlake.control.topic_plan import TopicPlan
from mirrorlake.errors import TargetRefused
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.changes import PendingChanges
from mirrorlake.lake.states import States


class TopicMaking:
    """Makes the topics of one flow at its target. What a comparison wanted and is done is added to
    `pending`."""

    def __init__(
        self,
        flow: ResolvedFlow,
        target: ClusterAdmin,
        *,
        configs: ConfigSync,
        acls: AclSync,
        states: States,
        pending: PendingChanges,
    ) -> None:
        self._flow, self._target, self._configs = flow, target, configs
        self._pending = pending
        self._protected, self._states = ProtectedTopics(flow, acls), states
        self._stated = StatedTopics(flow, target, configs)

    def carry_out(self, plans: Sequence[TopicPlan]) -> dict[str, TargetRefused]:
        """Make topics, their ACLs first, and grow them; returns what the target refused, by source
        topic."""
        new = [plan for plan in plans if plan.action == "create"]
        bare = self._protected.make({plan.topic: plan.target_topic for plan in new})
        new = [plan for plan in new if plan.topic not in bare]
        refused = self._create(new)
        self._pending.add(plan.row() for plan in new if plan.target_topic not in refused)
        for plan in plans:
            if plan.action == "add_partitions":
                problem = self.grow({plan.target_topic: plan.partitions})
                refused |= problem
                self._pending.add([] if problem else [plan.row()])
        by_source = {
            plan.topic: refused[plan.target_topic] for plan in plans if plan.target_topic in refused
        }
        return by_source | bare

    def grow(self, partitions: Mapping[str, int]) -> dict[str, TargetRefused]:
        """Give target topics so many partitions, more than they have; returns what the target
        refused, by target topic."""
        refused: dict[str, TargetRefused] = {}
        for topic, count in partitions.items():
            try:
                self._target.add_partitions(topic, count)
            except TargetRefused as error:
                refused[topic] = error
        return refused

    def make_by_states(
        self, lacking: Mapping[str, str], partitions: dict[str, int], silent: bool
    ) -> dict[str, TargetRefused]:
        """Make target topics, by source topic, as the source had these last, with so many
        partitions at least; returns what the target refused, by target topic. `silent`: the source
        does not answer."""
        if not lacking:
            return {}
        states = self._states.newest(self._flow.source, fresh=True)
        bare = self._protected.make(lacking, states)
        protected = {topic: name for topic, name in lacking.items() if topic not in bare}
        made = self._stated.make(protected, states, partitions, silent)
        return made | {error.topic: error for error in bare.values()}

    def _create(self, plans: Sequence[TopicPlan]) -> dict[str, TargetRefused]:
        if not plans:
            return {}
        configs = {}
        if self._flow.settings.sync_topic_configs_enabled:
            configs = self._configs.creation({plan.topic: plan.factor for plan in plans})
        topics = [
            TopicInfo(
                plan.target_topic, plan.partitions, plan.factor, configs.get(plan.topic, ALWAYS)
            )
            for plan in plans
        ]
        refused = self._target.try_create_topics(topics, self._configs.not_kept)
        return {error.topic: error for error in refused}
