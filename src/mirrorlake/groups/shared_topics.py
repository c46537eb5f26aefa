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


def joined(
    lake: Reader,
    connections: Connections,
    direction: Direction,
    translated: Mapping[TopicPartitionOffset, Translated],
) -> dict[TopicPartitionOffset, Translated]:
    """Translations by the flow of a way, made to hold for the opposite flow's records in the same
    topics too.

    Asks no cluster where there is no opposite flow, or where it names topics otherwise. Raises
    ClusterUnreachable when the goal does not answer.
    """
    shared = {
        key: position
        for key, position in translated.items()
        if _is_shared(connections, direction, key[0], position.topic)
    }
    if not shared:
        return dict(translated)
    others = translate_living(lake, opposite_name(direction.flow), shared, not direction.reverse)
    concerned = {
        (position.topic, position.partition) for key, position in shared.items() if key in others
    }
    settled = _settled(lake, connections, direction, concerned)
    ways = {
        key: join_opposite(
            position,
            others.get(key),
            direction.reverse,
            (position.topic, position.partition) in settled,
        )
        for key, position in shared.items()
    }
    return {**translated, **ways}


def _is_shared(
    connections: Connections, direction: Direction, origin_topic: str, goal_topic: str
) -> bool:
    topology = connections.topology
    if opposite_name(direction.flow) not in topology.flows:
        return False
    opposite = topology.flow(opposite_name(direction.flow))
    source, target = (origin_topic, goal_topic) if direction.reverse else (goal_topic, origin_topic)
    return opposite.selection.selects(source) and opposite.target_topic(source) == target


def _settled(
    lake: Reader, connections: Connections, direction: Direction, partitions: set[TopicAndPartition]
) -> set[TopicAndPartition]:
    """Partitions of the goal all of whose records are at the origin: their end translates exactly.
    Of those that do not answer now this is not known."""
    ends = connections.admin(direction.goal).end_offsets(partitions, skip_silent=True)
    asked = {(topic, partition, end) for (topic, partition), end in ends.items()}
    flow = direction.flow.name if direction.reverse else opposite_name(direction.flow)
    return {
        (key[0], key[1])
        for key, position in translate_all(lake, flow, asked).items()
        if position.exact
    }
