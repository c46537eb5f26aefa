"""What a flow does not see, as clusters and lake show it: for `mirrorlake.checks.unseen`."""

import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mirrorlake.checks.problem import Problem
from mirrorlake.checks.unseen import (
    left_out_groups,
    missed_deletions,
    unlisted_groups,
    unmatched_groups,
)
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.retention import compacts, keeps_deletions_ms
from mirrorlake.kafka.values import TopicConfigs
from mirrorlake.lake.reader import Reader
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.run.plan_totals import Staged

#: A flow whose last sample is not older runs, or has just ended.
RUNS_MS = 300_000


def away_ms(lake: Reader | None, flow: str) -> float | None:
    """How long a flow has not run, milliseconds; None if it never has, or that is not known."""
    if lake is None:
        return None
    rows = lake.query_rows("newest_sample_at", flow=flow)
    at = rows[0]["at"] if rows else None
    return None if at is None else time.time() * 1_000 - at


def unseen_problems(
    connections: Connections,
    flow: ResolvedFlow,
    plan: Mapping[str, Any],
    *,
    at_source: Mapping[str, TopicConfigs],
    away: float | None,
    staged: Staged,
) -> Iterator[Problem]:
    """Problems about what a flow misses. `plan` is its document in that of `run.plan.make_plan`,
    with its groups; `at_source` are its topics' configs at the source; `away` is how long the flow
    has not run (`away_ms`). Raises ClusterUnreachable, AuthenticationFailed."""
    topics = {
        topic["topic"]: topic["partitions"]
        for topic in plan["topics"]
        if topic["action"] != "refuse"
    }
    if not topics:
        return
    if away is not None and away > RUNS_MS:
        kept = {
            topic: keeps_deletions_ms(configs)
            for topic, configs in at_source.items()
            if compacts(configs)
        }
        new = _not_staged(
            connections.admin(flow.source),
            [(topic, number) for topic in kept for number in range(topics[topic])],
            staged.ends(flow.source),
        )
        yield from missed_deletions(flow.name, away, {topic: kept[topic] for topic in new})
    yield from left_out_groups(flow.name, plan["groups"]["left_out"])
    yield from unmatched_groups(flow.name, flow.source, plan["groups"]["unmatched"])
    yield from unlisted_groups(flow.name, flow.source, plan["groups"]["untold"])


def _not_staged(
    source: ClusterAdmin,
    places: Collection[TopicAndPartition],
    staged: Mapping[TopicAndPartition, int] | None,
) -> set[str]:
    """The topics of partitions that have unstaged records, or may, as a leader does not answer."""
    if staged is None:
        return {topic for topic, _ in places}
    ends = source.end_offsets(places, skip_silent=True)
    return {key[0] for key in places if key not in ends or ends[key] > staged.get(key, 0)}
