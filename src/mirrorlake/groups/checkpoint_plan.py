"""Positions of consumer groups: which groups a flow mirrors, and the checkpoints that its positions become. Pure.

MirrorMaker 2's rules of what gets a checkpoint (docs/mm2.md, "Checkpoints"): a committed position on a topic that the
flow mirrors. The translation is exact here, so that a checkpoint is written whenever the position changes, forward or
backward.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mirrorlake.config.flow import Flow
from mirrorlake.naming.selection import matches_any
from mirrorlake.offsets.positions import Committed, TopicAndPartition, Translated

#: (group, topic, partition).
GroupPartition = tuple[str, str, int]

#: Groups that hold the positions of flows (`produce.spec.name_at_target`): of any lake, since lakes share clusters.
_OURS = re.compile(r"mirrorlake-[0-9a-f]{8}-.+->.+")

HELD_BACK = "the position is ahead of the mirror: held at the highest safe one"
REWOUND = "the group was set back at the target since it was moved: left where it is until the source has moved on"
GONE = "the group has no position there any more"
OTHER_KIND = "a share or streams group (KIP-932, KIP-1071), whose positions no client reports, so they are not mirrored"
OVER = "the target topic is not the one that the position was of"


@dataclass(frozen=True)
class Checkpoint:
    """One row of `checkpoints`, without the flow and the time."""

    group_id: str
    topic: str
    partition: int
    source_position: int
    target_topic: str
    target_position: int
    metadata: str = ""
    synced: bool = False
    reason: str | None = None
    target_generation: int = 0

    @property
    def group_partition(self) -> GroupPartition:
        """What the newest row is found by."""
        return self.group_id, self.topic, self.partition

    @property
    def target(self) -> TopicAndPartition:
        """The partition on the target."""
        return self.target_topic, self.partition

    @property
    def is_exact(self) -> bool:
        """Whether the position was translated exactly, so that it is good for ever."""
        return self.reason is None or not self.reason.startswith(HELD_BACK)

    @property
    def is_rewound(self) -> bool:
        """Whether its owner has set the group back at the target since."""
        return self.synced and REWOUND in (self.reason or "")

    @property
    def is_gone(self) -> bool:
        """Whether the group has left that partition, or its cluster, since."""
        return self.reason == GONE

    @property
    def is_over(self) -> bool:
        """Whether the target position is of a target topic that is gone: it means nothing."""
        return self.reason == OVER


def selects_group(settings: Flow, group: str) -> bool:
    """Whether a flow mirrors the positions of a group: `groups` without `groups_exclude`, never a flow's own group."""
    return (
        matches_any(settings.groups, group)
        and not matches_any(settings.groups_exclude, group)
        and not is_own_group(group)
    )


def is_own_group(group: str) -> bool:
    """Whether a group holds the positions of a flow, of this lake or of another."""
    return _OURS.fullmatch(group) is not None


def to_translate(
    committed: Mapping[GroupPartition, Committed], newest: Mapping[GroupPartition, Checkpoint]
) -> frozenset[tuple[str, int, int]]:
    """The distinct (topic, partition, position) whose translation is not known from the newest checkpoints."""
    return frozenset(
        (key[1], key[2], position.offset)
        for key, position in committed.items()
        if not _is_known(position, newest.get(key))
    )


def _is_known(position: Committed, known: Checkpoint | None) -> bool:
    return known is not None and known.source_position == position.offset and known.is_exact


def plan_checkpoints(
    committed: Mapping[GroupPartition, Committed],
    translated: Mapping[tuple[str, int, int], Translated],
    newest: Mapping[GroupPartition, Checkpoint],
    asked: Iterable[str],
) -> list[Checkpoint]:
    """The checkpoints that differ from the newest ones. `asked` are the groups whose positions are known to be all.

    A topic of which no record was ever mapped gives none. A position that is gone keeps its last checkpoint, marked.
    What the owner of a group did at the target holds until the source's position itself is another one.
    """
    changed = []
    for key, position in sorted(committed.items()):
        known = newest.get(key)
        if known is not None and _is_known(position, known):
            if known.metadata != position.metadata or known.is_gone:
                fresh = replace(known, metadata=position.metadata, synced=False, reason=None)
                changed.append(_still_rewound(fresh, known))
            continue
        found = translated.get((key[1], key[2], position.offset))
        if found is None or not found.mapped:
            continue
        fresh = _checkpoint(key, position, found)
        if known is None or _said(known) != _said(fresh):
            changed.append(_still_rewound(fresh, known))
    wanted = frozenset(asked)
    for key, known in sorted(newest.items()):
        if key[0] in wanted and key not in committed and not known.is_gone:
            changed.append(replace(known, synced=False, reason=GONE))
    return changed


def _checkpoint(key: GroupPartition, position: Committed, found: Translated) -> Checkpoint:
    group, topic, partition = key
    reason = None if found.exact else HELD_BACK
    return Checkpoint(
        group, topic, partition, position.offset, found.topic, found.offset, position.metadata, False, reason
    )


def _still_rewound(fresh: Checkpoint, known: Checkpoint | None) -> Checkpoint:
    if known is None or not known.is_rewound or known.source_position != fresh.source_position:
        return fresh
    return replace(fresh, synced=True, reason=REWOUND if fresh.is_exact else f"{HELD_BACK}; {REWOUND}")


def _said(checkpoint: Checkpoint) -> tuple[object, ...]:
    """What of a checkpoint comes from the source; the rest is what became of it at the target."""
    position = checkpoint.source_position, checkpoint.target_topic, checkpoint.target_position
    return (*position, checkpoint.metadata, checkpoint.is_exact, checkpoint.is_gone)
