"""Moving groups from one cluster to the other by an operator's command: where each stands, and what is left. Pure.

Failover goes from the source of a flow to its target, failback from the target to the source; both move a position of
the *origin* cluster to the one that means the same on the *goal* cluster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from mirrorlake.groups.checkpoint_plan import HELD_BACK, Checkpoint, GroupPartition
from mirrorlake.groups.sync_plan import THERE, Keep, Move, TargetGroup, decide
from mirrorlake.lake.changes import Change, ChangeOutcome
from mirrorlake.offsets.positions import Committed, Translated

KIND = "group"
FAILBACK = "failback"

Done = Literal["moved", "would move", "there", "kept", "failed"]


@dataclass(frozen=True)
class Standing:
    """One group on one partition: its position at the origin, and what it means at the goal.

    `again` is how many offsets at most a consumer may read twice. `since` is when the position was seen, None for now.
    """

    checkpoint: Checkpoint
    exact: bool
    again: int
    since: datetime | None = None


@dataclass(frozen=True)
class MoveResult:
    """What a command did, or would do, about one standing. `before` is the goal's own position, None for none."""

    standing: Standing
    done: Done
    before: Committed | None
    detail: str | None = None

    @property
    def is_left(self) -> bool:
        """Whether the group is not where it should be."""
        return self.done in ("kept", "failed") or not self.standing.exact

    def document(self) -> dict[str, Any]:
        """As the command shows it."""
        item, standing = self.standing.checkpoint, self.standing
        return {
            "group": item.group_id,
            "topic": item.topic,
            "partition": item.partition,
            "position": item.source_position,
            "to_topic": item.target_topic,
            "to_position": item.target_position,
            "before": None if self.before is None else self.before.offset,
            "done": self.done,
            "exact": standing.exact,
            "read_again_at_most": standing.again,
            "seen_at": standing.since,
            "detail": self.detail,
        }

    def change(self) -> Change:
        """As a row of `changes`."""
        refused = (self.detail or "") if self.done in ("kept", "failed") else None
        change = change_of(self.standing.checkpoint, self.before, refused)
        return replace(change, error=self.detail)

    def checkpoint(self, reverse: bool, word: str) -> Checkpoint:
        """As a row of `checkpoints`, whose source is always the flow's; `word` is the command."""
        item = self.standing.checkpoint
        synced = self.done in ("moved", "there")
        said = "; ".join(part for part in (None if self.standing.exact else HELD_BACK, word, self.detail) if part)
        kept = replace(item, synced=synced, reason=said)
        return flipped(kept) if reverse else kept


def change_of(checkpoint: Checkpoint, before: Committed | None, refused: str | None) -> Change:
    """A position that was set at the target, or why it was refused, as a row of `changes`."""
    resource = f"{checkpoint.group_id} {checkpoint.target_topic}-{checkpoint.partition}"
    was = None if before is None else str(before.offset)
    outcome: ChangeOutcome = "done" if refused is None else "refused"
    return Change(KIND, resource, was, str(checkpoint.target_position), outcome, refused)


def flipped(checkpoint: Checkpoint) -> Checkpoint:
    """The same pair of positions, seen from the other cluster."""
    return replace(
        checkpoint,
        topic=checkpoint.target_topic,
        source_position=checkpoint.target_position,
        target_topic=checkpoint.topic,
        target_position=checkpoint.source_position,
    )


def stand(key: GroupPartition, position: Committed, found: Translated) -> Standing:
    """Where a live group stands: what is not replicated yet comes later, and is then read a second time."""
    group, topic, partition = key
    checkpoint = Checkpoint(group, topic, partition, position.offset, found.topic, found.offset, position.metadata)
    missing = 0 if found.exact else max(0, position.offset - found.end)
    return Standing(checkpoint, found.exact, missing + found.again)


def stand_by_checkpoint(checkpoint: Checkpoint, found: Translated, since: datetime) -> Standing:
    """Where a group stands whose cluster is gone, by its last checkpoint, translated again.

    What it read after the checkpoint nobody knows: at most all that is mirrored behind the position is read again.
    """
    item = replace(checkpoint, target_topic=found.topic, target_position=found.offset, synced=False, reason=None)
    behind = max(0, found.end - checkpoint.source_position)
    missing = 0 if found.exact else max(0, checkpoint.source_position - found.end)
    return Standing(item, found.exact, behind + missing + found.again, since)


def join_ways(primary: Translated, other: Translated | None, reverse: bool, settled: bool) -> Translated:
    """A position on a topic that two opposite flows share, as one position at the goal: what is unread stays unread.

    One of the two is by the map read backwards, of records born at the goal: behind the last that came to the origin
    lie those that never came.

    Args:
        primary: by the flow that was named, of the records born on its source.
        other: by the opposite flow; what it brings comes at the end.
        reverse: the primary is the one by the map read backwards.
        settled: there are no records that never came.
    """
    if other is None or not other.mapped or other.topic != primary.topic:
        return primary
    onward, back = (other, primary) if reverse else (primary, other)
    bounds = [item.offset for item in (onward, back) if item.ahead]
    if not back.ahead and not settled:
        bounds.append(back.offset)
    end = max(onward.offset, back.offset)  # all that was read, of either kind, lies before it
    offset = min(bounds) if bounds else end
    exact = onward.exact and back.exact and (back.ahead or settled)
    return replace(primary, offset=offset, exact=exact, ahead=bool(bounds), again=max(0, end - offset))


def plan_moves(
    standings: Sequence[Standing], goals: Mapping[str, TargetGroup], errors: Mapping[str, str], force: bool
) -> list[MoveResult]:
    """What is to be done about each standing.

    Args:
        standings: where groups stand.
        goals: the groups at the goal, by name.
        errors: why the goal did not report a group, by name.
        force: move backwards too.
    """
    results = []
    for standing in standings:
        item = standing.checkpoint
        if item.group_id not in goals:
            detail = f"the cluster did not report the group: {errors.get(item.group_id, 'no answer')}"
            results.append(MoveResult(standing, "failed", None, detail))
            continue
        group = goals[item.group_id]
        before = group.positions.get(item.target)
        decision = decide(item, group, force)
        if isinstance(decision, Move):
            results.append(MoveResult(standing, "would move", before, "backwards" if decision.backwards else None))
        else:
            results.append(kept(standing, before, decision))
    return results


def kept(standing: Standing, before: Committed | None, decision: Keep) -> MoveResult:
    """What is left as it is at the goal."""
    told = None if decision.reason == THERE else decision.reason
    return MoveResult(standing, "there" if decision.there else "kept", before, told)


def marked(standings: Sequence[Standing], newest: Mapping[GroupPartition, Checkpoint], reverse: bool) -> list[Standing]:
    """Standings whose very position the newest checkpoints say was brought to the goal before: these are `synced`.

    A checkpoint that failback wrote is about the way back only, and no other one is.
    """
    return [_marked(standing, newest, reverse) for standing in standings]


def _marked(standing: Standing, newest: Mapping[GroupPartition, Checkpoint], reverse: bool) -> Standing:
    item = flipped(standing.checkpoint) if reverse else standing.checkpoint
    known = newest.get(item.group_partition)
    if known is None or not known.synced or (FAILBACK in (known.reason or "")) is not reverse:
        return standing
    same = (known.source_position, known.target) == (item.source_position, item.target)
    if not same or known.target_position != item.target_position:
        return standing
    return replace(standing, checkpoint=replace(standing.checkpoint, synced=True))


def verified(result: MoveResult, refused: str | None, now: Committed | None) -> MoveResult:
    """A move that was sent, by what the goal said to it and by the position read back."""
    wanted = result.standing.checkpoint.target_position
    if now is not None and now.offset == wanted:
        return replace(result, done="moved")
    if refused is None:
        refused = f"read back {'no position' if now is None else now.offset}"
    return replace(result, done="failed", detail=refused)


def documents(results: Sequence[MoveResult]) -> list[dict[str, Any]]:
    """As the commands show them."""
    return [result.document() for result in results]
