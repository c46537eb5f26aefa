"""Topics that two opposite flows share under one name: positions there are of records of both."""

from collections.abc import Mapping
from dataclasses import dataclass

from mirrorlake.config.precedence import opposite_name
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.groups.moves import join_opposite
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.translate import translate_all, translate_living
from mirrorlake.offsets.positions import TopicAndPartition, TopicPartitionOffset, Translated


@dataclass(frozen=True)
class Direction:
    """A flow as groups move along it: from `origin` to `goal`; with `reverse` from its target back
    to its source."""

    flow: ResolvedFlow
    reverse: bool = False

    @property
    def origin(self) -> str:
        """Alias of the cluster whose positions count."""
        return self.flow.target if self.reverse else self.flow.source

    @property
    def goal(self) -> str:
        """Alias of the cluster on which groups are moved."""
        return self.flow.source if self.reverse else self.flow.target


@dataclass(frozen=True, kw_only=True)
class Route(Direction):
    """A direction with what is asked about it: the lake, and the clusters at both ends."""

    lake: Reader
    connections: Connections


def joined(
    route: Route, translated: Mapping[TopicPartitionOffset, Translated]
) -> dict[TopicPartitionOffset, Translated]:
    """Translations by the flow of a route, made to hold for the opposite flow's records in the same
    topics too.

    Asks no cluster where there is no opposite flow, or where it names topics otherwise. Raises
    ClusterUnreachable when the goal does not answer.
    """
    shared = {
        key: position
        for key, position in translated.items()
        if _is_shared(route, key[0], position.topic)
    }
    if not shared:
        return dict(translated)
    others = translate_living(route.lake, opposite_name(route.flow), shared, not route.reverse)
    concerned = {
        (position.topic, position.partition) for key, position in shared.items() if key in others
    }
    settled = _settled(route, concerned)
    ways = {
        key: join_opposite(
            position,
            others.get(key),
            route.reverse,
            (position.topic, position.partition) in settled,
        )
        for key, position in shared.items()
    }
    return {**translated, **ways}


def _is_shared(route: Route, origin_topic: str, goal_topic: str) -> bool:
    topology = route.connections.topology
    if opposite_name(route.flow) not in topology.flows:
        return False
    opposite = topology.flow(opposite_name(route.flow))
    source, target = (origin_topic, goal_topic) if route.reverse else (goal_topic, origin_topic)
    return opposite.selection.selects(source) and opposite.target_topic(source) == target


def _settled(route: Route, partitions: set[TopicAndPartition]) -> set[TopicAndPartition]:
    """Partitions of the goal all of whose records are at the origin: their end translates exactly.
    Of those that do not answer now this is not known."""
    ends = route.connections.admin(route.goal).end_offsets(partitions, skip_silent=True)
    asked = {(topic, partition, end) for (topic, partition), end in ends.items()}
    flow = route.flow.name if route.reverse else opposite_name(route.flow)
    return {
        (key[0], key[1])
        for key, position in translate_all(route.lake, flow, asked).items()
        if position.exact
    }
