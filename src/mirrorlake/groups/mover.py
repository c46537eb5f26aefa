"""Setting positions of groups on a cluster: by one process at a time, in small steps, each checked
again before it.

Kafka has no "set this position if it is still that one". Groups with members are refused by the
brokers themselves; one that joins, commits and leaves between our last check and our move is not
seen. So that check is right before the move.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from mirrorlake.attempts import attempts
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnusable, LakeError, LeaseTaken
from mirrorlake.groups.checkpoint_plan import Checkpoint
from mirrorlake.groups.moves import MoveResult, kept, verified
from mirrorlake.groups.sync_plan import Keep, TargetGroup, decide, is_further
from mirrorlake.kafka.groups import GroupAdmin, GroupPositions
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import Lease
from mirrorlake.offsets.positions import Committed, TopicAndPartition

logger = logging.getLogger(__name__)

#: Groups in one step: a check and a move of so many take a tenth of a second.
STEP_GROUPS = 50
_LOOK_SECONDS = 0.2
#: The state, as Kafka names it, of a group of which only its members are known.
_HAS_MEMBERS = "UNKNOWN"


@dataclass(frozen=True)
class Sent:
    """What became of one move. `before` is the position right before it, `to` the one that was set;
    `kept` says why it was not sent after all, `refused` what the cluster answered."""

    checkpoint: Checkpoint
    before: Committed | None
    kept: Keep | None = None
    refused: str | None = None
    to: Committed | None = None


@contextmanager
def sole_mover(lake: Lake, flow: ResolvedFlow, seconds: float = 0.0) -> Iterator[None]:
    """Do what moves groups along a flow as the only one that does. Raises LeaseTaken when another
    one is still at it after so long. The opposite flow counts as the same one: where both use one
    name for a topic they move one group.

    Where the lake has no locks, or was opened to be read, it cannot be known, and it is done all
    the same.
    """
    try:
        lease = Lease(
            lake, f"moving groups between {' and '.join(sorted((flow.source, flow.target)))}"
        )
        _take(lease, seconds)
    except LakeError as error:
        logger.debug("flow %s: groups are moved without a lease: %s", flow.name, error)
        yield
        return
    try:
        yield
    finally:
        lease.release()


def _take(lease: Lease, seconds: float) -> None:
    for last in attempts(seconds, _LOOK_SECONDS):
        try:
            lease.take(sure=True)
            return
        except LeaseTaken:
            if last:
                raise


def read_on_to(left: Checkpoint, now: GroupPositions) -> int | None:
    """Where a group that was moved stands by `now` at what it left, where that is not where it was
    moved by: what it read meanwhile, no move could have known of."""
    at = now.positions.get(left.group_id, {}).get((left.topic, left.partition))
    return None if at is None or at.offset == left.source_position else at.offset


def target_groups(
    admin: GroupAdmin, groups: Iterable[str], starts: Mapping[TopicAndPartition, int] | None = None
) -> tuple[dict[str, TargetGroup], Mapping[str, str]]:
    """How groups stand on a cluster; and by group why it did not report it: such groups are left
    out. `starts` are the first offsets still there, where they are known.

    Positions of groups with members are not asked for: nothing is done to them. One that is not
    listed has none only where all brokers listed theirs, or where its coordinator says so.
    """
    wanted = sorted(set(groups))
    if not wanted:
        return {}, {}
    listing = admin.listing()
    unlisted = [group for group in wanted if group not in listing.states] if listing.errors else []
    told, errors = _asked_of_coordinators(admin, unlisted, listing.errors)
    at_target = {
        group: TargetGroup(listing.states.get(group, told.get(group)), {}, starts or {})
        for group in wanted
        if group not in errors
    }
    reported = admin.positions([name for name, group in at_target.items() if not group.is_active])
    for name, positions in reported.positions.items():
        at_target[name] = replace(at_target[name], positions=positions)
    errors |= reported.errors
    return {name: group for name, group in at_target.items() if name not in errors}, errors


def further_at_target(
    groups: Mapping[str, TargetGroup], checkpoints: Iterable[Checkpoint]
) -> frozenset[TopicAndPartition]:
    """The partitions in which groups stand further than they are to be: there may be nothing any
    more, so that it is asked for their ends (`with_ends`)."""
    return frozenset(
        checkpoint.target
        for checkpoint in checkpoints
        if checkpoint.group_id in groups and is_further(checkpoint, groups[checkpoint.group_id])
    )


def with_ends(
    groups: Mapping[str, TargetGroup], ends: Mapping[TopicAndPartition, int]
) -> Mapping[str, TargetGroup]:
    """The groups with the ends of logs, as far as these are known."""
    return {name: replace(group, ends=ends) for name, group in groups.items()} if ends else groups


def _asked_of_coordinators(
    admin: GroupAdmin, groups: Sequence[str], why: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Of groups that were not listed, since some brokers list none (`why`), the state of those that
    have members; and by group why its coordinator does not say either."""
    if not groups:
        return {}, {}
    described = admin.members(groups)
    having = {group: _HAS_MEMBERS for group, members in described.members.items() if members}
    return having, {
        group: f"not all groups were listed ({why[0]}), and its coordinator does not say who is in "
        f"it: {error}"
        for group, error in described.errors.items()
    }


def move_in_steps(
    admin: GroupAdmin,
    groups: Mapping[str, TargetGroup],
    checkpoints: Sequence[Checkpoint],
    force: bool = False,
    at_once: int = STEP_GROUPS,
) -> Iterator[list[Sent]]:
    """Set positions, so many groups in a step, unless the group has gone on since `groups` was
    read.

    A step whose coordinators do not answer is refused, and the next ones are tried.
    """
    by_name: dict[str, list[Checkpoint]] = {}
    for checkpoint in checkpoints:
        by_name.setdefault(checkpoint.group_id, []).append(checkpoint)
    names = list(by_name)
    for start in range(0, len(names), at_once):
        step = [
            checkpoint for name in names[start : start + at_once] for checkpoint in by_name[name]
        ]
        try:
            yield _step(admin, groups, step, force)
        except ClusterUnusable as error:
            yield [Sent(checkpoint, None, refused=str(error)) for checkpoint in step]


def outcome_of(result: MoveResult, sent: Sent, now: GroupPositions) -> MoveResult:
    """What became of a move that was to be sent, by the positions that were read back."""
    checkpoint = sent.checkpoint
    if sent.kept is not None:
        return kept(result.standing, sent.before, sent.kept)
    refused = sent.refused
    if checkpoint.group_id in now.errors:
        refused = refused or f"not read back: {now.errors[checkpoint.group_id]}"
    position = now.positions.get(checkpoint.group_id, {}).get(checkpoint.target)
    return verified(replace(result, before=sent.before, to=sent.to or result.to), refused, position)


def _step(
    admin: GroupAdmin,
    groups: Mapping[str, TargetGroup],
    checkpoints: Sequence[Checkpoint],
    force: bool,
) -> list[Sent]:
    reported = admin.positions({checkpoint.group_id for checkpoint in checkpoints})
    sent, moving = [], []
    for checkpoint in checkpoints:
        known, at = groups[checkpoint.group_id], checkpoint.target
        now = replace(known, positions=reported.positions.get(checkpoint.group_id, {}))
        before = now.positions.get(at)
        if before != known.positions.get(at):
            now = replace(now, ends={})  # asked for before it stood there: the log may have grown
        decision = decide(checkpoint, now, force)
        if checkpoint.group_id in reported.errors:
            sent.append(Sent(checkpoint, before, refused=reported.errors[checkpoint.group_id]))
        elif isinstance(decision, Keep):
            sent.append(Sent(checkpoint, before, kept=decision))
        else:
            moving.append(Sent(checkpoint, before, to=decision.to))
    refused = admin.move(_by_group(moving))
    answers = [refused.get((move.checkpoint.group_id, *move.checkpoint.target)) for move in moving]
    return sent + [replace(move, refused=why) for move, why in zip(moving, answers, strict=True)]


def _by_group(moving: Iterable[Sent]) -> dict[str, dict[TopicAndPartition, Committed]]:
    moves: dict[str, dict[TopicAndPartition, Committed]] = {}
    for move in moving:
        if move.to is not None:
            moves.setdefault(move.checkpoint.group_id, {})[move.checkpoint.target] = move.to
    return moves
