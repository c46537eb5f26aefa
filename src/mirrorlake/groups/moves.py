"""Moving groups from one cluster to the other by an operator's command: the standing of each group,
and what could not be moved. Pure.

Failover goes from the source of a flow to its target, failback from the target to the source. Both
move a position of the *origin* cluster to the equivalent position on the *goal* cluster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from mirrorlake.groups.checkpoint_plan import (
    TRIMMED,
    Checkpoint,
    GroupPartition,
    inexact_reason,
    translated_checkpoint,
    trimmed_reason,
    with_outcome,
)
from mirrorlake.groups.readable import within
from mirrorlake.groups.sync_plan import HAS_READ_ON, THERE, Keep, Move, TargetGroup, decide
from mirrorlake.lake.changes import Change, ChangeOutcome
from mirrorlake.offsets.positions import Committed, LogEnds, TopicAndPartition, Translated

KIND = "group"
FAILBACK = "failback"
#: Why it is not known whether the goal has a position, which is then not moved.
NOT_REPORTED = (
    "the cluster has no such partition, or does not say what it has of it; run this again once its "
    "leader answers"
)

MoveOutcome = Literal["moved", "would move", "there", "kept", "failed"]


@dataclass(frozen=True)
class Standing:
    """One group on one partition: its position at the origin and the equivalent one at the goal.

    `again` is the most offsets that a consumer may read twice. `since` is when the position was
    seen, None for now. `gone`, `past`, `cut`, `ahead` and `trimmed` are those of `Translated`. The
    `reason` of the checkpoint has whatever else is known of the position.
    """

    checkpoint: Checkpoint
    exact: bool
    again: int
    since: datetime | None = None
    gone: int = 0
    past: int | None = None
    cut: int = 0
    ahead: bool = False
    trimmed: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether a consumer continues at the goal exactly behind what it has read."""
        return self.exact and self.past is None and not self.gone and not self.cut

    @property
    def is_placed(self) -> bool:
        """Whether a position at the goal is known; migrate may not find one."""
        return self.checkpoint.target_position >= 0

    @property
    def lacks(self) -> list[str]:
        """What the goal's log lacks for its consumers, as parts of a sentence."""
        gone = f"up to {self.gone:,} records that it has not read are not there"
        cut = f"the log ends {self.cut:,} offsets in front of what it has read"
        return [text for text, lacking in ((gone, self.gone), (cut, self.cut)) if lacking]

    def was_brought(self, to: int) -> bool:
        """Whether a position that was set once is this one. Where the goal's log begins behind it
        now, or has lost records, the group was moved to where the log began at that time."""
        wanted = self.checkpoint.target_position
        return to <= wanted if self.gone or self.trimmed else to == wanted


@dataclass(frozen=True)
class MoveResult:
    """What a command did, or would do, about one standing. `before` is the goal's own position,
    None if it has none; `to` is the position that was set, or would be."""

    standing: Standing
    done: MoveOutcome
    before: Committed | None
    detail: str | None = None
    to: Committed | None = None

    @property
    def is_left(self) -> bool:
        """Whether the group is not where it should be. A group that has read on since it was moved
        missed nothing by the move."""
        reads_on = self.done == "there" and self.detail == HAS_READ_ON and self.standing.exact
        return self.done in ("kept", "failed") or not (self.standing.is_whole or reads_on)

    @property
    def is_news(self) -> bool:
        """Whether to write it down. A group that is there already without a synced checkpoint was
        moved by a command that was killed before it wrote that down."""
        return self.done != "there" or not self.standing.checkpoint.synced

    @property
    def to_position(self) -> int:
        """The group's position after the command."""
        return self.standing.checkpoint.target_position if self.to is None else self.to.offset

    def document(self) -> dict[str, Any]:
        """As the command shows it."""
        checkpoint, standing = self.standing.checkpoint, self.standing
        return {
            "group": checkpoint.group_id,
            "topic": checkpoint.topic,
            "partition": checkpoint.partition,
            "position": checkpoint.source_position,
            "to_topic": checkpoint.target_topic,
            "to_position": self.to_position,
            "before": None if self.before is None else self.before.offset,
            "done": self.done,
            "exact": standing.is_whole,
            "read_again_at_most": standing.again,
            "gone_at_most": standing.gone,
            "seen_at": standing.since,
            "detail": self.detail,
        }

    def change(self) -> Change:
        """As a row of `changes`."""
        refused = (self.detail or "") if self.done in ("kept", "failed") else None
        change = change_of(self.standing.checkpoint, self.before, refused, self.to_position)
        return replace(change, error=self.detail)

    def checkpoint(self, reverse: bool, word: str) -> Checkpoint:
        """As a row of `checkpoints`, whose source is always the flow's; `word` is the command."""
        checkpoint = self.standing.checkpoint
        synced = self.done in ("moved", "there")
        row = with_outcome(
            checkpoint, synced, "; ".join(part for part in (word, self.detail) if part)
        )
        return flipped(row) if reverse else row


def change_of(
    checkpoint: Checkpoint, before: Committed | None, refused: str | None, to: int
) -> Change:
    """A position that was set at the target, or why it was refused, as a row of `changes`."""
    resource = f"{checkpoint.group_id} {checkpoint.target_topic}-{checkpoint.partition}"
    was = None if before is None else str(before.offset)
    outcome: ChangeOutcome = "done" if refused is None else "refused"
    return Change(KIND, resource, was, str(to), outcome=outcome, error=refused)


def flipped(checkpoint: Checkpoint) -> Checkpoint:
    """The same pair of positions, from the other cluster's side."""
    return replace(
        checkpoint,
        topic=checkpoint.target_topic,
        source_position=checkpoint.target_position,
        target_topic=checkpoint.topic,
        target_position=checkpoint.source_position,
    )


def standing_of(
    key: GroupPartition, position: Committed, translated: Translated, generation: int = 0
) -> Standing:
    """Where a live group stands. Records that are not replicated yet arrive later and are then read
    twice. `generation` is that of the topic at the flow's source in which the position lies."""
    checkpoint = translated_checkpoint(key, position, translated, generation)
    return _standing(checkpoint, translated, _again(position.offset, translated))


def _again(position: int, translated: Translated) -> int:
    """How many records at most are read twice once they have been replicated."""
    read = position if translated.past is None else translated.past
    return translated.again + (0 if translated.exact else max(0, read - translated.end))


def standing_by_checkpoint(
    checkpoint: Checkpoint, translated: Translated, since: datetime
) -> Standing:
    """Where a group stands by its last checkpoint, translated again, when its cluster is gone.

    What it read after the checkpoint is not known: at most, all that is mirrored behind the
    position is read again.
    """
    now = replace(checkpoint, target_topic=translated.topic, target_position=translated.offset)
    now = replace(now, synced=False, reason=inexact_reason(translated))
    behind = max(0, translated.end - checkpoint.source_position)
    again = behind + _again(checkpoint.source_position, translated)
    return _standing(now, translated, again, since)


def _standing(
    checkpoint: Checkpoint, translated: Translated, again: int, since: datetime | None = None
) -> Standing:
    return Standing(
        checkpoint,
        translated.exact,
        again,
        since,
        gone=translated.gone,
        past=translated.past,
        cut=translated.cut,
        ahead=translated.ahead,
        trimmed=translated.trimmed,
    )


def within_logs(
    standings: Sequence[Standing], logs: Mapping[TopicAndPartition, LogEnds]
) -> list[Standing]:
    """Bound standings to the logs that the goal has now, as far as these are known: when the
    positions were translated the goal may not have reported them, or they were others."""
    return [
        standing if log is None or not standing.is_placed else _within(standing, log)
        for standing in standings
        for log in [logs.get(standing.checkpoint.target)]
    ]


def _within(standing: Standing, log: LogEnds) -> Standing:
    checkpoint = standing.checkpoint
    at = Translated(
        *checkpoint.target,
        checkpoint.target_position,
        standing.exact,
        ahead=standing.ahead,
        gone=standing.gone,
        past=standing.past,
        cut=standing.cut,
        trimmed=standing.trimmed,
    )
    there = within(at, log)
    if there == at:
        return standing
    reasons = [] if checkpoint.reason is None else checkpoint.reason.split("; ")
    reasons = [reason for reason in reasons if not reason.startswith(TRIMMED)]
    reasons += [trimmed_reason(there.gone)] if there.gone else []
    reason = "; ".join(reasons) or None
    moved = replace(checkpoint, target_position=there.offset, reason=reason)
    return replace(
        standing, checkpoint=moved, gone=there.gone, cut=there.cut, trimmed=there.trimmed
    )


def plan_moves(
    standings: Sequence[Standing],
    goals: Mapping[str, TargetGroup],
    errors: Mapping[str, str],
    force: bool,
) -> list[MoveResult]:
    """What to do about each standing.

    Args:
        standings: where groups stand.
        goals: the groups at the goal, by name.
        errors: why the goal did not report a group, by group.
        force: move backwards too.
    """
    results = []
    for standing in standings:
        checkpoint = standing.checkpoint
        if checkpoint.group_id not in goals:
            detail = (
                "the cluster did not report the group: "
                f"{errors.get(checkpoint.group_id, 'no answer')}"
            )
            results.append(MoveResult(standing, "failed", None, detail))
            continue
        group = goals[checkpoint.group_id]
        before = group.positions.get(checkpoint.target)
        decision = decide(checkpoint, group, force)
        if isinstance(decision, Move):
            backwards = "backwards" if decision.backwards else None
            results.append(MoveResult(standing, "would move", before, backwards, decision.to))
        else:
            results.append(kept(standing, before, decision))
    return results


def kept(standing: Standing, before: Committed | None, decision: Keep) -> MoveResult:
    """The result for a position that is left unchanged at the goal."""
    detail = None if decision.reason == THERE else decision.reason
    return MoveResult(standing, "there" if decision.there else "kept", before, detail)


def mark_synced(
    standings: Sequence[Standing], newest: Mapping[GroupPartition, Checkpoint], reverse: bool
) -> list[Standing]:
    """Mark standings as `synced` whose position the newest checkpoints have as brought to the goal.

    Checkpoints that failback wrote count only on the way back, and no others do there.
    """
    return [_mark_synced(standing, newest, reverse) for standing in standings]


def _mark_synced(
    standing: Standing, newest: Mapping[GroupPartition, Checkpoint], reverse: bool
) -> Standing:
    checkpoint = flipped(standing.checkpoint) if reverse else standing.checkpoint
    known = newest.get(checkpoint.group_partition)
    if known is None or not known.synced or (FAILBACK in (known.reason or "")) is not reverse:
        return standing
    if (known.place, known.target) != (checkpoint.place, checkpoint.target):
        return standing
    there, here = known.target_position, known.source_position
    there, here = (here, there) if reverse else (there, here)
    if here != standing.checkpoint.source_position or not standing.was_brought(there):
        return standing
    return replace(standing, checkpoint=replace(standing.checkpoint, synced=True))


def verified(result: MoveResult, refused: str | None, now: Committed | None) -> MoveResult:
    """The outcome of a move that was sent, from the goal's answer and the position read back."""
    if now is not None and now.offset == result.to_position:
        return replace(result, done="moved")
    if refused is None:
        refused = f"read back {'no position' if now is None else now.offset}"
    return replace(result, done="failed", detail=refused)


def documents(results: Sequence[MoveResult]) -> list[dict[str, Any]]:
    """As the commands show them."""
    return [result.document() for result in results]
