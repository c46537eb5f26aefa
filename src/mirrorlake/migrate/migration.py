"""`mirrorlake migrate`: groups of a wave of topics moved from MirrorMaker 2's copies to ours, or
back, on one cluster.

Nothing is remembered but in the groups themselves and in `changes`, so a second run after a kill
does what is left.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mirrorlake.attempts import attempts
from mirrorlake.failover.failover import SYNC_SECONDS, carry_out
from mirrorlake.groups.checkpoint_plan import Checkpoint
from mirrorlake.groups.mover import read_on_to, sole_mover, target_groups
from mirrorlake.groups.moves import KIND, MoveResult, Standing, plan_moves
from mirrorlake.groups.shared_topics import Route
from mirrorlake.groups.sync_plan import ACTIVE, TargetGroup, may_have_members
from mirrorlake.kafka.groups import GroupPositions, positions_or_errors
from mirrorlake.lake.event_log import EventLog, WrittenChanges
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Reader
from mirrorlake.migrate.answer import document_of
from mirrorlake.migrate.copies import copies_of
from mirrorlake.migrate.locating import Located, Locator, Pair
from mirrorlake.migrate.reading import read_syncs
from mirrorlake.migrate.wave import Wave
from mirrorlake.migrate.wave_groups import WaveGroups, groups_of
from mirrorlake.produce.encoding import Hops

logger = logging.getLogger(__name__)

READ_MEANWHILE = "it has read on in the copy that it leaves since its position was located"

#: How long our copy may take to come to where a group is, and how often it is looked at, seconds.
WAIT_SECONDS = 60.0
LOOK_SECONDS = 2.0


def migrate(lake: Lake | None, route: Route, wave: Wave) -> dict[str, Any]:
    """Move the groups of a wave.

    Args:
        lake: where it is noted; None for a dry run.
        route: the flow, with the same lake as it is read.
        wave: what is moved.

    Returns:
        What was done, as one document; `complete` is whether nothing is left.

    Raises:
        InputError: nothing fits the wave, or it cannot be.
        ClusterUnusable: a cluster cannot be asked.
        LeaseTaken: another process moves groups between the clusters.
    """
    wave.check()
    flow, admin = route.flow, route.connections.groups(route.flow.target)
    copies = copies_of(route, wave)
    groups, lacking = groups_of(flow.target, admin, wave, copies), copies.lacking
    if lake is None or wave.dry_run:
        results, methods, _ = _planned(route, wave, groups, 0.0)
        return document_of(flow, wave, groups, results=results, methods=methods, lacking=lacking)
    with sole_mover(lake, flow, SYNC_SECONDS):
        results, methods, goals = _planned(route, wave, groups, WAIT_SECONDS)
        results = carry_out(admin, results, goals, False)
        moved = {result.standing.checkpoint.group_id for result in results}
        now = positions_or_errors(admin, moved)
        results = [_read_nothing_meanwhile(result, now) for result in results]
        changes = [
            replace(result.change(), resource=_way(result.standing.checkpoint))
            for result in results
            if result.is_news
        ]
        EventLog(lake).record(flow.name, changes)
    return document_of(flow, wave, groups, results=results, methods=methods, lacking=lacking)


def _planned(
    route: Route, wave: Wave, groups: WaveGroups, seconds: float
) -> tuple[list[MoveResult], list[str], dict[str, TargetGroup]]:
    """What is to be done about each position, the method that located each, and the groups by which
    it was decided."""
    located = _located(route, wave.rollback, groups, seconds)
    standings, methods = [], []
    done_before = _done_before(route.lake, route.flow.name)
    for (group, pair), position in groups.positions.items():
        at = located[pair, position.offset]
        origin, goal = (pair.ours, pair.theirs) if wave.rollback else (pair.theirs, pair.ours)
        offset = -1 if at.place.offset is None else at.place.offset
        moved = Checkpoint(
            group,
            origin,
            pair.partition,
            position.offset,
            goal,
            target_position=offset,
            metadata=position.metadata,
            reason=at.place.reason,
        )
        standings.append(Standing(_mark_moved(moved, done_before), at.place.exact, 0))
        methods.append(at.method)
    names = {standing.checkpoint.group_id for standing in standings}
    goals, unreported = target_groups(route.connections.groups(route.flow.target), names)
    planned = plan_moves(standings, goals, {**groups.errors, **unreported}, False)
    return [_withheld(_located_still(result, goals), wave) for result in planned], methods, goals


def _located(
    route: Route, rollback: bool, groups: WaveGroups, seconds: float
) -> dict[tuple[Pair, int], Located]:
    """Where positions lead; waits so long for the other copy to come to those of groups without
    members."""
    if not groups.positions:
        return {}
    flow, connections = route.flow, route.connections
    pairs = {pair for _, pair in groups.positions}
    syncs = read_syncs(connections, flow, [pair.source for pair in pairs])
    ids = connections.identify([flow.source, flow.target])
    hops = None if flow.settings.provenance == "none" else Hops(ids[flow.source], ids[flow.target])
    locator = Locator(route, syncs, hops, back=rollback)
    asked = {(pair, position.offset) for (_, pair), position in groups.positions.items()}
    idle = {
        (pair, position.offset)
        for (group, pair), position in groups.positions.items()
        if not may_have_members(groups.states.get(group))
    }
    located, late = dict[tuple[Pair, int], Located](), list(asked)
    for last in attempts(seconds, LOOK_SECONDS):
        route.lake.refresh()
        located |= locator.locate(late)
        late = [key for key in idle if key in located and located[key].place.behind]
        if last or not late:
            break
        logger.info("flow %s: waiting for the copy of %d positions", flow.name, len(late))
    return located


def _way(checkpoint: Checkpoint, back: bool = False) -> str:
    """What `changes` calls a group's way from copy to copy: what group sync notes names one topic
    alone, since it brings positions from the source, and the group may read the other copy still.
    """
    topics = checkpoint.topic, checkpoint.target_topic
    copies = [f"{topic}-{checkpoint.partition}" for topic in topics]
    return f"{checkpoint.group_id} {' -> '.join(reversed(copies) if back else copies)}"


def _done_before(reader: Reader, flow: str) -> dict[str, tuple[int, str | None]]:
    """The last position that was set by each way, and the how manieth of all that was."""
    history = enumerate(WrittenChanges(reader).history(flow, KIND))
    return {one.resource: (at, one.after) for at, one in history if one.outcome == "done"}


def _mark_moved(checkpoint: Checkpoint, done: Mapping[str, tuple[int, str | None]]) -> Checkpoint:
    """A group was moved by an earlier run where it went that way last, and not back since."""
    at, position = done.get(_way(checkpoint), (-1, None))
    back, _ = done.get(_way(checkpoint, back=True), (-1, None))
    moved = at > back and position == str(checkpoint.target_position)
    return replace(checkpoint, synced=moved)


def _located_still(result: MoveResult, goals: Mapping[str, TargetGroup]) -> MoveResult:
    """Nothing is moved by a position that is an older one by now: the lease of who moves groups,
    and our copy, may have been waited for, and its consumers were stopped meanwhile. Of groups with
    members no position is known, and none is moved."""
    moved = result.standing.checkpoint
    if result.done not in ("would move", "there") or goals[moved.group_id].is_active:
        return result
    now = goals[moved.group_id].positions.get((moved.topic, moved.partition))
    if now is not None and now.offset == moved.source_position:
        return result
    return replace(result, done="kept", detail=READ_MEANWHILE)


def _read_nothing_meanwhile(result: MoveResult, now: GroupPositions) -> MoveResult:
    """One that has read on in the copy that it leaves while others were moved reads that again,
    unless it is moved once more."""
    if result.done != "moved" or read_on_to(result.standing.checkpoint, now) is None:
        return result
    return replace(result, done="failed", detail=READ_MEANWHILE)


def _withheld(result: MoveResult, wave: Wave) -> MoveResult:
    """Nothing is done about what is not exact, unless it is asked for and can be."""
    checkpoint = result.standing.checkpoint
    if result.standing.exact or result.done == "failed" or result.detail == ACTIVE:
        return result
    if checkpoint.target_position < 0:  # wherever the group is there
        return replace(result, done="kept", detail=checkpoint.reason)
    if result.done == "there":
        return result
    if not wave.inexact:
        why = f"{checkpoint.reason}; --inexact moves it, and some are read again"
        return replace(result, done="kept", detail=why)
    if result.done == "kept":
        return result
    return replace(result, detail=f"not exact: {checkpoint.reason}")
