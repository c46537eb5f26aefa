"""Making target topics as the lake knows their source topics: the source does not answer, or has
them no more."""

from collections.abc import Mapping

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.config_plan import ALWAYS, configs_by_state
from mirrorlake.control.config_sync import ConfigSync
from mirrorlake.errors import TargetRefused
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.topic_states import TopicState


class StatedTopics:
    """Makes topics of one flow's target by `states`."""

    def __init__(self, flow: ResolvedFlow, target: ClusterAdmin, configs: ConfigSync) -> None:
        self._flow, self._target, self._configs = flow, target, configs

    def make(
        self,
        lacking: Mapping[str, str],
        states: Mapping[str, TopicState],
        partitions: dict[str, int],
        silent: bool,
    ) -> dict[str, TargetRefused]:
        """Make target topics as their source topics were stated.

        A topic of which the lake knows nothing (an earlier version landed it) waits for its source
        where that is silent; where the source has it no more, it gets the target's default factor.

        Args:
            lacking: the target topics to make, by source topic.
            states: how source topics were, by name.
            partitions: by target topic; raised to what the source topics had.
            silent: whether the source does not answer.

        Returns:
            What cannot be made, by target topic.

        Raises:
            ClusterUnreachable: the target does not answer.
        """
        refused, wanted = {}, []
        for topic, target in lacking.items():
            if topic in states:
                wanted.append(self._as_it_was(target, states[topic], partitions[target]))
                partitions[target] = wanted[-1].partitions
            elif silent:
                refused[target] = self._unknown(topic, target)
            else:
                wanted.append(TopicInfo(target, partitions[target], -1, ALWAYS))
        made = self._target.try_create_topics(wanted, self._configs.not_kept)
        return refused | {error.topic: error for error in made}

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
