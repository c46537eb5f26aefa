"""Makes and grows target topics: as a comparison with the source wants them, or, if the source does
not answer or no longer has them, as the lake knows them. A refused topic does not stop the others.
A topic gets its ACLs before it is made, or is not made: else it may be open to all."""

from collections.abc import Mapping, Sequence

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.acl_sync import AclSync
from mirrorlake.control.config_plan import ALWAYS, configs_by_state
from mirrorlake.control.config_sync import ConfigSync
from mirrorlake.control.topic_plan import TopicPlan
from mirrorlake.errors import TargetRefused
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import Acl, TopicInfo
from mirrorlake.lake.changes import PendingChanges
from mirrorlake.lake.states import States
from mirrorlake.lake.topic_states import TopicState, applying_acls


class TopicMaking:
    """Makes a flow's target topics; adds done changes to `pending`. For one thread at a time."""

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
        self._acls, self._states, self._pending = acls, states, pending

    def carry_out(self, plans: Sequence[TopicPlan]) -> dict[str, TargetRefused]:
        """Make topics, ACLs first, and grow topics; return refusals, by source topic."""
        new = [plan for plan in plans if plan.action == "create"]
        bare = self._protect({plan.topic: plan.target_topic for plan in new})
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
        """Raise topics to so many partitions; return what the target refused, by target topic."""
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
        """Make target topics as the source last had them; return failures by target topic.

        If the lake knows nothing of a topic (an earlier version landed it), it waits while the
        source is silent; if the source no longer has it, its mirror gets the target's default
        factor.

        Args:
            lacking: the target topics to make, by source topic.
            partitions: the least number by target topic; raised to that of the source topics.
            silent: whether the source does not answer.

        Raises:
            ClusterUnreachable: the target does not answer.
        """
        if not lacking:
            return {}
        states = self._states.newest(self._flow.source, fresh=True)
        bare = self._protect(lacking, states)
        refused, wanted = {error.topic: error for error in bare.values()}, list[TopicInfo]()
        for topic, target in lacking.items():
            if topic in bare:
                continue
            if topic in states:
                wanted.append(self._as_it_was(target, states[topic], partitions[target]))
                partitions[target] = wanted[-1].partitions
            elif silent:
                refused[target] = self._unknown(topic, target)
            else:
                wanted.append(TopicInfo(target, partitions[target], -1, ALWAYS))
        made = self._target.try_create_topics(wanted, self._configs.not_kept)
        return refused | {error.topic: error for error in made}

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

    def _protect(
        self, names: Mapping[str, str], states: Mapping[str, TopicState] | None = None
    ) -> dict[str, TargetRefused]:
        """Make the ACLs of target topics; return the topics of which the target refused some, by
        source topic, and those whose ACLs are not known: these must not be made. Does nothing if
        the flow does not keep ACLs alike, or the target has no authorizer.

        Args:
            names: the target topics by source topic.
            states: how the source's topics were, if the source is not to be queried.

        Raises:
            ClusterUnreachable: a cluster does not answer.
        """
        if not names or not self._flow.settings.sync_topic_acls_enabled:
            return {}
        unknown: dict[str, TargetRefused] = {}
        if states is None:
            self._acls.sync()
        else:
            acls = {topic: states[topic].acls for topic in names if topic in states}
            stated = {acl for some in acls.values() for acl in some or ()}
            if self._acls.make_stated(stated, names):
                unknown = {
                    topic: self._acls_unknown(topic, name)
                    for topic, name in names.items()
                    if acls.get(topic) is None
                }
        lacking = applying_acls(names.values(), self._acls.undone)
        refused = {
            topic: self._refusal(name, lacking[name])
            for topic, name in names.items()
            if lacking[name]
        }
        return unknown | refused

    def _refusal(self, name: str, lacking: Sequence[Acl]) -> TargetRefused:
        one = lacking[0]
        return TargetRefused(
            f"topic {name} is not made on cluster {self._flow.target}, since {len(lacking)} ACLs "
            f"that it has to have could not be made, such as {one.permission} {one.operation} for "
            f"{one.principal} ({self._acls.undone[one] or 'refused a short while ago'}); let the "
            "flow make ACLs there, or set sync_topic_acls_enabled: false",
            topic=name,
            reason="ACLS_REFUSED",
        )

    def _as_it_was(self, target: str, state: TopicState, partitions: int) -> TopicInfo:
        asked = self._flow.settings.replication_factor or state.factor
        factor = self._target.registered_brokers(target, asked)
        synced = self._flow.settings.sync_topic_configs_enabled
        configs = configs_by_state(self._configs.rules, state, factor) if synced else ALWAYS
        return TopicInfo(target, max(partitions, state.partitions), factor, configs)

    def _unknown(self, topic: str, target: str) -> TargetRefused:
        return TargetRefused(
            f"topic {target} is not made on cluster {self._flow.target} yet: cluster "
            f"{self._flow.source} does not answer, and the lake does not know how {topic} is "
            "there; wait for the source, or make the topic by hand",
            topic=target,
            reason="UNKNOWN_STATE",
        )

    def _acls_unknown(self, topic: str, target: str) -> TargetRefused:
        return TargetRefused(
            f"topic {target} is not made on cluster {self._flow.target} yet: the lake does not "
            f"know which ACLs {topic} has on cluster {self._flow.source}; let that cluster report "
            "them, make the topic by hand, or set sync_topic_acls_enabled: false",
            topic=target,
            reason="UNKNOWN_ACLS",
        )
