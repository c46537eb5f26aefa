"""Which of two opposite flows says how a topic is that both mirror under the same name."""

from mirrorlake.config.topology import ResolvedFlow, Topology
from mirrorlake.naming.selection import TopicSelection


def opposite_name(flow: ResolvedFlow) -> str:
    """The name of the flow that goes the other way."""
    return f"{flow.target}->{flow.source}"


def leading_opposite(topology: Topology, flow: ResolvedFlow) -> TopicSelection | None:
    """The selection of the opposite flow if that one stands first in the file and keeps configs;
    else None.

    With identity names in both directions each side would undo on the other what was just set
    there. So the flow that stands first in the file leads: configs of shared topics are set at its
    source.
    """
    names = list(topology.flows)
    other = opposite_name(flow)
    if other not in names or flow.name not in names or names.index(flow.name) < names.index(other):
        return None
    leader = topology.flow(other)
    keeps = leader.settings.enabled and leader.settings.sync_topic_configs_enabled
    return leader.selection if keeps else None
