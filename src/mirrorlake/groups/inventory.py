"""Where consumer groups stand: their positions on one side of a flow, and what these mean on the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.target_generations import closed_targets
from mirrorlake.errors import ClusterUnusable, InputError
from mirrorlake.groups.checkpoint_plan import OTHER_KIND, GroupPartition, is_own_group, selects_group
from mirrorlake.groups.checkpoint_table import newest_checkpoints
from mirrorlake.groups.moves import Standing, stand, stand_by_checkpoint
from mirrorlake.groups.shared_topics import Way, joined
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.groups import GroupAdmin, Told
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.translate import translate_all
from mirrorlake.offsets.positions import Committed, Translated


@dataclass(frozen=True)
class GroupInventory:
    """What was found. `states` of the groups at the origin, `errors` of groups that were not reported, by group;
    `untold` says why the origin may have more groups than it reported. `gone` says why the origin's positions are those
    of the last checkpoints; `closed` of source topics why no position in their target topics means anything now: these
    have no standings."""

    standings: tuple[Standing, ...]
    states: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    untold: tuple[str, ...] = ()
    gone: str | None = None
    closed: Mapping[str, str] = field(default_factory=dict)
    #: Groups that the flow would mirror if they were consumer groups.
    other_kinds: tuple[str, ...] = ()
    #: Source topics with positions that lead nowhere: nothing of them is mapped, or not any more.
    unmapped: frozenset[str] = frozenset()


def take_inventory(
    lake: Reader, connections: Connections, way: Way, named: Sequence[str] | None, gone: str | None
) -> GroupInventory:
    """Where groups stand now.

    Args:
        lake, connections, way: from where to where.
        named: only these; all that the flow mirrors for None.
        gone: why the source of the flow does not answer (`silence`): the last checkpoints then stand for it.

    Raises:
        InputError: a group is nowhere.
        ClusterUnusable: a cluster that is needed does not answer.
    """
    if gone is not None:
        found = _by_checkpoints(lake, connections, way, named, gone)
    else:
        found = _by_cluster(lake, connections, way, named)
    return _without_closed(found, closed_targets(lake, connections, way.flow), way.reverse)


def _without_closed(found: GroupInventory, closed: Mapping[str, str], reverse: bool) -> GroupInventory:
    def topic(item: Standing) -> str:
        return item.checkpoint.target_topic if reverse else item.checkpoint.topic

    kept = tuple(item for item in found.standings if topic(item) not in closed)
    left = ({topic(item) for item in found.standings} | found.unmapped) & closed.keys()
    return replace(found, standings=kept, closed={name: closed[name] for name in sorted(left)})


def silence(connections: Connections, way: Way) -> str | None:
    """Why the origin cannot be used, None if it can: a cluster in whose name somebody refuses us is as gone as one that
    is silent. On the way back nothing can stand for it: raises ClusterUnusable."""
    try:
        connections.admin(way.origin).cluster_id()
    except ClusterUnusable as error:
        if way.reverse:
            raise
        return str(error)
    return None


def _by_cluster(lake: Reader, connections: Connections, way: Way, named: Sequence[str] | None) -> GroupInventory:
    admin = connections.groups(way.origin)
    listing = admin.listing()
    others = admin.other_kinds(listing)
    if named is None:
        # Who is not listed any more is gone only if its coordinator says so.
        known = listing.states.keys() | _checkpointed(lake, way)
        told = _told(admin, [group for group in known if selects_group(way.flow.settings, group)])
    else:
        _refuse_own(named)
        _refuse_other_kinds(named, others)
        told = _told(admin, named)
        having = {group for group, positions in told.positions.items() if positions}
        _refuse_unknown(named, listing.states.keys() | told.errors.keys() | having, way.origin)
    committed = {
        (group, topic, partition): position
        for group, items in told.positions.items()
        for (topic, partition), position in items.items()
        if way.reverse or _mirrors(connections, way.flow, topic)
    }
    found = _translated(lake, connections, way, committed)
    standings = [
        stand(key, position, item)
        for key, position in sorted(committed.items())
        if (item := found.get((key[1], key[2], position.offset))) is not None and item.mapped
    ]
    mapped = {(item.checkpoint.topic, item.checkpoint.partition) for item in standings}
    unmapped = frozenset(topic for _, topic, partition in committed if (topic, partition) not in mapped)
    states = {group: listing.states[group] for group in told.positions if group in listing.states}
    unmapped = frozenset() if way.reverse else unmapped
    shown = tuple(sorted(group for group in others if named is None and selects_group(way.flow.settings, group)))
    return GroupInventory(tuple(standings), states, told.errors, listing.errors, other_kinds=shown, unmapped=unmapped)


def _told(admin: GroupAdmin, groups: Sequence[str]) -> Told:
    """Positions; where nobody answered for any group, all of them are unknown."""
    try:
        return admin.positions(groups)
    except ClusterUnusable as error:
        return Told({}, dict.fromkeys(groups, str(error)))


def _checkpointed(lake: Reader, way: Way) -> set[str]:
    """Groups that had positions at the flow's source when it last answered. On the way back nobody knows such
    groups."""
    if way.reverse:
        return set()
    return {key[0] for key, (item, _) in newest_checkpoints(lake, way.flow.name).items() if not item.is_gone}


def _mirrors(connections: Connections, flow: ResolvedFlow, topic: str) -> bool:
    return flow.selection.selects(topic)


def _by_checkpoints(
    lake: Reader, connections: Connections, way: Way, named: Sequence[str] | None, gone: str
) -> GroupInventory:
    newest = newest_checkpoints(lake, way.flow.name)
    if named is not None:
        _refuse_own(named)
        _refuse_unknown(named, {key[0] for key in newest}, "the table checkpoints")
    chosen = {
        key: (item, at)
        for key, (item, at) in newest.items()
        if (key[0] in named if named is not None else selects_group(way.flow.settings, key[0]) and not item.is_gone)
    }
    asked = [(item.topic, item.partition, item.source_position) for item, _ in chosen.values()]
    found = joined(lake, connections, way, translate_all(lake, way.flow.name, asked))
    standings = []
    for _, (item, at) in sorted(chosen.items()):
        # What was never sampled has its checkpoint still: a partition without records, and position 0.
        kept = Translated(item.target_topic, item.partition, item.target_position, item.is_exact)
        key = (item.topic, item.partition, item.source_position)
        if key in found or not item.is_over:
            standings.append(stand_by_checkpoint(item, found.get(key, kept), at))
    return GroupInventory(tuple(standings), gone=gone)


def _refuse_own(named: Sequence[str]) -> None:
    ours = [group for group in named if is_own_group(group)]
    if ours:
        raise InputError(f"group {ours[0]} holds the positions of a flow of mirrorlake; it must not be moved")


def _refuse_other_kinds(named: Sequence[str], others: frozenset[str]) -> None:
    for group in named:
        if group in others:
            raise InputError(f"group {group} cannot be moved: it is {OTHER_KIND}")


def _refuse_unknown(named: Sequence[str], known: set[str], where: str) -> None:
    unknown = sorted(set(named) - known)
    if unknown:
        raise InputError(f"group {unknown[0]} is not known on {where}; `mirrorlake groups` lists those that are")


def _translated(
    lake: Reader, connections: Connections, way: Way, committed: Mapping[GroupPartition, Committed]
) -> dict[tuple[str, int, int], Translated]:
    asked = {(key[1], key[2], position.offset) for key, position in committed.items()}
    return joined(lake, connections, way, translate_all(lake, way.flow.name, asked, way.reverse))
