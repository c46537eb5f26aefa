"""Which source topics are other ones than those that a flow has mirrored."""

from collections.abc import Collection

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.lake.incidents import made_again
from mirrorlake.lake.reader import Reader
from mirrorlake.landing.generations import made_again_since


def closed_sources(
    lake: Reader, source: ClusterAdmin, flow: ResolvedFlow, topics: Collection[str]
) -> dict[str, str]:
    """Those of some source topics that were made again since they were landed, and why: the map
    leads to offsets of a log that is gone, and a position in the new one has no counterpart until
    an operator has let its generation begin. Raises ClusterUnreachable."""
    again = made_again(lake, flow.name).intersection(topics)
    again |= made_again_since(lake, source, topics)
    why = (
        f"it was made again at cluster {flow.source} since it was mirrored, and no position "
        "there means what it did; run the flow, and decide with mirrorlake resolve"
    )
    return dict.fromkeys(sorted(again), why)


def other_log(flow: ResolvedFlow, offset: int) -> str:
    """Why positions behind an offset, from which on the log of a partition went back, mean nothing
    until an operator has decided."""
    return (
        f"its log went back at cluster {flow.source} since it was mirrored, and is another one "
        f"from offset {offset} on; run the flow, and decide with mirrorlake resolve"
    )
