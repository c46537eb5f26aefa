"""Whether to set a group's position on the target to a translated one (KIP-545's purpose;
docs/mm2.md, "Group positions"). Pure.

The rules: a group with members is never touched, and no position moves backwards unless an operator
forces it. Unlike in MirrorMaker 2, the current position counts in every state of the group. A
position that was brought to the target belongs to its owner from then on, who may set it back,
until the source has a newer one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from mirrorlake.groups.checkpoint_plan import REWOUND, Checkpoint
from mirrorlake.offsets.positions import Committed, TopicAndPartition

#: States of a group without members, None for a group that does not exist. Others may have some.
_EMPTY = frozenset({None, "EMPTY", "DEAD"})

THERE = "there already"
ACTIVE = "the group has members at the target: not touched"
BEHIND = "the group is further ahead at the target: not moved backwards"
HAS_READ_ON = "moved here before: it reads on by itself"
NOT_THERE = "the mirror is not there"
SILENT = (
    "the leader of the mirror's partition does not answer, so that it is not known where its log "
    "begins: left where it is until it does"
)


class Move(NamedTuple):
    """Set the position."""

    to: Committed
    backwards: bool = False


class Keep(NamedTuple):
    """Leave the position; `there`: it is the wanted one, or was and the group has read on since."""

    reason: str
    there: bool = False


@dataclass(frozen=True)
class TargetGroup:
    """A group at the target: its state (None if it does not exist) and committed positions.
    `starts` and `ends` are the log starts, and the offsets behind the last record, of all
    partitions in which any group is moved, as far as known: hundreds of groups share them, so they
    are not compared with each."""

    state: str | None
    positions: Mapping[TopicAndPartition, Committed]
    starts: Mapping[TopicAndPartition, int] = field(default_factory=dict, compare=False)
    ends: Mapping[TopicAndPartition, int] = field(default_factory=dict, compare=False)

    @property
    def is_active(self) -> bool:
        """Whether it may have members."""
        return may_have_members(self.state)


def may_have_members(state: str | None) -> bool:
    """Whether a group in this state may have members; None means that there is no such group."""
    return state not in _EMPTY


def is_further(checkpoint: Checkpoint, group: TargetGroup) -> bool:
    """Whether a group without members stands further ahead than its checkpoint."""
    current = group.positions.get(checkpoint.target)
    return (
        not group.is_active and current is not None and current.offset > checkpoint.target_position
    )


def decide(checkpoint: Checkpoint, group: TargetGroup, force: bool = False) -> Move | Keep:
    """Decide what to do about one position at the target. `force` moves backwards too; groups with
    members are never moved.

    Brokers refuse to move a group with members, so nothing could force that. A `synced` checkpoint
    was brought to the target before: wherever the group has gone there since is its owner's affair.
    But a position in front of the log's start is invalid, and so is one behind its end, of records
    that the cluster has lost: the broker would reset the consumer, or, once other records took
    their place, deliver only those behind it.
    """
    current = group.positions.get(checkpoint.target)
    start = group.starts.get(checkpoint.target, 0)
    wanted = Committed(max(checkpoint.target_position, start), checkpoint.metadata)
    if current is not None and current.offset == wanted.offset:
        return Keep(THERE, there=True)
    if group.is_active:
        return Keep(HAS_READ_ON, there=True) if checkpoint.synced else Keep(ACTIVE)
    if current is not None and current.offset < start:
        return Move(
            Committed(start, current.metadata) if checkpoint.synced and not force else wanted
        )
    end = group.ends.get(checkpoint.target)
    if current is not None and end is not None and wanted.offset <= end < current.offset:
        return Move(
            Committed(end, current.metadata) if checkpoint.synced and not force else wanted, True
        )
    backwards = current is not None and current.offset > wanted.offset
    if backwards and not force:
        return Keep(HAS_READ_ON, there=True) if checkpoint.synced else Keep(BEHIND)
    if current is not None and checkpoint.synced and not force:
        return Keep(REWOUND, there=True)
    return Move(wanted, backwards)
