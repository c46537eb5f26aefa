"""What the clusters and the lake say about what a flow does not see: for
`mirrorlake.checks.unseen`."""

import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mirrorlake.checks.problem import Problem
from mirrorlake.checks.unseen import left_out_groups, missed_deletions
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.groups.checkpoint_plan import leaves_out
from mirrorlake.kafka.admin_configs import describe_topic_configs
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.reader import Reader
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.run.plan_totals import Staged

#: A flow that was sampled not longer ago runs, or has just ended.
RUNS_MS = 300_000
#: How many groups are asked for their positions: a request each.
MOST_GROUPS = 200
_RETENTION = "delete.retention.ms"


def away_ms(lake: Reader | None, flow: str) -> float | None:
    """For how long a flow has not run; None where it never has, or that is not known."""
    if lake is None:
        return None
    rows = lake.query_rows("newest_sample_at", flow=flow)
    at = rows[0]["at"] if rows else None
    return None if at is None else time.time() * 1_000 - at


def unseen_problems(
    connections: Connections,
    flow: ResolvedFlow,
    plan: Mapping[str, Any],
    away: float | None,
    staged: Staged,
) -> Iterator[Problem]:
    """What is worth knowing of a flow. `plan` is its document in that of `run.plan.make_plan`;
    `away` says for how long the flow has not run (`away_ms`). Raises ClusterUnreachable,
    AuthenticationFailed."""
    topics = {
        topic["topic"]: topic["partitions"]
        for topic in plan["topics"]
        if topic["action"] != "refuse"
    }
    if not topics:
        return
    if away is not None and away > RUNS_MS:
        kept = _deletions_kept(connections, flow, topics, staged.ends(flow.source))
        yield from missed_deletions(flow.name, away, kept)
    if flow.settings.emit_checkpoints_enabled:
        yield from left_out_groups(flow.name, _left_out(connections, flow, topics))


def _deletions_kept(
    connections: Connections,
    flow: ResolvedFlow,
    topics: Mapping[str, int],
    staged: Mapping[TopicAndPartition, int] | None,
) -> dict[str, int]:
    """`delete.retention.ms` of the compacted topics of which the source has records that are not
    staged, or may have."""
    source = connections.admin(flow.source)
    configs = describe_topic_configs(source, topics).configs
    kept = {
        topic: int(values[_RETENTION].value or 0)
        for topic, values in configs.items()
        if _RETENTION in values and "compact" in (values["cleanup.policy"].value or "")
    }
    if staged is None:
        return kept
    ends = source.end_offsets(
        [(topic, number) for topic in kept for number in range(topics[topic])]
    )
    waiting = {key[0] for key, end in ends.items() if end > staged.get(key, 0)}
    return {topic: kept[topic] for topic in waiting}


def _left_out(connections: Connections, flow: ResolvedFlow, topics: Collection[str]) -> list[str]:
    """Groups of the source that the flow's settings leave out, with positions in its topics; of the
    first so many, where they are more."""
    admin = connections.groups(flow.source)
    asked = sorted(group for group in admin.listing().states if leaves_out(flow.settings, group))[
        :MOST_GROUPS
    ]
    committed = admin.positions(asked).positions if asked else {}
    return [
        group
        for group, positions in committed.items()
        if any(topic in topics for topic, _ in positions)
    ]
