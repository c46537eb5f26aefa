"""`mirrorlake migrate`: moves groups of a wave of topics from MirrorMaker 2's copies to ours, or
back, on one cluster.

All state is in the groups themselves and in `changes`, so a second run after a kill does the rest.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mirrorlake.attempts import attempts
from mirrorlake.failover.failover import SYNC_SECONDS, carry_out
from mirrorlake.groups.checkpoint_plan import Checkpoint, trimmed_reason
from mirrorlake.groups.mover import plan_within_logs, read_on_to, sole_mover
from mirrorlake.groups.moves import KIND, MoveResult, Standing
from mirrorlake.groups.passed_over import passed_over_at_target
from mirrorlake.groups.shared_topics import Route
from mirrorlake.groups.sync_plan import ACTIVE, TargetGroup, may_have_members
from mirrorlake.kafka.groups import GroupPositions, positions_or_errors
from mirrorlake.lake.event_log import EventLog, WrittenChanges
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Reader
from mirrorlake.migrate.answer import document_of
from mirrorlake.migrate.copies import Wave, copies_of
from mirrorlake.migrate.locating import Located, Locator, Pair
from mirrorlake.migrate.matching import Counterpart
from mirrorlake.migrate.reading import read_syncs
from mirrorlake.migrate.wave_groups import WaveGroups, groups_of
from mirrorlake.produce.encoding import Hops

logger = logging.getLogger(__name__)

READ_MEANWHILE = "it has read on in the copy that it leaves since its position was located"
NOT_KNOWN_MEANWHILE = (
    "whether it has read on in the copy that it leaves since its position was located is not known"
)

#: How long to wait for the other copy to reach a group's position, and how often to check, seconds.
WAIT_SECONDS = 60.0
LOOK_SECONDS = 2.0


def migrate(lake: Lake | None, route: Route, wave: Wave) -> dict[str, Any]:
    """Move the groups of a wave.

    Args:
        lake: the lake that records the moves; None for a dry run.
        route: the flow, with a reader of the same lake.
        wave: what to move.

    Returns:
        What was done, as one document; `complete` says whether nothing is left.

    Raises:
        InputError: nothing matches the wave, or the wave is invalid.
        ClusterUnusable: a cluster cannot be asked.
        LeaseTaken: another process moves groups between the clusters.
        LakeError: the lake's store does not answer.
    """
    wave.check()
    flow, admin = route.flow, route.connections.groups(route.flow.target)
    copies = copies_of(route, wave)
    groups, lacking = groups_of(flow.target, admin, wave, copies), copies.lacking
    if lake is None or wave.dry_run:
        results, methods, _ = _planned(route, wave, groups, 0.0)
        return document_of(flow, wave, groups, results=results, methods=methods, lacking=lacking)
    with sole_mover(lake, flow, SYNC_SECONDS) as unsure:
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
    lacking = [*lacking, *unsure]  # a second run finds the lease given back
    return document_of(flow, wave, groups, results=results, methods=methods, lacking=lacking)


def _planned(
    route: Route, wave: Wave, groups: WaveGroups, seconds: float
) -> tuple[list[MoveResult], list[str], Mapping[str, TargetGroup]]:
    """The planned move of each position, the method that located it, and the states of the groups
    that the plan is based on."""
    located = _located(route, wave.rollback, groups, seconds)
    standings, methods = [], []
    done_before = _done_before(route.lake, route.flow.name)
    sources = set() if wave.rollback else {pair.source for pair, _ in located}
    lacking = passed_over_at_target(route.lake, route.flow.name, sources) if sources else {}
    for (group, pair), position in groups.positions.items():
        at = located[pair, position.offset]
        origin, goal = (pair.ours, pair.theirs) if wave.rollback else (pair.theirs, pair.ours)
        offset = -1 if at.place.offset is None else at.place.offset
        gone = _passed_over(at.place, lacking.get(pair.source, ()))
        moved = Checkpoint(
            group,
            origin,
            pair.partition,
            position.offset,
            goal,
            target_position=offset,
            metadata=position.metadata,
            reason=trimmed_reason(gone) if gone and at.place.exact else at.place.reason,
        )
        # whatever the goal loses in front of its start since was a record behind the position
        standings.append(Standing(moved, at.place.exact, again=0, gone=gone, ahead=True))
        methods.append(at.method)

    def mark(bound: Sequence[Standing]) -> list[Standing]:
        return [_mark_moved(standing, done_before) for standing in bound]

    target = route.flow.target
    admin, at_target = route.connections.admin(target), route.connections.groups(target)
    planned, goals = plan_within_logs(admin, at_target, standings, mark)
    return [_withheld(_located_still(result, goals), wave) for result in planned], methods, goals


def _passed_over(place: Counterpart, lacking: Sequence[tuple[int, int]]) -> int:
    """How many records that our copy goes on without a group has not read. `lacking` has where they
    would be: a group whose next record is the one behind them has read them in the other copy."""
    at = place.offset
    if at is None:
        return 0
    first = at + 1 if place.is_next else at
    return sum(count for offset, count in lacking if offset >= first)


def _located(
    route: Route, rollback: bool, groups: WaveGroups, seconds: float
) -> dict[tuple[Pair, int], Located]:
    """Locate positions; wait up to `seconds` until the other copy has reached those of groups
    without members."""
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
    """The name in `changes` of a group's move between copies. It names both topics; group sync's
    rows name one, since it translates from the source and the group may still read the other copy.
    """
    topics = checkpoint.topic, checkpoint.target_topic
    copies = [f"{topic}-{checkpoint.partition}" for topic in topics]
    return f"{checkpoint.group_id} {' -> '.join(reversed(copies) if back else copies)}"


def _done_before(reader: Reader, flow: str) -> dict[str, tuple[int, str | None]]:
    """The last position set by each kind of move (`_way`), with its index in the history."""
    history = enumerate(WrittenChanges(reader).history(flow, KIND))
    return {one.resource: (at, one.after) for at, one in history if one.outcome == "done"}


def _mark_moved(standing: Standing, done: Mapping[str, tuple[int, str | None]]) -> Standing:
    """Mark a standing as set by an earlier run, if the group made this move after its last move
    back."""
    checkpoint = standing.checkpoint
    at, position = done.get(_way(checkpoint), (-1, None))
    back, _ = done.get(_way(checkpoint, back=True), (-1, None))
    moved = at > back and position == str(checkpoint.target_position)
    return replace(standing, checkpoint=replace(checkpoint, synced=moved))


def _located_still(result: MoveResult, goals: Mapping[str, TargetGroup]) -> MoveResult:
    """Keep a group whose position changed since it was located: waiting for the lease and for our
    copy takes time, in which its consumers may have read on before they stopped. Groups with
    members are not moved anyway."""
    moved = result.standing.checkpoint
    if result.done not in ("would move", "there") or goals[moved.group_id].is_active:
        return result
    now = goals[moved.group_id].positions.get((moved.topic, moved.partition))
    if now is not None and now.offset == moved.source_position:
        return result
    return replace(result, done="kept", detail=READ_MEANWHILE)


def _read_nothing_meanwhile(result: MoveResult, now: GroupPositions) -> MoveResult:
    """Report a group that is moved, or there, as failed if it read on in the copy that it leaves,
    or if its coordinator does not say: it would read those records again unless moved once more."""
    if result.done != "moved" and (result.done != "there" or result.detail is not None):
        return result
    left = result.standing.checkpoint
    if (why := now.errors.get(left.group_id)) is not None:
        return replace(result, done="failed", detail=f"{NOT_KNOWN_MEANWHILE}: {why}")
    if read_on_to(left, now) is None:
        return result
    return replace(result, done="failed", detail=READ_MEANWHILE)


def _withheld(result: MoveResult, wave: Wave) -> MoveResult:
    """Keep positions that are not exact, or behind which the copy lacks records, unless `inexact`
    is set and a position is known."""
    standing, checkpoint = result.standing, result.standing.checkpoint
    if standing.is_whole or result.done == "failed" or result.detail == ACTIVE:
        return result
    if checkpoint.target_position < 0:  # whatever its position there
        return replace(result, done="kept", detail=checkpoint.reason)
    if result.done == "there":
        return result
    reason = checkpoint.reason or " and ".join(standing.lacks)
    if not wave.inexact:
        what = "these are never read" if standing.gone else "some are read again"
        why = f"{reason}; --inexact moves it, and {what}"
        return replace(result, done="kept", detail=why)
    if result.done == "kept":
        return result
    return replace(result, detail=f"not exact: {reason}")
