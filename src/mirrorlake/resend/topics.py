"""The target topics of a resend: checked before anything is done, and made if they are missing."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from mirrorlake.config.topology import Topology
from mirrorlake.control.config_plan import ALWAYS
from mirrorlake.errors import ClusterUnreachable, InputError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_configs import Described, describe_topic_configs
from mirrorlake.kafka.retention import keeps_from, stamped_by_brokers
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.changes import Change
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.naming.policy import check_topic_name
from mirrorlake.offsets.positions import partitions_of
from mirrorlake.resend.note import ResentTopic

#: Configs that a topic of a resend is made with, so that its cluster neither deletes records by age
#: nor compacts them where that is its default, and does not overwrite their timestamps.
KEPT: Mapping[str, str] = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    **ALWAYS,
}
#: A source topic's own configs that a topic needs to accept its records.
_NEEDED = ("max.message.bytes",)


def check_name(topic: str) -> None:
    """Raise InputError for an invalid topic name."""
    if reason := check_topic_name(topic):
        raise InputError(f"{topic!r} is no name of a topic: {reason}")


def check_partitions(there: TopicInfo | None, needed: int, topic: str) -> None:
    """Raise InputError if a target topic has fewer partitions than the source's: records keep
    theirs."""
    if there is not None and there.partitions < needed:
        raise InputError(
            f"topic {there.name} has {there.partitions} partitions and {topic} has {needed}; "
            "records keep their partition, so add partitions, or name another topic"
        )


def written_by_flows(
    topology: Topology, cluster: str, staged: Mapping[str, Collection[str]]
) -> dict[str, str]:
    """The topics of a cluster that flows of the topology file write to, enabled or not, each with
    one such flow. `staged` are the topics that the lake has of each source cluster."""
    flows = (topology.flow(name) for name in topology.flows)
    return {
        flow.target_topic(topic): flow.name
        for flow in flows
        if flow.target == cluster
        for topic in staged.get(flow.source, ())
        if flow.selection.selects(topic)
    }


def made_with(state: TopicState | None) -> dict[str, str]:
    """The configs that a topic of a resend is made with; `state` is the source topic's."""
    own = {} if state is None else state.configs
    return {**KEPT, **{key: own[key] for key in _NEEDED if key in own}}


class Stated:
    """Makes topics from their states in the lake; queries the cluster once for its brokers."""

    def __init__(self, admin: ClusterAdmin) -> None:
        self._admin = admin
        self._factors: dict[int, int] = {}

    def topic(
        self, name: str, state: TopicState | None, partitions: int, configs: Mapping[str, str]
    ) -> TopicInfo:
        """A topic with its earlier partitions and replicas: at least `partitions`, and no more
        replicas than the cluster has brokers."""
        if state is None:
            return TopicInfo(name, partitions, -1, configs)
        if state.factor not in self._factors:
            self._factors[state.factor] = self._admin.registered_brokers(name, state.factor)
        return TopicInfo(
            name, max(partitions, state.partitions), self._factors[state.factor], configs
        )


def make_topics(
    admin: ClusterAdmin, event_log: EventLog, name: str, wanted: Sequence[TopicInfo]
) -> None:
    """Make topics for a resend, and note it. Raises TargetRefused for the first one that is not
    made."""
    refused = {error.topic: error for error in admin.try_create_topics(wanted)}
    event_log.record(name, [_row(topic, refused.get(topic.name)) for topic in wanted])
    for error in refused.values():
        raise error


def _row(topic: TopicInfo, error: Exception | None) -> Change:
    made = f"partitions={topic.partitions}, factor={topic.factor}"
    reason = None if error is None else str(error)
    return Change("topic", topic.name, None, made, "refused" if reason else "done", error=reason)


def check_kept(admin: ClusterAdmin, oldest: Mapping[str, int]) -> None:
    """Raise InputError where the retention of a topic that is there may delete what it is to get,
    or is not reported; `oldest` is the time of the oldest of these records, ms, by target topic."""
    described = describe_topic_configs(admin, oldest) if oldest else Described()
    for name, oldest_ms in sorted(oldest.items()):
        if name in described.refused:
            raise InputError(
                f"cluster {admin.alias} does not report the retention of topic {name} "
                f"({described.refused[name]}), which may delete the records again; grant "
                "DESCRIBE_CONFIGS on it, or name a topic that is missing: it is made with "
                "retention off"
            )
        configs = described.configs.get(name, {})
        if stamped_by_brokers(configs):  # retention.ms counts from when they are appended
            configs = {key: value for key, value in configs.items() if key != "retention.ms"}
        kept_from = keeps_from(configs)
        if kept_from is not None and oldest_ms < kept_from:
            raise InputError(
                f"topic {name} of cluster {admin.alias} may delete the records again, since they "
                "are older, or more, than its retention keeps; set retention.ms and "
                "retention.bytes of it to -1, or delete it: it is made so where it is missing"
            )


def ends_of_topics(admin: ClusterAdmin, topics: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """The log ends of topics, given their partition counts."""
    ends = admin.end_offsets(partitions_of(topics), committed=False)
    return {
        topic: tuple(ends[topic, partition] for partition in range(count))
        for topic, count in topics.items()
    }


def made_again(admin: ClusterAdmin, parts: Iterable[ResentTopic]) -> set[str]:
    """The target topics of a resend's parts that are gone, or were made again since it began: the
    sent records are gone with them. A topic whose id was not known then counts only if it is gone.
    Raises ClusterUnreachable, also where the cluster does not describe one."""
    noted = {part.target_topic: part.topic_id for part in parts}
    there, missing = admin.identities(sorted(noted))
    if unknown := sorted(noted.keys() - there.keys() - missing):
        raise ClusterUnreachable(
            f"cluster {admin.alias} does not say whether topic {unknown[0]} is the one that was "
            "sent to; give the same command again once it does",
            alias=admin.alias,
        )
    others = {name for name, topic in there.items() if noted[name] not in ("", topic.topic_id)}
    return others | missing
