"""Queries of both sides of a route, for translating positions along it."""

import logging
from collections.abc import Collection, Mapping
from functools import partial

from mirrorlake.config.topology import Topology
from mirrorlake.errors import ClusterUnusable
from mirrorlake.groups import logs
from mirrorlake.groups.passed_over import with_passed_over
from mirrorlake.groups.readable import Sides
from mirrorlake.groups.shared_topics import Direction, Route, joined
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.translate import translate_living
from mirrorlake.offsets.positions import (
    LogEnds,
    TopicAndPartition,
    TopicPartitionOffset,
    Translated,
)

logger = logging.getLogger(__name__)


def translate_along(
    lake: Reader, topology: Topology, way: Direction, asked: Collection[TopicPartitionOffset]
) -> dict[TopicPartitionOffset, Translated]:
    """Positions of groups on the other side of a direction, as far as the lake knows: by both
    flows' records in a topic that two share, with those that the flow goes on without as `gone`."""
    flow = way.flow.name
    translated = joined(lake, topology, way, translate_living(lake, flow, asked, way.reverse))
    return translated if way.reverse else with_passed_over(lake, flow, translated)


def sides_of(route: Route, gone: str | None = None) -> Sides:
    """Both sides of a route, as `readable_positions` queries them. If the origin is gone, its log
    ends are unknown and its starts come from the newest samples."""
    connections, lake, flow = route.connections, route.lake, route.flow.name
    translate = partial(translate_along, lake, connections.topology, route)
    origin, goal = connections.admin(route.origin), connections.admin(route.goal)

    def sampled(_: Collection[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        rows = lake.query_rows("newest_samples", flow=flow, since_ms=0)
        return {
            (row["topic"], row["partition"]): row["source_start"]
            for row in rows
            if row["source_start"]
        }

    def goal_logs(wanted: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, LogEnds]:
        try:
            return logs.logs(goal, wanted)
        except ClusterUnusable as error:
            # nothing moves there now, and positions stay as the map says
            logger.warning("%s", error)
            return {}

    if gone is not None:
        return Sides(translate, sampled, lambda _: {}, goal_logs)
    return Sides(
        translate,
        partial(logs.starts, origin),
        partial(logs.ends, origin, committed=False),
        goal_logs,
    )
