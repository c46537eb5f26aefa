"""Notes the states of a source's topics: before the first record is staged, and whenever their
configs or ACLs are asked for. The code that keeps them alike at a target asks; for a flow that does
not, `SourceNotes` does."""

from collections.abc import Mapping

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.access import topic_rights
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_acls import NoAcls, describe_topic_acls
from mirrorlake.kafka.admin_configs import describe_topic_configs
from mirrorlake.kafka.values import TopicConfigs, TopicInfo
from mirrorlake.lake.states import States
from mirrorlake.lake.topic_states import TopicState, own_configs


def note_fresh_topics(
    states: States, source: ClusterAdmin, ids: Mapping[str, str], with_configs: bool
) -> None:
    """Note topics that the lake does not know yet, or that were made again, by Kafka's `ids`. To
    ask for their configs too takes the right to DESCRIBE_CONFIGS, which a flow needs that keeps
    configs alike. Raises ClusterUnreachable.
    """
    known = states.newest(source.alias)
    fresh = [
        topic
        for topic, topic_id in ids.items()
        if topic not in known or known[topic].topic_id != topic_id
    ]
    if not fresh:
        return
    configs = describe_topic_configs(source, fresh).configs if with_configs else {}
    there = source.topics()
    noted = {
        topic: _state(there[topic], configs.get(topic, {}), ids[topic])
        for topic in fresh
        if topic in there
    }
    states.note(source.alias, noted)


def note_configs(
    states: States,
    cluster: str,
    topics: Mapping[str, TopicInfo],
    configs_by_topic: Mapping[str, TopicConfigs],
) -> None:
    """Note the configs that a source reports for some of its `topics`."""
    known = states.newest(cluster)
    noted = {
        topic: _state(topics[topic], configs, known[topic].topic_id if topic in known else None)
        for topic, configs in configs_by_topic.items()
        if topic in topics
    }
    states.note(cluster, noted)


def _state(info: TopicInfo, configs: TopicConfigs, topic_id: str | None) -> TopicState:
    return TopicState(info.partitions, info.factor, own_configs(configs), topic_id)


class SourceNotes:
    """Notes the configs and ACLs of a source that a flow does not keep alike at its target: topics
    can then be restored with them all the same. What the source does not let us ask keeps its last
    note, or stays unknown.

    A cluster writes each question that it refuses into its security log. Without such a line it
    reports which topics' configs may be described (KIP-430), but nothing of that kind about its
    ACLs: a principal without that right on any topic does not ask for them, and one that was
    refused is not asked again by this process.
    """

    def __init__(self, flow: ResolvedFlow, source: ClusterAdmin, states: States) -> None:
        self._flow, self._source, self._states = flow, source, states
        self._acls_refused = False

    def note(self) -> None:
        """Ask the source once. Raises ClusterUnreachable; KafkaException if no broker answers."""
        topics = {
            name: info
            for name, info in self._source.topics().items()
            if self._flow.selection.selects(name)
        }
        may = {
            name: topics[name]
            for name, rights in topic_rights(self._source.client, topics).items()
            if rights is None or "DESCRIBE_CONFIGS" in rights
        }
        if not self._flow.settings.sync_topic_configs_enabled:
            configs = describe_topic_configs(self._source, may).configs
            note_configs(self._states, self._source.alias, may, configs)
        if may and not (self._flow.settings.sync_topic_acls_enabled or self._acls_refused):
            acls = describe_topic_acls(self._source)
            if isinstance(acls, NoAcls):
                self._acls_refused = not acls.disabled
                acls = frozenset()  # as a cluster without an authorizer has
            if not self._acls_refused:
                self._states.note_acls(self._source.alias, acls)
