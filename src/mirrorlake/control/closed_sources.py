"""Which source topics are other ones than those that a flow has mirrored."""

from collections.abc import Collection

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.lake.other_logs import made_again, other_logs
from mirrorlake.lake.reader import Reader
from mirrorlake.landing.generations import made_again_since


def closed_sources(
    lake: Reader, source: ClusterAdmin, flow: ResolvedFlow, topics: Collection[str]
) -> dict[str, str]:
    """Those of some source topics that were made again since they were landed, and why: the map
    leads to offsets of a log that is gone, and a position in the new one has no counterpart until
    an operator has let its generation begin. Raises ClusterUnreachable."""
    again = set(other_logs(lake, flow.name).topics.intersection(topics))
    again |= made_again_since(lake, source, topics)
    return dict.fromkeys(sorted(again), made_again(flow.source))
