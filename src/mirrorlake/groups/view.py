"""Where the groups of a flow stand on both sides, as one document: what `mirrorlake groups` shows."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnusable
from mirrorlake.groups import logs
from mirrorlake.groups.checkpoint_plan import NO_MIRROR, REWOUND, Checkpoint, GroupPartition
from mirrorlake.groups.checkpoint_table import newest_checkpoints
from mirrorlake.groups.inventory import GroupInventory, take_inventory, why_unreachable
from mirrorlake.groups.moves import Standing
from mirrorlake.groups.shared_topics import Direction
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.groups import GroupPositions, Listing
from mirrorlake.lake.reader import Reader
from mirrorlake.offsets.positions import TopicAndPartition

logger = logging.getLogger(__name__)


def read_groups(
    lake: Reader, connections: Connections, flow: ResolvedFlow, named: Sequence[str] | None
) -> dict[str, Any]:
    """Returns {"flow", "source_unreachable", "target_unreachable", "untold": [why], "errors": {group: why},
    "not_mirrored": {group: why}, "topics_waiting": {topic: why}, "groups": [one per group and partition]}.

    `untold` says why a cluster may have more groups than it reported; `not_mirrored` are those that no command moves. A
    position without a counterpart at the target has a row without one.

    What an unreachable cluster would report is null. Raises InputError for a group that is nowhere.
    """
    direction = Direction(flow)
    found = take_inventory(lake, connections, direction, named, why_unreachable(connections, direction))
    listing, told, silent = _target(connections, flow, sorted({item.checkpoint.group_id for item in found.standings}))
    source_ends = (
        {} if found.gone else logs.ends(connections.admin(flow.source), [_source(item) for item in found.standings])
    )
    wanted = [item.checkpoint.target for item in found.standings]
    target_ends = {} if silent else logs.ends(connections.admin(flow.target), wanted)
    newest = {key: item for key, (item, _) in newest_checkpoints(lake, flow.name).items()}
    hasty = {} if silent else _uncommitted(connections.admin(flow.target), told, target_ends)
    return {
        "flow": flow.name,
        "source_unreachable": found.gone,
        "target_unreachable": silent,
        "untold": [*found.untold, *listing.errors],
        "errors": {**found.errors, **told.errors},
        "not_mirrored": dict(found.not_moved),
        "topics_waiting": found.closed,
        "groups": [
            {
                **_row(found, item, listing, told, source_ends, target_ends, newest),
                "reads_uncommitted": item.checkpoint.target in hasty.get(item.checkpoint.group_id, ()),
            }
            for item in found.standings
        ]
        + [_nowhere(found, key, position) for key, position in found.lost.items()],
    }


def _row(
    found: GroupInventory,
    standing: Standing,
    listing: Listing,
    told: GroupPositions,
    source_ends: Mapping[TopicAndPartition, int],
    target_ends: Mapping[TopicAndPartition, int],
    newest: dict[GroupPartition, Checkpoint],
) -> dict[str, Any]:
    item = standing.checkpoint
    known = newest.get(item.group_partition)
    at_target = told.positions.get(item.group_id, {}).get(item.target)
    position = None if at_target is None else at_target.offset
    return {
        "group": item.group_id,
        "topic": item.topic,
        "partition": item.partition,
        "source_state": found.states.get(item.group_id),
        "source_position": item.source_position,
        "source_lag": _lag(source_ends.get(_source(standing)), item.source_position),
        "target_topic": item.target_topic,
        "translated_position": item.target_position,
        "target_state": listing.states.get(item.group_id),
        "target_position": position,
        "target_lag": _lag(target_ends.get(item.target), position),
        "exact": standing.is_whole,
        "read_again_at_most": standing.again,
        "gone_at_most": standing.gone,
        "seen_at": standing.since,
        "synced": known is not None and known.synced,
        "reason": _reason(known, position) or item.reason,
    }


def _nowhere(found: GroupInventory, key: GroupPartition, position: int) -> dict[str, Any]:
    """The row of a position that leads nowhere."""
    group, topic, partition = key
    checkpoint = Checkpoint(group, topic, partition, position, "", -1, reason=NO_MIRROR)
    row = _row(found, Standing(checkpoint, False, 0), Listing({}), GroupPositions({}), {}, {}, {})
    unknown = dict.fromkeys(("target_topic", "translated_position", "read_again_at_most", "gone_at_most"))
    return {**row, **unknown, "reads_uncommitted": False}


def _reason(known: Checkpoint | None, position: int | None) -> str | None:
    """What the newest checkpoint says, or the target itself since: that its owner has set the group back."""
    if known is None:
        return None
    set_back = known.synced and position is not None and position < known.target_position
    return REWOUND if set_back and not known.is_rewound else known.reason


def _source(standing: Standing) -> TopicAndPartition:
    return standing.checkpoint.topic, standing.checkpoint.partition


def _lag(end: int | None, position: int | None) -> int | None:
    return None if end is None or position is None else max(0, end - position)


def _target(
    connections: Connections, flow: ResolvedFlow, groups: Sequence[str]
) -> tuple[Listing, GroupPositions, str | None]:
    """The groups at the target, and why not if it does not answer."""
    admin = connections.groups(flow.target)
    try:
        return admin.listing(), admin.positions(groups), None
    except ClusterUnusable as error:
        logger.warning("%s", error)
        return Listing({}), GroupPositions({}), str(error)


def _uncommitted(
    admin: ClusterAdmin, told: GroupPositions, stable: Mapping[TopicAndPartition, int]
) -> dict[str, set[TopicAndPartition]]:
    """By group, where its position lies behind the last stable offset, and not behind the log's end: nobody who reads
    committed records alone gets there, since that offset was asked for after the position, and only grows. Where no
    transaction is open nothing is known: no broker tells how a group reads."""
    behind = {
        group: {key: item.offset for key, item in positions.items() if key in stable and item.offset > stable[key]}
        for group, positions in told.positions.items()
    }
    asked = {key for places in behind.values() for key in places}
    ends = admin.log_ends(asked) if asked else {}
    return {
        group: {key for key, offset in places.items() if key in ends and offset <= ends[key].end}
        for group, places in behind.items()
    }
