"""`mirrorlake failover` and `failback`: move groups to the other cluster, verify them by reading
back, and write that down.

Resumable: each step checks the present state, so a second run after a kill does what is left and
ends in the same state. The only state is the groups themselves, `changes` and `checkpoints`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mirrorlake import failpoints
from mirrorlake.config.precedence import opposite_name
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import MirrorlakeError
from mirrorlake.failover.divergence import divergence_of
from mirrorlake.failover.left_over import (
    Drained,
    left_over,
    undrained,
    unread_of_others,
    warnings_of,
)
from mirrorlake.groups.checkpoint_plan import Checkpoint, GroupPartition
from mirrorlake.groups.checkpoint_table import append_checkpoints, newest_checkpoints
from mirrorlake.groups.inventory import GroupInventory, take_inventory, why_unreachable
from mirrorlake.groups.mover import (
    MovePlan,
    Sent,
    move_in_steps,
    outcome_of,
    plan_within_logs,
    read_on_to,
    sole_mover,
)
from mirrorlake.groups.moves import FAILBACK, MoveResult, Standing, documents, mark_synced
from mirrorlake.groups.shared_topics import Direction, Route
from mirrorlake.groups.sync_plan import TargetGroup
from mirrorlake.kafka.groups import GroupAdmin, positions_or_errors
from mirrorlake.lake.deployment import Deployment

#: How long to wait for a turn of group sync that is under way when groups are to be moved, seconds.
SYNC_SECONDS = 120.0


@dataclass(frozen=True)
class MoveOptions:
    """How to move groups. `groups` None means all that the flow mirrors."""

    groups: tuple[str, ...] | None = None
    dry_run: bool = False
    force: bool = False
    drain: bool = True


def move_groups(
    deployment: Deployment, direction: Direction, options: MoveOptions
) -> dict[str, Any]:
    """Move groups along a direction.

    Returns:
        What was done, as one document; `complete` is whether nothing is left.

    Raises:
        InputError: a named group is not known there.
        ClusterUnusable: the goal cannot be used.
        LeaseTaken: another process moves groups between the clusters.
        LakeError: the lake was opened only to be read, and flows are to be drained; or its store
            does not answer.
    """
    lake, connections = deployment.lake, deployment.connections
    route = Route(direction.flow, direction.reverse, lake=lake.now, connections=connections)
    if options.dry_run:
        return planned_moves(route, options)
    if options.drain:
        lake.check_for_writing()
    connections.admin(direction.goal).cluster_id()
    gone = why_unreachable(route)
    drained = _catch_up(deployment, direction) if options.drain and not gone else []
    with sole_mover(lake, direction.flow, SYNC_SECONDS) as unsure:
        # Group sync would move the same groups at the same time. Read now, so that its notes until
        # now count, and what was drained or read by groups while we waited for the lease.
        lake.reader.refresh()
        inventory = take_inventory(route, options.groups, gone)
        results, goals = _planned(route, inventory, options.force)
        results = carry_out(connections.groups(direction.goal), results, goals, options.force)
        _note_down(deployment, direction, results)
        read_on = [] if inventory.gone else _read_on(route, results)
    done = _document(route, inventory, results, drained, read_on)
    return {**done, "warnings": [*unsure, *done["warnings"]]}


def planned_moves(route: Route, options: MoveOptions) -> dict[str, Any]:
    """The document of what `move_groups` would do; changes nothing. Raises the same errors."""
    route.connections.admin(route.goal).cluster_id()
    inventory = take_inventory(route, options.groups, why_unreachable(route))
    planned = _planned(route, inventory, options.force)
    return {**_document(route, inventory, planned.results, []), "dry_run": True}


def _document(
    route: Route,
    inventory: GroupInventory,
    results: Sequence[MoveResult],
    drained: Sequence[Drained],
    read_on: Sequence[str] = (),
) -> dict[str, Any]:
    # what the opposite flow lacks on the way there leaves something only where positions need it
    needed = drained if route.reverse else drained[:1]
    left = [*left_over(route, inventory, results, needed), *read_on]
    left += unread_of_others(route, results)
    return {
        "flow": route.flow.name,
        "command": _word(route),
        "dry_run": False,
        "complete": not left,
        "origin_unreachable": inventory.gone,
        "drained": [asdict(flow_drained) for flow_drained in drained],
        "groups": documents(results),
        "warnings": [*undrained(drained[len(needed) :]), *warnings_of(route, inventory)],
        "left": left,
        **({} if inventory.gone is None else divergence_of(route.lake, route.flow.name)),
    }


def _catch_up(deployment: Deployment, direction: Direction) -> list[Drained]:
    """Drain the flow, and on the way back the opposite one too, which brings records from the
    target. Where both use one name for a topic, drain it on the way there too, since positions are
    exact by both."""
    drained = [_drained(deployment, direction.flow)]
    opposite, topology = opposite_name(direction.flow), deployment.connections.topology
    if opposite in topology.flows:
        back = topology.flow(opposite)
        shares = back.settings.policy == direction.flow.settings.policy == "identity"
        # a flow that is switched off brings nothing back, and was never meant to; one that is
        # paused brings it later
        if back.settings.enabled and (direction.reverse or shares):
            drained.append(_drained(deployment, back))
    return drained


def _drained(deployment: Deployment, flow: ResolvedFlow) -> Drained:
    """Drain one flow. Both clusters have just answered; if one no longer does, the flow is left
    undrained."""
    try:
        # imported here: it runs the flow by Spark, which a dry run does without
        from mirrorlake.failover.drain import drain

        return drain(deployment, flow)
    except MirrorlakeError as error:
        return Drained(flow.name, False, detail=str(error))


def _planned(route: Route, inventory: GroupInventory, force: bool) -> MovePlan:
    newest = {
        key: checkpoint
        for key, (checkpoint, _) in newest_checkpoints(route.lake, route.flow.name).items()
    }

    def mark(bound: Sequence[Standing]) -> list[Standing]:
        return mark_synced(bound, newest, route.reverse)

    admin, groups = route.connections.admin(route.goal), route.connections.groups(route.goal)
    return plan_within_logs(admin, groups, inventory.standings, mark, force)


def carry_out(
    goal: GroupAdmin, results: Sequence[MoveResult], goals: Mapping[str, TargetGroup], force: bool
) -> list[MoveResult]:
    """Send the planned moves, group by group, and read them back. `goals` are the groups that the
    plan was based on."""
    moving = [result.standing.checkpoint for result in results if result.done == "would move"]
    sent: dict[GroupPartition, Sent] = {}
    for step in move_in_steps(goal, goals, moving, force, at_once=1):
        sent.update({move.checkpoint.group_partition: move for move in step})
        failpoints.reached("group-moved")
    now = positions_or_errors(goal, {checkpoint.group_id for checkpoint in moving})
    return [
        result
        if result.done != "would move"
        else outcome_of(result, sent[result.standing.checkpoint.group_partition], now)
        for result in results
    ]


def _read_on(route: Route, results: Sequence[MoveResult]) -> list[str]:
    """The groups that have read on at the origin since the move was planned, one sentence each."""
    moved: dict[str, list[Checkpoint]] = defaultdict(list)
    for result in results:
        if result.done == "moved" or (result.done == "there" and result.detail is None):
            moved[result.standing.checkpoint.group_id].append(result.standing.checkpoint)
    now = positions_or_errors(route.connections.groups(route.origin), moved.keys())
    left = [
        f"group {group} is moved, and whether it has read on at {route.origin} meanwhile is not "
        f"known: {why}"
        for group, why in sorted(now.errors.items())
    ]
    for group, checkpoints in sorted(moved.items()):
        others = [
            f"{was.topic}-{was.partition} ({was.source_position}, now {at})"
            for was in checkpoints
            if (at := read_on_to(was, now)) is not None
        ]
        if others:
            more = f" and {len(others) - 1} partitions more" if len(others) > 1 else ""
            left.append(
                f"group {group} has read on at {route.origin} while it was moved, in {others[0]}"
                f"{more}: stop its consumers there, then run this again, or they read it again"
            )
    return left


def _note_down(deployment: Deployment, direction: Direction, results: Sequence[MoveResult]) -> None:
    changed = [result for result in results if result.is_news]
    deployment.event_log.record(direction.flow.name, [result.change() for result in changed])
    # What failback did not move is not a position of the source, and so not a checkpoint.
    noted = ("moved", "there") if direction.reverse else ("moved", "there", "kept", "failed")
    rows = [
        result.checkpoint(direction.reverse, _word(direction))
        for result in changed
        if result.done in noted
    ]
    if rows:
        known = newest_checkpoints(deployment.lake.now, direction.flow.name).values()
        newest = max((at for _, at in known), default=None)
        append_checkpoints(deployment.lake, direction.flow.name, rows, newest=newest)


def _word(direction: Direction) -> str:
    return FAILBACK if direction.reverse else "failover"
