"""Where groups stand: positions on one side of a flow, and their equivalents on the other."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from mirrorlake.control.closed_topics import closed_sources, closed_targets
from mirrorlake.errors import ClusterUnusable
from mirrorlake.groups.checkpoint_plan import (
    EXCLUDED,
    NAMELESS,
    NOWHERE,
    OTHER_KIND,
    Checkpoint,
    GroupPartition,
    leaves_out,
    selects_group,
)
from mirrorlake.groups.checkpoint_table import left_out_groups, newest_checkpoints, recently_left
from mirrorlake.groups.moves import Standing, standing_by_checkpoint, standing_of
from mirrorlake.groups.named_groups import refuse_other_kinds, refuse_own, refuse_unknown
from mirrorlake.groups.readable import bounded, readable_positions
from mirrorlake.groups.route_sides import sides_of
from mirrorlake.groups.shared_topics import Route
from mirrorlake.kafka.groups import Listing, positions_or_errors
from mirrorlake.lake.other_logs import other_logs, source_generations, went_back
from mirrorlake.lake.targets import living_targets
from mirrorlake.lake.translate import translate_all
from mirrorlake.offsets.positions import Translated


@dataclass(frozen=True)
class GroupInventory:
    """Standings of groups, and what could not be determined.

    `states` are of the groups at the origin. `errors` has reasons by unreported group; `unreported`
    says why the origin may have more groups than it reported. `gone` says why the last checkpoints
    were read instead of the origin's positions. `closed` says, by source topic or single partition,
    why positions in it or its mirror are meaningless: these have no standings.
    """

    standings: tuple[Standing, ...]
    states: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    unreported: tuple[str, ...] = ()
    gone: str | None = None
    closed: Mapping[str, str] = field(default_factory=dict)
    #: Groups that are not moved, and why.
    not_moved: Mapping[str, str] = field(default_factory=dict)
    #: Positions without a counterpart at the goal, in topics that the flow mirrors, or should.
    lost: Mapping[GroupPartition, int] = field(default_factory=dict)
    #: By group, the topics in which it has positions and which the flow does not select.
    unselected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def take_inventory(
    route: Route, named: Sequence[str] | None, gone: str | None, moves: bool = True
) -> GroupInventory:
    """Where groups stand now.

    Args:
        route: from which cluster to which.
        named: only these groups; None for all that the flow mirrors.
        gone: why the source does not answer (`why_unreachable`): read the last checkpoints instead.
        moves: groups are moved by it, so that both clusters have to say which topics they have.

    Raises:
        InputError: a named group is not known there.
        ClusterUnusable: a cluster that is needed does not answer.
    """
    if gone is not None:
        inventory = _by_checkpoints(route, named, gone)
    else:
        inventory = _by_cluster(route, named)
    topics = set() if route.reverse else {name for _, name, _ in inventory.lost}
    topics |= {_source_topic(standing, route.reverse) for standing in inventory.standings}
    closed = closed_targets(route.lake, route.connections, route.flow, moves)
    if gone is None:
        source = route.connections.admin(route.flow.source)
        closed |= closed_sources(route.lake, source, route.flow, topics, moves)
    inventory = _without_closed(inventory, closed, topics, route.reverse)
    return inventory if gone is not None else _without_other_logs(inventory, route)


def _source_topic(standing: Standing, reverse: bool) -> str:
    return standing.checkpoint.target_topic if reverse else standing.checkpoint.topic


def _without_closed(
    inventory: GroupInventory, closed: Mapping[str, str], topics: Collection[str], reverse: bool
) -> GroupInventory:
    """Without positions of topics that are closed; `topics` are those of all of them."""
    kept = tuple(
        standing
        for standing in inventory.standings
        if _source_topic(standing, reverse) not in closed
    )
    left = closed.keys() & topics
    lost = {key: position for key, position in inventory.lost.items() if key[1] not in left}
    return replace(
        inventory, standings=kept, closed={name: closed[name] for name in sorted(left)}, lost=lost
    )


def _without_other_logs(inventory: GroupInventory, route: Route) -> GroupInventory:
    """Without positions beyond the offset at which a source partition's log went back."""
    back = other_logs(route.lake, route.flow.name).since
    kept: list[Standing] = []
    closed: dict[str, str] = {}
    for standing in inventory.standings:
        checkpoint, topic = standing.checkpoint, _source_topic(standing, route.reverse)
        at = checkpoint.target_position if route.reverse else checkpoint.source_position
        first = back.get((topic, checkpoint.partition), at)
        if at > first:
            closed[f"{topic}-{checkpoint.partition}"] = went_back(route.flow.source, first)
        else:
            kept.append(standing)
    return replace(inventory, standings=tuple(kept), closed={**inventory.closed, **closed})


def why_unreachable(route: Route) -> str | None:
    """Why the origin cannot be used; None if it can. A cluster whose server rejects us counts as
    unreachable, like a silent one. On the way back nothing can replace the origin: raises
    ClusterUnusable."""
    try:
        route.connections.admin(route.origin).cluster_id()
    except ClusterUnusable as error:
        if route.reverse:
            raise
        return str(error)
    return None


def _by_cluster(route: Route, named: Sequence[str] | None) -> GroupInventory:
    admin = route.connections.groups(route.origin)
    listing = admin.listing()
    others = dict.fromkeys(admin.other_kinds(listing) or (), OTHER_KIND)
    others |= {"": NAMELESS} if "" in listing.states else {}
    if named is None:
        # A group that is no longer listed is gone only if its coordinator says so.
        known = listing.states.keys() | _checkpointed(route)
        reported = positions_or_errors(
            admin, [group for group in known if selects_group(route.flow.settings, group)]
        )
    else:
        refuse_own(named)
        refuse_other_kinds(named, others)
        reported = positions_or_errors(admin, named)
        having = {group for group, positions in reported.positions.items() if positions}
        refuse_unknown(named, listing.states.keys() | reported.errors.keys() | having, route.origin)
    everything = reported.by_partition
    mirrors = _mirrors(route, {key[1] for key in everything})
    committed = {key: position for key, position in everything.items() if key[1] in mirrors}
    translated = readable_positions(
        {(key[1], key[2], position.offset) for key, position in committed.items()}, sides_of(route)
    )
    counterparts = {
        key: translated.get((key[1], key[2], position.offset))
        for key, position in committed.items()
    }
    generations = source_generations(route.lake, route.flow.name)
    return GroupInventory(
        tuple(
            standing_of(
                key,
                committed[key],
                counterpart,
                generations.newest((counterpart.topic if route.reverse else key[1], key[2])),
            )
            for key, counterpart in sorted(counterparts.items())
            if counterpart is not None
        ),
        {group: listing.states[group] for group in reported.positions if group in listing.states},
        reported.errors,
        listing.errors,
        not_moved=_not_moved(route, listing, others)
        if named is None
        else dict.fromkeys(
            sorted(set(named) - {key[0] for key in committed} - reported.errors.keys()), NOWHERE
        ),
        lost={
            key: committed[key].offset
            for key, counterpart in sorted(counterparts.items())
            if counterpart is None
        },
        unselected={} if route.reverse else _by_group(everything.keys() - committed.keys()),
    )


def _checkpointed(route: Route) -> set[str]:
    """Groups with positions at the flow's source when it last answered; on the way back none."""
    if route.reverse:
        return set()
    return {
        key[0]
        for key, (checkpoint, _) in newest_checkpoints(route.lake, route.flow.name).items()
        if not checkpoint.is_gone
    }


def _mirrors(route: Route, topics: Collection[str]) -> set[str]:
    """Which of these topics of the origin the flow mirrors; on the way back, which are mirrors of
    its topics. Earlier mirrors count too: the source may have lost the topic, or hide it."""
    flow = route.flow
    if not route.reverse:
        return {topic for topic in topics if flow.selection.selects(topic)}
    ours = route.connections.admin(flow.source).topics()
    mirrors = {flow.target_topic(topic) for topic in ours if flow.selection.selects(topic)}
    for topic, known in living_targets(route.lake, flow.name).items():
        if flow.selection.selects(topic) and flow.target_topic(topic) == known.target_topic:
            mirrors.add(known.target_topic)
    return mirrors & set(topics)


def _by_group(keys: Iterable[GroupPartition]) -> dict[str, tuple[str, ...]]:
    topics: dict[str, set[str]] = {}
    for group, topic, _ in keys:
        topics.setdefault(group, set()).add(topic)
    return {group: tuple(sorted(names)) for group, names in sorted(topics.items())}


def _not_moved(route: Route, listing: Listing, others: Mapping[str, str]) -> dict[str, str]:
    """Groups that no command moves: immovable ones, or those that the flow's settings exclude."""
    settings = route.flow.settings
    reasons = {
        group: why for group, why in others.items() if not group or selects_group(settings, group)
    }
    left_out = [
        group for group in listing.states.keys() - others.keys() if leaves_out(settings, group)
    ]
    reported = positions_or_errors(route.connections.groups(route.origin), left_out)
    mirrors = _mirrors(
        route, {topic for positions in reported.positions.values() for topic, _ in positions}
    )
    for group, positions in reported.positions.items():
        if any(topic in mirrors for topic, _ in positions):
            reasons[group] = EXCLUDED
    return dict(sorted(reasons.items()))


def _by_checkpoints(route: Route, named: Sequence[str] | None, gone: str) -> GroupInventory:
    lake, flow = route.lake, route.flow
    newest = newest_checkpoints(lake, flow.name)
    if named is not None:
        refuse_own(named)
        refuse_unknown(named, {key[0] for key in newest}, "the table checkpoints")
    chosen = {
        key: (checkpoint, at)
        for key, (checkpoint, at) in newest.items()
        if (
            key[0] in named
            if named is not None
            else selects_group(flow.settings, key[0]) and not checkpoint.is_gone
        )
    }
    known = source_generations(lake, flow.name)
    over = {
        key: checkpoint
        for key, (checkpoint, _) in chosen.items()
        if checkpoint.has_counterpart
        and known.is_gone(checkpoint.place, checkpoint.source_position)
    }
    asked = {
        place: (checkpoint.topic, checkpoint.partition, checkpoint.source_position)
        for place, (checkpoint, _) in chosen.items()
    }
    sides = sides_of(route, gone)
    translated = readable_positions(frozenset(asked.values()), sides)
    noted = {
        # A partition that was never sampled (no records, position 0) still has its checkpoint.
        place: Translated(
            checkpoint.target_topic,
            checkpoint.partition,
            checkpoint.target_position,
            checkpoint.is_exact,
            ahead=False,
        )
        for place, (checkpoint, _) in chosen.items()
        if asked[place] not in translated and checkpoint.has_counterpart and not checkpoint.is_over
    }
    there = bounded({**noted, **_as_written(route, over)}, sides)
    standings, lost = [], {}
    for place, (checkpoint, at) in sorted(chosen.items()):
        leads_to = there.get(place, translated.get(asked[place]))
        if leads_to is not None:
            standings.append(standing_by_checkpoint(checkpoint, leads_to, at))
        else:
            lost[place] = checkpoint.source_position
    not_moved = _noted_as_left(route, newest) if named is None else {}
    return GroupInventory(tuple(standings), gone=gone, not_moved=not_moved, lost=lost)


def _noted_as_left(
    route: Route, newest: Mapping[GroupPartition, tuple[Checkpoint, datetime]]
) -> dict[str, str]:
    """Groups that no command moves, as far as the flow has noted them, and those that have lost
    their positions of late."""
    settings, noted = route.flow.settings, left_out_groups(route.lake, route.flow.name)
    reasons = {
        group: why
        for why in (OTHER_KIND, NAMELESS)
        for group in noted[why]
        if not group or selects_group(settings, group)
    }
    reasons |= {group: EXCLUDED for group in noted[EXCLUDED] if leaves_out(settings, group)}
    return dict(sorted(reasons.items())) | recently_left(newest, partial(selects_group, settings))


def _as_written(
    route: Route, checkpoints: Mapping[GroupPartition, Checkpoint]
) -> dict[GroupPartition, Translated]:
    """Translate positions in logs that the source no longer has: as their checkpoints say, or to
    the start of a new target topic. How far the groups read since is not known."""
    starts = {
        key: (
            checkpoint.target_topic,
            checkpoint.partition,
            0 if checkpoint.is_over else checkpoint.target_position,
        )
        for key, checkpoint in checkpoints.items()
    }
    ends = translate_all(route.lake, route.flow.name, starts.values(), reverse=True)
    again = {
        key: max(0, ends[start].end - start[2]) if start in ends else 0
        for key, start in starts.items()
    }
    return {
        key: Translated(
            *starts[key],
            checkpoint.is_exact and not checkpoint.is_over,
            ahead=again[key] > 0,
            again=again[key],
        )
        for key, checkpoint in checkpoints.items()
    }
