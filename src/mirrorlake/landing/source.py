"""A source cluster as landing sees it."""

from collections.abc import Callable, Collection, Mapping, Sequence

from mirrorlake.kafka.access import TopicAccess, described, hidden
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.records import first_rows
from mirrorlake.kafka.values import Row, TopicInfo
from mirrorlake.landing.source_comparison import SourceTopic
from mirrorlake.naming.selection import TopicSelection
from mirrorlake.offsets.positions import LogEnd, LogEnds, TopicAndPartition


class ClusterSource:
    """What the flows of one source cluster select there. Connections and selections are looked up
    each time: the topology file may be edited."""

    def __init__(
        self,
        alias: str,
        connections: Callable[[], Connections],
        selections: Callable[[], Sequence[TopicSelection]],
    ) -> None:
        self.alias = alias
        self._connections = connections
        self._selections = selections

    def topics(self) -> dict[str, SourceTopic]:
        """The selected topics that exist: not those that the cluster lists and then reports as gone
        or not to be described. Raises ClusterUnreachable."""
        admin, selections = self._admin(), self._selections()
        infos = {
            name: info
            for name, info in admin.topics().items()
            if any(selection.lands(name) for selection in selections)
        }
        return {
            name: _shown(topic, infos[name])
            for name, topic in described(admin.client, infos.keys()).items()
            if topic.topic_id is not None or topic.error is not None
        }

    def denied(self, topics: Collection[str]) -> dict[str, str | None]:
        """Those of some topics, which the cluster does not list, that may exist, with the reason
        why it does not describe them; None if we may not see them. Raises ClusterUnreachable."""
        selections = self._selections()
        selected = {name for name in topics if any(each.lands(name) for each in selections)}
        return hidden(self._admin().client, selected)

    def ends(self, keys: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, LogEnds]:
        """The log ends (high watermarks) of some partitions; those that are silent are missing."""
        return self._admin().log_ends(keys)

    def high_watermarks(
        self, keys: Collection[TopicAndPartition]
    ) -> Mapping[TopicAndPartition, LogEnd]:
        """Only the ends, at half the cost of `ends`; those that do not answer are missing."""
        return self._admin().high_watermarks(keys)

    def rows(self, offsets: Mapping[TopicAndPartition, int]) -> Mapping[TopicAndPartition, Row]:
        """The first committed record of each partition at or behind an offset; missing where there
        is none. Raises ClusterUnreachable."""
        if not offsets:
            return {}
        return first_rows(self.alias, self._connections().client(self.alias, "consumer"), offsets)

    def _admin(self) -> ClusterAdmin:
        return self._connections().admin(self.alias)


def _shown(topic: TopicAccess, info: TopicInfo) -> SourceTopic:
    if topic.topic_id is None:
        return SourceTopic("", 0, undescribed=topic.error)
    may_read = topic.rights is None or "READ" in topic.rights
    return SourceTopic(topic.topic_id, info.partitions, info.leaderless, may_read)
