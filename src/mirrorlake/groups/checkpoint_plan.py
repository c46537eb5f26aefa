"""Which consumer groups a flow mirrors, and the checkpoints for their positions. Pure.

As in MirrorMaker 2, each committed position on a topic that the flow mirrors gets a checkpoint
(docs/mm2.md, "Checkpoints"). The translation is exact here, so a checkpoint is written whenever the
position changes, forward or backward.
"""

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, replace

from mirrorlake.config.flow import Flow
from mirrorlake.naming.at_target import is_own_group
from mirrorlake.naming.selection import matches_any
from mirrorlake.offsets.positions import (
    Committed,
    InGeneration,
    TopicAndPartition,
    TopicPartitionOffset,
    Translated,
)

#: (group, topic, partition).
GroupPartition = tuple[str, str, int]

HELD_BACK = "the position is ahead of the mirror: held at the highest safe one"
PAST_END = "the position lies behind the end of its topic, where no record is"
TRIMMED = "of what it has not read, records are not there"
NO_MIRROR = "the flow has no mirror of the topic, so that the position has no counterpart"
REWOUND = (
    "the group was set back at the target since it was moved: left where it is until the "
    "source has moved on"
)
GONE = "the group has no position there any more"
OTHER_KIND = (
    "a share or streams group (KIP-932, KIP-1071), whose positions no client reports, so "
    "they are not mirrored"
)
OVER = "the target topic is not the one that the position was of"
BEHIND_LOST = "the position is ahead of the mirror: the target has lost records in front of it"
NAMELESS = (
    "a group without a name, as old clients commit for (OffsetCommit v2); no client can ask "
    "for its positions"
)
EXCLUDED = (
    "left out by the flow's settings (groups, groups_exclude), with positions in topics "
    "that the flow mirrors"
)
NOWHERE = "without a position in any topic of the flow"
LEFT_OF_LATE = (
    "without a position in any topic of the flow since {:%Y-%m-%d %H:%M} UTC; if its cluster lost "
    "these, name the group to move it by its last ones"
)

#: Reasons that concern the position itself; any other part of a reason is an outcome at the target.
_OF_ITSELF = (HELD_BACK, PAST_END, TRIMMED, NO_MIRROR)


@dataclass(frozen=True)
class Checkpoint(InGeneration):
    """One row of `checkpoints`, without the flow and the time. A position without a counterpart at
    the target has the target topic "" and the target position -1."""

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
    #: The generation of the source topic in which `source_position` lies.
    generation: int = 0

    @property
    def group_partition(self) -> GroupPartition:
        """The key of the newest row."""
        return self.group_id, self.topic, self.partition

    @property
    def source(self) -> TopicPartitionOffset:
        """The position at the source."""
        return self.topic, self.partition, self.source_position

    @property
    def target(self) -> TopicAndPartition:
        """The partition on the target."""
        return self.target_topic, self.partition

    @property
    def has_counterpart(self) -> bool:
        """Whether the target has an equivalent position, or the nearest safe one."""
        return bool(self.target_topic)

    @property
    def own_reasons(self) -> list[str]:
        """The reasons that concern the position itself, without outcomes at the target."""
        return [part for part in (self.reason or "").split("; ") if part.startswith(_OF_ITSELF)]

    @property
    def own_reason(self) -> str | None:
        """`own_reasons` as one text; None if there are none."""
        return "; ".join(self.own_reasons) or None

    @property
    def is_exact(self) -> bool:
        """Whether the position was translated exactly, and so needs no further translation. Of a
        gone position this is not known: GONE has replaced the reason why it was inexact."""
        if self.reason is None:  # true of nearly all, and each turn asks each
            return True
        own = self.own_reason
        is_published = not (self.is_gone or self.is_behind_lost)
        return is_published and (own is None or own.startswith(TRIMMED))

    @property
    def is_rewound(self) -> bool:
        """Whether the group's owner has set it back at the target since it was moved."""
        return self.synced and REWOUND in (self.reason or "")

    @property
    def is_gone(self) -> bool:
        """Whether the group has since lost its position in that partition, or left its cluster."""
        return self.reason == GONE

    @property
    def is_over(self) -> bool:
        """Whether the target position is void: its topic is gone, or it is behind lost records."""
        return self.reason == OVER or self.is_behind_lost

    @property
    def is_behind_lost(self) -> bool:
        """Whether the target has lost records in front of the position since it was translated."""
        return self.reason == BEHIND_LOST


def selects_group(settings: Flow, group: str) -> bool:
    """Whether a flow mirrors the positions of a group: `groups` without `groups_exclude`, never a
    flow's own group, nor the one without a name."""
    return (
        bool(group)
        and matches_any(settings.groups, group)
        and not matches_any(settings.groups_exclude, group)
        and not is_own_group(group)
    )


def leaves_out(settings: Flow, group: str) -> bool:
    """Whether only the flow's settings exclude a group: it has a name, and is not a flow's own."""
    return bool(group) and not selects_group(settings, group) and not is_own_group(group)


def to_translate(
    committed: Mapping[GroupPartition, Committed],
    newest: Mapping[GroupPartition, Checkpoint],
    other: Set[TopicAndPartition] = frozenset(),
) -> frozenset[tuple[str, int, int]]:
    """The distinct (topic, partition, position) that the newest checkpoints do not translate, and
    all in `other` partitions: there the flow goes on without other records than before."""
    return frozenset(
        (key[1], key[2], position.offset)
        for key, position in committed.items()
        if not _is_known(key, position, newest.get(key), other)
    )


def _is_known(
    key: GroupPartition,
    position: Committed,
    known: Checkpoint | None,
    other: Set[TopicAndPartition],
) -> bool:
    """Whether a checkpoint translates a position, by the records that the flow goes on without."""
    if known is None or known.source_position != position.offset or not known.is_exact:
        return False
    return not other or key[1:] not in other


def plan_checkpoints(
    committed: Mapping[GroupPartition, Committed],
    translated: Mapping[tuple[str, int, int], Translated],
    newest: Mapping[GroupPartition, Checkpoint],
    asked: Iterable[str],
    *,
    elsewhere: Collection[GroupPartition] = frozenset(),
    other: Set[TopicAndPartition] = frozenset(),
) -> list[Checkpoint]:
    """The checkpoints that differ from the newest ones. `asked` are the groups whose positions were
    reported completely; `elsewhere` are positions of theirs that are not looked at now, and so do
    not count as gone. `other` partitions are those of `to_translate`.

    A position without a counterpart gets a checkpoint too: a failover without the source has
    nothing else to go by. A position that is gone keeps its last checkpoint, marked as gone. A
    rewind by the group's owner at the target holds until the source's position changes.
    """
    changed = []
    for key, position in sorted(committed.items()):
        known = newest.get(key)
        if known is not None and _is_known(key, position, known, other):
            if known.metadata != position.metadata:
                fresh = replace(known, metadata=position.metadata)
                changed.append(_still_rewound(with_outcome(fresh, False, None), known))
            continue
        fresh = _checkpoint(key, position, translated.get((key[1], key[2], position.offset)))
        if known is None or _source_side(known) != _source_side(fresh):
            changed.append(_still_rewound(fresh, known))
    wanted = frozenset(asked)
    for key, known in sorted(newest.items()):
        if key[0] in wanted and key not in committed and key not in elsewhere and not known.is_gone:
            changed.append(replace(known, synced=False, reason=GONE))
    return changed


def _checkpoint(
    key: GroupPartition, position: Committed, translated: Translated | None
) -> Checkpoint:
    if translated is None:
        return Checkpoint(
            *key,
            position.offset,
            target_topic="",
            target_position=-1,
            metadata=position.metadata,
            reason=NO_MIRROR,
        )
    return translated_checkpoint(key, position, translated)


def translated_checkpoint(
    key: GroupPartition, position: Committed, translated: Translated, generation: int = 0
) -> Checkpoint:
    """The checkpoint of a position with a counterpart; `generation` is that of its source topic."""
    return Checkpoint(
        *key,
        position.offset,
        translated.topic,
        target_position=translated.offset,
        metadata=position.metadata,
        reason=inexact_reason(translated),
        generation=generation,
    )


def inexact_reason(translated: Translated) -> str | None:
    """Why a translated position is inexact, or misses records; None if neither holds."""
    behind = [f"{PAST_END} (it ends at {translated.past})"] if translated.past is not None else []
    behind += [HELD_BACK] if not translated.exact and translated.past is None else []
    return (
        "; ".join([*behind, *([trimmed_reason(translated.gone)] if translated.gone else [])])
        or None
    )


def trimmed_reason(gone: int) -> str:
    """The reason that up to `gone` records which a group has not read are not at the other side."""
    return f"{TRIMMED}: up to {gone:,}"


def _still_rewound(fresh: Checkpoint, known: Checkpoint | None) -> Checkpoint:
    if known is None or not known.is_rewound or known.source_position != fresh.source_position:
        return fresh
    return with_outcome(fresh, True, REWOUND)


def with_outcome(checkpoint: Checkpoint, synced: bool, outcome: str | None) -> Checkpoint:
    """The checkpoint with its outcome at the target; the reasons for the position itself stay."""
    reason = "; ".join(part for part in (checkpoint.own_reason, outcome) if part) or None
    if (checkpoint.synced, checkpoint.reason) == (synced, reason):
        return checkpoint  # true of nearly all in nearly all turns
    return replace(checkpoint, synced=synced, reason=reason)


def _source_side(checkpoint: Checkpoint) -> tuple[object, ...]:
    """The fields that come from the source; the others are outcomes at the target."""
    position = checkpoint.source_position, checkpoint.target_topic, checkpoint.target_position
    missing = [part for part in checkpoint.own_reasons if part.startswith(TRIMMED)]
    return (*position, checkpoint.metadata, checkpoint.is_exact, checkpoint.is_gone, *missing)
