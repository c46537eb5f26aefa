"""Which source topics are no longer the ones that a flow has mirrored."""

from collections.abc import Collection

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.lake.other_logs import made_again, other_logs
from mirrorlake.lake.reader import Reader
from mirrorlake.landing.generations import since_landed


def closed_sources(
    lake: Reader,
    source: ClusterAdmin,
    flow: ResolvedFlow,
    topics: Collection[str],
    sure: bool = True,
) -> dict[str, str]:
    """Which of these source topics were made again since they were landed, and why they are closed:
    the map leads to offsets of a lost log, and a position in the new one has no counterpart until
    an operator lets its generation begin. With `sure` a topic is closed too of which the source
    does not say which one it has. Raises ClusterUnreachable."""
    now = since_landed(lake, source, topics)
    again = now.made_again | other_logs(lake, flow.name).topics.intersection(topics)
    unknown = sorted(now.unknown) if sure else ()
    unsaid = (
        f"cluster {flow.source} does not say whether it is the topic that was mirrored; run this "
        "again once it does"
    )
    return dict.fromkeys(unknown, unsaid) | dict.fromkeys(sorted(again), made_again(flow.source))
