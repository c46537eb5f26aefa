"""Where a flow's groups stand on both sides: the document that `mirrorlake groups` shows."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirrorlake.errors import ClusterUnusable
from mirrorlake.groups import logs
from mirrorlake.groups.checkpoint_plan import NO_MIRROR, REWOUND, Checkpoint, GroupPartition
from mirrorlake.groups.checkpoint_table import newest_checkpoints
from mirrorlake.groups.inventory import GroupInventory, take_inventory, why_unreachable
from mirrorlake.groups.moves import NOT_REPORTED, Standing
from mirrorlake.groups.shared_topics import Route
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.groups import GroupPositions, Listing
from mirrorlake.offsets.positions import TopicAndPartition


def read_groups(route: Route, named: Sequence[str] | None) -> dict[str, Any]:
    """Returns {"flow", "source_unreachable", "target_unreachable", "untold": [why], "errors":
    {group: why}, "not_mirrored": {group: why}, "topics_waiting": {topic: why}, "groups": [one per
    group and partition]}.

    `untold` says why a cluster may have more groups than it reported; `not_mirrored` are the groups
    that no command moves. A position without a counterpart at the target has a row too.

    What only an unreachable cluster could report is null. Raises InputError for an unknown group.
    """
    lake, flow, connections = route.lake, route.flow, route.connections
    inventory = take_inventory(route, named, why_unreachable(route), moves=False)
    checkpoints = [standing.checkpoint for standing in inventory.standings]
    known, silent = _target(route, sorted({checkpoint.group_id for checkpoint in checkpoints}))
    if not inventory.gone:
        places = [(checkpoint.topic, checkpoint.partition) for checkpoint in checkpoints]
        known.source_ends = logs.ends(connections.admin(flow.source), places)
    hasty: dict[str, set[TopicAndPartition]] = {}
    targets = {checkpoint.target for checkpoint in checkpoints}
    if not silent:
        admin = connections.admin(flow.target)
        known.target_ends = logs.ends(admin, targets)
        hasty = _uncommitted(admin, known.reported, known.target_ends)
    known.unreported_ends = targets - known.target_ends.keys()
    newest = newest_checkpoints(lake, flow.name)
    known.newest = {key: checkpoint for key, (checkpoint, _) in newest.items()}
    return {
        "flow": flow.name,
        "source_unreachable": inventory.gone,
        "target_unreachable": silent,
        "untold": [*inventory.unreported, *known.listing.errors],
        "errors": {**inventory.errors, **known.reported.errors},
        "not_mirrored": dict(inventory.not_moved),
        "topics_waiting": inventory.closed,
        "groups": [
            {
                **_row(inventory, standing, known),
                "reads_uncommitted": standing.checkpoint.target
                in hasty.get(standing.checkpoint.group_id, ()),
            }
            for standing in inventory.standings
        ]
        + [_nowhere(inventory, key, position) for key, position in inventory.lost.items()],
    }


@dataclass
class _Known:
    """What the target reports of its groups, both clusters of log ends, the lake of checkpoints."""

    listing: Listing
    reported: GroupPositions
    source_ends: Mapping[TopicAndPartition, int] = field(default_factory=dict)
    target_ends: Mapping[TopicAndPartition, int] = field(default_factory=dict)
    newest: Mapping[GroupPartition, Checkpoint] = field(default_factory=dict)
    #: Target partitions of which the target reports nothing.
    unreported_ends: Collection[TopicAndPartition] = ()


def _row(inventory: GroupInventory, standing: Standing, known: _Known) -> dict[str, Any]:
    checkpoint = standing.checkpoint
    noted = known.newest.get(checkpoint.group_partition)
    at_target = known.reported.positions.get(checkpoint.group_id, {}).get(checkpoint.target)
    position = None if at_target is None else at_target.offset
    source_end = known.source_ends.get((checkpoint.topic, checkpoint.partition))
    return {
        "group": checkpoint.group_id,
        "topic": checkpoint.topic,
        "partition": checkpoint.partition,
        "source_state": inventory.states.get(checkpoint.group_id),
        "source_position": checkpoint.source_position,
        "source_lag": _lag(source_end, checkpoint.source_position),
        "target_topic": checkpoint.target_topic,
        "translated_position": checkpoint.target_position,
        "target_state": known.listing.states.get(checkpoint.group_id),
        "target_position": position,
        "target_lag": _lag(known.target_ends.get(checkpoint.target), position),
        "exact": standing.is_whole and checkpoint.target not in known.unreported_ends,
        "read_again_at_most": standing.again,
        "gone_at_most": standing.gone,
        "seen_at": standing.since,
        "synced": noted is not None and noted.synced,
        "reason": NOT_REPORTED
        if checkpoint.target in known.unreported_ends
        else _reason(noted, position) or checkpoint.reason,
    }


def _nowhere(inventory: GroupInventory, key: GroupPartition, position: int) -> dict[str, Any]:
    """The row of a position without a counterpart."""
    checkpoint = Checkpoint(*key, position, target_topic="", target_position=-1, reason=NO_MIRROR)
    nothing = _Known(Listing({}), GroupPositions({}))
    row = _row(inventory, Standing(checkpoint, False, 0), nothing)
    unknown = dict.fromkeys(
        ("target_topic", "translated_position", "read_again_at_most", "gone_at_most")
    )
    return {**row, **unknown, "reads_uncommitted": False}


def _reason(known: Checkpoint | None, position: int | None) -> str | None:
    """The newest checkpoint's reason, or that the group's owner has set it back at the target."""
    if known is None:
        return None
    set_back = known.synced and position is not None and position < known.target_position
    return REWOUND if set_back and not known.is_rewound else known.reason


def _lag(end: int | None, position: int | None) -> int | None:
    return None if end is None or position is None else max(0, end - position)


def _target(route: Route, groups: Sequence[str]) -> tuple[_Known, str | None]:
    """The groups at the target, and why not if it does not answer."""
    admin = route.connections.groups(route.goal)
    try:
        return _Known(admin.listing(), admin.positions(groups)), None
    except ClusterUnusable as error:
        return _Known(Listing({}), GroupPositions({})), str(error)


def _uncommitted(
    admin: ClusterAdmin, reported: GroupPositions, stable: Mapping[TopicAndPartition, int]
) -> dict[str, set[TopicAndPartition]]:
    """By group, the partitions in which its position lies behind the last stable offset, but not
    behind the log's end. No reader of committed records gets there: that offset was queried after
    the position, and only grows. Without an open transaction nothing can be inferred, since no
    broker reports how a group reads."""
    behind = {
        group: {
            key: position.offset
            for key, position in positions.items()
            if key in stable and position.offset > stable[key]
        }
        for group, positions in reported.positions.items()
    }
    asked = {key for places in behind.values() for key in places}
    ends = admin.log_ends(asked) if asked else {}
    return {
        group: {key for key, offset in places.items() if key in ends and offset <= ends[key].end}
        for group, places in behind.items()
    }
