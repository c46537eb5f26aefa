"""Which source topics are no longer the ones that a flow has mirrored."""

from collections.abc import Collection

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.lake.other_logs import made_again, other_logs
from mirrorlake.lake.reader import Reader
from mirrorlake.landing.generations import made_again_since


def closed_sources(
    lake: Reader, source: ClusterAdmin, flow: ResolvedFlow, topics: Collection[str]
) -> dict[str, str]:
    """Which of these source topics were made again since they were landed, and why they are closed:
    the map leads to offsets of a lost log, and a position in the new one has no counterpart until
    an operator lets its generation begin. Raises ClusterUnreachable."""
    again = set(other_logs(lake, flow.name).topics.intersection(topics))
    again |= made_again_since(lake, source, topics)
    return dict.fromkeys(sorted(again), made_again(flow.source))
