"""Sentences about what a move of groups left undone, and what an operator should know before
consumers start."""

from collections.abc import Sequence
from dataclasses import dataclass

from mirrorlake.errors import some_of
from mirrorlake.groups.checkpoint_plan import NOWHERE
from mirrorlake.groups.checkpoint_table import newest_checkpoints
from mirrorlake.groups.inventory import GroupInventory
from mirrorlake.groups.moves import MoveResult
from mirrorlake.groups.shared_topics import Direction, Route
from mirrorlake.groups.sync_plan import may_have_members

#: How many topics, or partitions, of a group a sentence names.
_NAMED = 5
#: What becomes of a position that stands, or would stand, at the goal.
_PLACED = ("moved", "would move", "there")


@dataclass(frozen=True)
class Drained:
    """The result of a catch-up. `missing` are partitions whose end was not reached; `records` were
    produced by it; `held` names open transactions at the source that hold records back."""

    flow: str
    complete: bool
    records: int = 0
    missing: tuple[str, ...] = ()
    detail: str | None = None
    held: tuple[str, ...] = ()


def left_over(
    direction: Direction,
    inventory: GroupInventory,
    results: Sequence[MoveResult],
    drained: Sequence[Drained],
) -> list[str]:
    """What was left undone, one sentence each."""
    left = undrained(drained)
    left += [
        f"cluster {direction.origin} did not report all its groups: {why}"
        for why in inventory.unreported
    ]
    left += [
        f"group {group} was not reported: {why}" for group, why in sorted(inventory.errors.items())
    ]
    left += [
        f"group {group} is not moved: it is {why}"
        for group, why in inventory.not_moved.items()
        if why == NOWHERE
    ]
    left += [f"topic {topic}: {why}" for topic, why in inventory.closed.items()]
    left += _without_counterpart(direction, inventory)
    left += _in_earlier_topics(direction, results)
    return left + [_standing_left(direction, result) for result in results if result.is_left]


def unread_of_others(route: Route, results: Sequence[MoveResult]) -> list[str]:
    """Groups that stand, in topics which other sources are mirrored into as well, behind records
    that they have not read there: a group has one position in such a topic, and one at each
    source."""
    flow = route.flow
    moved = {
        (result.standing.checkpoint.group_id, *result.standing.checkpoint.target): max(
            result.to_position, 0 if result.before is None else result.before.offset
        )
        for result in results
        if result.done in _PLACED
    }
    if route.reverse or not moved or flow.settings.policy != "identity":
        return []
    others = [
        other
        for other in route.connections.topology.active_flows()
        if other.target == flow.target and other.source != flow.source
        if other.settings.policy == "identity"
    ]
    return [
        f"group {key[0]}, {theirs.target_topic}-{theirs.partition}: at {moved[place]}, and by what "
        f"it has read on {other.source} at {theirs.target_position} (flow {other.name}): records "
        f"of {other.source} in between it reads at neither cluster; where it needs them, set it "
        "back to there, or have a group of another name at each source"
        for other in others
        for key, (theirs, _) in newest_checkpoints(route.lake, other.name).items()
        if (place := (key[0], *theirs.target)) in moved
        and not theirs.is_gone
        and theirs.target_position < moved[place]
    ]


def undrained(drained: Sequence[Drained]) -> list[str]:
    """Why flows were not drained, one sentence each."""
    sentences = [
        f"flow {flow_drained.flow} was not drained: {_why(flow_drained)}"
        for flow_drained in drained
        if flow_drained.detail or flow_drained.missing
    ]
    return sentences + [
        f"flow {flow_drained.flow} was not drained: {sentence}"
        for flow_drained in drained
        for sentence in flow_drained.held
    ]


def _without_counterpart(direction: Direction, inventory: GroupInventory) -> list[str]:
    """Sentences about positions without a counterpart, one for each group and topic."""
    places: dict[tuple[str, str], list[str]] = {}
    for (group, topic, partition), position in sorted(inventory.lost.items()):
        named = f"{position} of partition {partition}"
        places.setdefault((group, topic), []).append(named)
    return [
        f"group {group} has no position at {direction.goal} for {topic}, where it stands at "
        f"{some_of(positions, _NAMED, ' and in {} partitions more')}: "
        f"{_unmirrored(direction, topic)}"
        for (group, topic), positions in places.items()
    ]


def _in_earlier_topics(direction: Direction, results: Sequence[MoveResult]) -> list[str]:
    """Positions in topics that the flow mirrored to before, as under another policy: behind what is
    unread there, more is in the topic of now."""
    rows = (result.standing.checkpoint for result in results if result.done in _PLACED)
    return [
        f"group {row.group_id}, {row.target_topic}-{row.partition}: it reads on in a topic that "
        f"flow {direction.flow.name} mirrored {row.topic} to before; what came since is in {now}, "
        "where it is not moved: begin there at the first record"
        for row in rows
        if not direction.reverse
        if (now := direction.flow.target_topic(row.topic)) != row.target_topic
    ]


def _unmirrored(direction: Direction, topic: str) -> str:
    if not direction.reverse and direction.flow.pauses(topic):
        return "the topic is paused"
    return "nothing of it was ever mirrored; `mirrorlake plan` says whether it is refused"


def _standing_left(direction: Direction, result: MoveResult) -> str:
    """What was left undone about one position."""
    standing, checkpoint = result.standing, result.standing.checkpoint
    where = f"group {checkpoint.group_id}, {checkpoint.target_topic}-{checkpoint.partition}"
    if result.done in ("kept", "failed"):
        return f"{where}: {result.detail}"
    reasons = []
    if standing.past is not None:
        place = f"{checkpoint.topic}-{checkpoint.partition} on {direction.origin} ({standing.past})"
        reasons.append(
            f"its position {checkpoint.source_position} lies behind the end of {place}, where no "
            "record is"
        )
    reasons += standing.lacks
    if reasons:
        return f"{where}: at {result.to_position}, since {' and '.join(reasons)}"
    late = "the opposite flow has not caught up"
    meaning = f"up to {standing.again} records will be read again" if standing.again else late
    paused = not direction.reverse and direction.flow.pauses(checkpoint.topic)
    return (
        f"{where}: held back at {result.to_position}, "
        f"{'since the topic is paused; ' if paused else ''}{meaning}"
    )


def _why(drained: Drained) -> str:
    if drained.detail is not None:
        return drained.detail
    return f"{len(drained.missing)} partitions are not at their end, such as {drained.missing[0]}"


def warnings_of(route: Route, inventory: GroupInventory) -> list[str]:
    """What an operator should know before consumers start: groups with members at the origin,
    groups not moved that no option named, open incidents of the flow."""
    warnings = [
        f"group {group} still has members on {route.origin}: stop them, then run this again, "
        "or they read on there"
        for group, state in sorted(inventory.states.items())
        if may_have_members(state)
    ]
    warnings += [
        f"group {group or repr(group)} is not moved: it is {why}"
        for group, why in inventory.not_moved.items()
        if why != NOWHERE
    ]
    warnings += [
        f"group {group} also stands in {some_of(topics, _NAMED, ' and others')}, which flow "
        f"{route.flow.name} does not select: it has no position there at {route.goal}"
        for group, topics in inventory.unselected.items()
    ]
    incidents = route.lake.query_rows("open_incidents_of", flow=route.flow.name)
    return warnings + [f"open incident {row['kind']}: {row['detail']}" for row in incidents]
