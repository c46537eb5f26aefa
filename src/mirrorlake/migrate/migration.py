"""`mirrorlake migrate`: groups of a wave of topics moved from MirrorMaker 2's copies to ours, or
back, on one cluster.

Nothing is remembered but in the groups themselves and in `changes`, so a second run after a kill
does what is left.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from mirrorlake.attempts import attempts
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import InputError
from mirrorlake.failover.failover import SYNC_SECONDS, carry_out
from mirrorlake.groups.checkpoint_plan import Checkpoint, GroupPartition
from mirrorlake.groups.mover import sole_mover, target_groups
from mirrorlake.groups.moves import KIND, MoveResult, Standing, plan_moves
from mirrorlake.groups.shared_topics import Route
from mirrorlake.groups.sync_plan import ACTIVE, TargetGroup, may_have_members
from mirrorlake.kafka.groups import GroupAdmin, GroupPositions, positions_or_errors
from mirrorlake.lake.event_log import EventLog, WrittenChanges
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.targets import living_targets
from mirrorlake.migrate.locating import Located, Locator, Pair
from mirrorlake.migrate.reading import read_syncs
from mirrorlake.migrate.wave import EVERY_NAME, Wave
from mirrorlake.naming.at_target import is_own_group
from mirrorlake.offsets.positions import Committed, TopicAndPartition
from mirrorlake.produce.encoding import Hops

logger = logging.getLogger(__name__)

READ_MEANWHILE = "it has read on in the copy that it leaves since its position was located"

#: How long our copy may take to come to where a group is, and how often it is looked at, seconds.
WAIT_SECONDS = 60.0
LOOK_SECONDS = 2.0


@dataclass(frozen=True)
class _WaveGroups:
    """Groups of a wave: states by group, and the positions that are to be moved; `lost` are those
    in partitions that only the copy which they leave has: group, topic and partition. `unbegun` are
    partitions that only the other copy has, and in which the group has no position. `stranded` are
    groups, and the copies that they stand in, of which the flow has none."""

    states: Mapping[str, str]
    positions: Mapping[tuple[str, Pair], Committed]
    lost: Sequence[GroupPartition]
    unbegun: Sequence[GroupPartition]
    stranded: Sequence[tuple[str, str]]
    errors: Mapping[str, str]
    unreported: tuple[str, ...]


class _Copies(NamedTuple):
    """The partitions of a wave that are on the target twice, why those of other topics are not, and
    by the topic that groups leave the partitions with records that only the other copy has.
    `unshown` are MirrorMaker 2's copies, by their names, of topics that the source does not show,
    or has no more, and that the flow never mirrored."""

    pairs: list[Pair]
    lacking: list[str]
    beyond: Mapping[str, Sequence[TopicAndPartition]]
    unshown: Set[str]


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
    copies = _copies(route, wave)
    groups, lacking = _groups(flow.target, admin, wave, copies), copies.lacking
    if lake is None or wave.dry_run:
        results, methods, _ = _planned(route, wave, groups, 0.0)
        return _document(flow, wave, groups, results=results, methods=methods, lacking=lacking)
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
    return _document(flow, wave, groups, results=results, methods=methods, lacking=lacking)


def _copies(route: Route, wave: Wave) -> _Copies:
    """What the target has of a wave. A topic that the source has no more, or does not show, counts
    as long as groups may stand in its copies."""
    flow = route.flow
    there = route.connections.admin(flow.target).topics()
    by_theirs: Callable[[str], str] = partial(wave.copy_of, flow.source)
    left = flow.target_topic if wave.rollback else by_theirs
    living = living_targets(route.lake, flow.name)
    known = route.connections.admin(flow.source).topics().keys() | {
        name for name in living if left(name) in there
    }
    names = sorted(
        name for name in known if flow.selection.selects(name) and re.fullmatch(wave.topics, name)
    )
    if not names:
        raise InputError(f"flow {flow.name} mirrors no topic that --topics {wave.topics} matches")
    pairs, lacking, beyond = list[Pair](), list[str](), dict[str, list[TopicAndPartition]]()
    for name in names:
        theirs, ours = wave.copy_of(flow.source, name), flow.target_topic(name)
        if theirs == ours:
            raise InputError(
                f"topic {name}: MirrorMaker 2's copy and ours are both called {ours}; the flow "
                "needs other names (`mirrorlake import --beside`), or say by --copies how "
                "MirrorMaker 2 names its copies"
            )
        missing = [topic for topic in (theirs, ours) if topic not in there]
        if missing:
            lacking.append(f"topic {name}: cluster {flow.target} has no {' and no '.join(missing)}")
            continue
        count = min(there[theirs].partitions, there[ours].partitions)
        pairs += [Pair(name, theirs, ours, partition) for partition in range(count)]
        origin, goal = (ours, theirs) if wave.rollback else (theirs, ours)
        beyond[origin] = [(goal, partition) for partition in range(count, there[goal].partitions)]
    if not pairs:
        raise InputError(f"{lacking[0]}; say by --copies how MirrorMaker 2 names its copies")
    mirrors = {one.target_topic for one in living.values()} | {*map(flow.target_topic, names)}
    others = set() if wave.rollback else there.keys() - mirrors - {*map(by_theirs, known)}
    return _Copies(
        pairs, lacking, _with_records(route, beyond), unshown=_unshown(route, wave, others)
    )


def _unshown(route: Route, wave: Wave, others: Set[str]) -> Set[str]:
    """Which topics of the target are, by their names, MirrorMaker 2's copies of topics of a wave.
    Where copies are called like the topics, those of the target are called so as well: then only
    what the source may have and does not describe counts."""
    flow = route.flow
    names = {copy: wave.topic_of(flow.source, copy) for copy in others}
    names = {
        copy: name
        for copy, name in names.items()
        if name and flow.selection.selects(name) and re.fullmatch(wave.topics, name)
    }
    alike = sorted(copy for copy, name in names.items() if copy == name)
    seen, missing = route.connections.admin(flow.source).identities(alike)
    return names.keys() - seen.keys() - missing


def _with_records(
    route: Route, beyond: Mapping[str, Sequence[TopicAndPartition]]
) -> Mapping[str, Sequence[TopicAndPartition]]:
    """Without the partitions that never had a record: who begins there skips none."""
    places = [place for some in beyond.values() for place in some]
    admin = route.connections.admin(route.flow.target)
    ends = admin.end_offsets(places, skip_silent=True) if places else {}
    return {topic: [at for at in some if ends.get(at) != 0] for topic, some in beyond.items()}


def _groups(target: str, admin: GroupAdmin, wave: Wave, copies: _Copies) -> _WaveGroups:
    """The groups on the target that have positions in the copies which they leave."""
    listing = admin.listing()
    named = [
        name
        for name in listing.states
        if re.fullmatch(wave.groups, name) and not is_own_group(name)
    ]
    if not named and not listing.errors and wave.groups != EVERY_NAME:
        raise InputError(f"cluster {target} has no group that --groups {wave.groups} matches")
    committed = admin.positions(named) if named else GroupPositions({})
    by_origin = {pair.own if wave.rollback else pair.copy: pair for pair in copies.pairs}
    positions = {
        (group, by_origin[topic, partition]): position
        for (group, topic, partition), position in sorted(committed.by_partition.items())
        if (topic, partition) in by_origin
    }
    topics = {topic for topic, _ in by_origin}
    lost = [
        key
        for key in sorted(committed.by_partition)
        if key[1] in topics and key[1:] not in by_origin
    ]
    standing = {(group, topic) for group, topic, _ in committed.by_partition}
    unbegun = [
        (group, *place)
        for group, topic in sorted(standing)
        for place in copies.beyond.get(topic, ())
        if (group, *place) not in committed.by_partition
    ]
    stranded = sorted(place for place in standing if place[1] in copies.unshown)
    having = {group for group, _ in positions} | committed.errors.keys()
    states = {group: state for group, state in listing.states.items() if group in having}
    return _WaveGroups(
        states,
        positions,
        lost=lost,
        unbegun=unbegun,
        stranded=stranded,
        errors=committed.errors,
        unreported=listing.errors,
    )


def _planned(
    route: Route, wave: Wave, groups: _WaveGroups, seconds: float
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
    route: Route, rollback: bool, groups: _WaveGroups, seconds: float
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
    left = result.standing.checkpoint
    at = now.positions.get(left.group_id, {}).get((left.topic, left.partition))
    if result.done != "moved" or at is None or at.offset == left.source_position:
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


def _document(
    flow: ResolvedFlow,
    wave: Wave,
    groups: _WaveGroups,
    *,
    results: Sequence[MoveResult],
    methods: Sequence[str],
    lacking: Sequence[str],
) -> dict[str, Any]:
    left = [
        *lacking,
        *(
            f"cluster {flow.target} did not report all its groups: {why}"
            for why in groups.unreported
        ),
    ]
    left += [
        f"group {group} was not reported: {why}" for group, why in sorted(groups.errors.items())
    ]
    left += [
        f"group {group}, {topic}-{partition}: the other copy has no such partition (yet)"
        for group, topic, partition in groups.lost
    ]
    left += [
        f"group {group} stands in {copy}: cluster {flow.source} does not show topic "
        f"{wave.topic_of(flow.source, copy)}, or has it no more, and flow {flow.name} has no copy "
        "of it"
        for group, copy in groups.stranded
    ]
    left += [
        f"group {group}, {topic}-{partition}: the copy that it leaves has no such partition, so it "
        "has no position there, and begins by its auto.offset.reset; set it to the start"
        for group, topic, partition in groups.unbegun
    ]
    left += [
        f"group {result.standing.checkpoint.group_id}, {result.standing.checkpoint.topic}-"
        f"{result.standing.checkpoint.partition}: {result.detail}"
        for result in results
        if result.done in ("kept", "failed")
    ]
    return {
        "flow": flow.name,
        "rollback": wave.rollback,
        "dry_run": wave.dry_run,
        "complete": not left,
        "groups": [_row(result, methods[number]) for number, result in enumerate(results)],
        "left": left,
    }


def _row(result: MoveResult, method: str) -> dict[str, Any]:
    checkpoint = result.standing.checkpoint
    known = checkpoint.target_position >= 0
    return {
        "group": checkpoint.group_id,
        "from_topic": checkpoint.topic,
        "partition": checkpoint.partition,
        "position": checkpoint.source_position,
        "to_topic": checkpoint.target_topic,
        "to_position": checkpoint.target_position if known else None,
        "before": None if result.before is None else result.before.offset,
        "done": result.done,
        "method": method,
        "exact": result.standing.exact,
        "detail": result.detail,
    }
