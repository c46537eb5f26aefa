"""The groups in a flow's plan: those that would get checkpoints, and those left out."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.groups.checkpoint_plan import leaves_out, selects_group
from mirrorlake.groups.left_out import places_within
from mirrorlake.kafka.connections import Connections
from mirrorlake.naming.selection import matches_any

#: How many groups of each kind are asked for their positions: each takes a request.
MOST_GROUPS = 200
#: For how many patterns the nearest of all groups is looked for: of ten thousand that takes long.
MOST_NEAR = 3


@dataclass(frozen=True)
class PlannedGroups:
    """Groups of a source that have positions in the topics of a flow.

    Attributes:
        positions: how many partitions of these topics the selected groups have positions in;
            extrapolated if there are more groups than were asked.
        left_out: groups that the flow's settings leave out; some, if there are more.
        untold: why the source may have groups that are not counted or named: not all of its brokers
            listed theirs, or a group was not answered for. A selected one of the latter counts like
            the average of the others, if any was answered for.
        unmatched: patterns of `groups` by which the flow selects no group of the source now, the
            first ones with the name of a group that is nearest to it, others with an empty text;
            none if not all brokers listed their groups. `.*` may match no group.
    """

    positions: int = 0
    left_out: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    unmatched: Mapping[str, str] = field(default_factory=dict)


def planned_groups(
    connections: Connections, flow: ResolvedFlow, topics: Collection[str]
) -> PlannedGroups:
    """The groups for the topics that a flow mirrors; none if it makes no checkpoints. Raises
    ClusterUnreachable, AuthenticationFailed."""
    settings = flow.settings
    if not topics or not settings.emit_checkpoints_enabled:
        return PlannedGroups()
    admin = connections.groups(flow.source)
    listing = admin.listing()
    listed = sorted(listing.states)
    selected = [group for group in listed if selects_group(settings, group)]
    others = [group for group in listed if leaves_out(settings, group)][:MOST_GROUPS]
    asked = selected[:MOST_GROUPS]
    committed = admin.positions([*asked, *others])
    answers = [committed.positions[group] for group in asked if group in committed.positions]
    found = sum(topic in topics for positions in answers for topic, _ in positions)
    places = places_within(committed, topics.__contains__)
    silent = [
        f"group {group}, which the flow leaves out, was not answered for: {committed.errors[group]}"
        for group in others
        if group in committed.errors and group not in places
    ]
    if asked and not answers:
        why = committed.errors[asked[0]]
        silent.append(f"none that the flow selects, such as {asked[0]}, was answered for: {why}")
    return PlannedGroups(
        round(found * len(selected) / max(1, len(answers))),
        tuple(group for group in others if group in places),
        (*listing.errors, *silent),
        {} if listing.errors else _unmatched(settings.groups, selected, listed),
    )


def _unmatched(
    patterns: Collection[str], selected: Collection[str], listed: Collection[str]
) -> dict[str, str]:
    idle = [
        pattern
        for pattern in patterns
        if pattern != ".*" and not any(matches_any((pattern,), group) for group in selected)
    ]
    near = {pattern: get_close_matches(pattern, listed, 1) for pattern in idle[:MOST_NEAR]}
    return {pattern: next(iter(near.get(pattern, ())), "") for pattern in idle}
