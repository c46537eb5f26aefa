"""Checkpoints with their outcomes at the target, as they are written and published."""

from dataclasses import replace

from mirrorlake.groups.checkpoint_plan import (
    REWOUND,
    TRIMMED,
    Checkpoint,
    trimmed_reason,
    with_outcome,
)
from mirrorlake.groups.mover import Sent
from mirrorlake.groups.sync_plan import Keep
from mirrorlake.mm2.formats import MirrorCheckpoint as PublishedCheckpoint
from mirrorlake.offsets.positions import Committed


def as_set(sent: Sent) -> Checkpoint:
    """The checkpoint of a position that was set, or of the log's start if that lies behind it."""
    checkpoint, to = sent.checkpoint, sent.to
    if to is None or to.offset <= checkpoint.target_position:
        return checkpoint
    # A position that was held back still has to be translated again.
    reasons = [part for part in checkpoint.own_reasons if not part.startswith(TRIMMED)]
    reasons.append(trimmed_reason(to.offset - checkpoint.target_position))
    return replace(checkpoint, target_position=to.offset, reason="; ".join(reasons))


def change_tried(sent: Sent) -> tuple[Checkpoint, Committed | None, str | None, int]:
    """The arguments of `change_of` for a move that was sent."""
    to = sent.checkpoint.target_position if sent.to is None else sent.to.offset
    return sent.checkpoint, sent.before, sent.refused, to


def published(checkpoint: Checkpoint) -> PublishedCheckpoint:
    """As MirrorMaker 2's clients read it."""
    positions = checkpoint.source_position, checkpoint.target_position
    return PublishedCheckpoint(
        checkpoint.group_id,
        checkpoint.target_topic,
        checkpoint.partition,
        *positions,
        checkpoint.metadata,
    )


def as_kept(checkpoint: Checkpoint, decision: Keep) -> Checkpoint:
    """The checkpoint of a position that is left where it is, by a decision."""
    is_noted = decision.reason == REWOUND or not decision.there
    return with_outcome(checkpoint, decision.there, decision.reason if is_noted else None)
