"""Which of two opposite flows decides on the configs of a topic that both mirror by one name."""

from mirrorlake.config.topology import ResolvedFlow, Topology
from mirrorlake.naming.selection import TopicSelection


def opposite_name(flow: ResolvedFlow) -> str:
    """The name of the flow that goes the other way."""
    return f"{flow.target}->{flow.source}"


def leading_opposite(topology: Topology, flow: ResolvedFlow) -> TopicSelection | None:
    """Selection of the opposite flow if it comes first in the file and syncs configs; else None.

    With identity names in both directions each flow would undo the other's changes. So the flow
    that comes first in the file leads: configs of shared topics are set at its source.
    """
    names = list(topology.flows)
    other = opposite_name(flow)
    if other not in names or flow.name not in names or names.index(flow.name) < names.index(other):
        return None
    leader = topology.flow(other)
    keeps = leader.settings.enabled and leader.settings.sync_topic_configs_enabled
    return leader.selection if keeps else None
