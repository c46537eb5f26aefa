"""The target topics of a resend: checked before anything is done, and made if they are missing."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from mirrorlake.config.topology import Topology
from mirrorlake.control.config_plan import ALWAYS
from mirrorlake.errors import InputError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.changes import Change
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.naming.policy import check_topic_name
from mirrorlake.offsets.positions import partitions_of
from mirrorlake.resend.note import ResentTopic

#: Configs that a restored topic is made with, so that its cluster neither deletes old records nor
#: overwrites their timestamps.
KEPT: Mapping[str, str] = {"retention.ms": "-1", "retention.bytes": "-1", **ALWAYS}


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
    Raises ClusterUnreachable."""
    noted = {part.target_topic: part.topic_id for part in parts}
    there, missing = admin.identities(sorted(noted))
    others = {name for name, topic in there.items() if noted[name] not in ("", topic.topic_id)}
    return others | missing
