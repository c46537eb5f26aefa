"""Sets positions of groups on a cluster: one process at a time, in small steps, each checked first.

Kafka has no compare-and-set for positions. Brokers refuse to move groups with members; but a member
that joins, commits and leaves between our last check and our move goes unnoticed. So the check
comes right before the move.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from mirrorlake.attempts import attempts
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnusable, LakeError, LeaseTaken
from mirrorlake.groups import logs
from mirrorlake.groups.checkpoint_plan import Checkpoint
from mirrorlake.groups.moves import (
    NOT_REPORTED,
    MoveResult,
    Standing,
    kept,
    plan_moves,
    verified,
    within_logs,
)
from mirrorlake.groups.sync_plan import Keep, TargetGroup, decide, is_further
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.groups import GroupAdmin, GroupPositions
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import Lease
from mirrorlake.offsets.positions import Committed, TopicAndPartition

logger = logging.getLogger(__name__)

#: Groups per step: checking and moving this many takes a tenth of a second.
STEP_GROUPS = 50
_LOOK_SECONDS = 0.2
#: The state, in Kafka's terms, of a group of which only the members are known.
_HAS_MEMBERS = "UNKNOWN"


@dataclass(frozen=True)
class Sent:
    """The outcome of one move. `before` is the position right before it, `to` the one that was set;
    `kept` says why it was not sent after all, `refused` is the cluster's error."""

    checkpoint: Checkpoint
    before: Committed | None
    kept: Keep | None = None
    refused: str | None = None
    to: Committed | None = None


@contextmanager
def sole_mover(lake: Lake, flow: ResolvedFlow, seconds: float = 0.0) -> Iterator[list[str]]:
    """Hold the lease for moving groups along a flow. The opposite flow shares it: where both use
    one name for a topic, they move the same group. Yields the sentences about it that an operator
    should read: a process of another host that has not given it back may still move groups.

    Where the lake has no locks, or was opened only to be read, nothing can exclude others, and the
    block runs without the lease.

    Raises:
        LeaseTaken: another holder still has it after `seconds`.
        LakeError: the lake's store does not answer.
    """
    what = f"moving groups between {' and '.join(sorted((flow.source, flow.target)))}"
    try:
        lease = Lease(lake, what)
    except LakeError as error:
        logger.debug("flow %s: groups are moved without a lease: %s", flow.name, error)
        yield []
        return
    _take(lease, seconds)
    left = lease.taken_from
    try:
        yield [] if left is None else [f"{left} has not given back {what}: be sure that it is gone"]
    finally:
        lease.release()


def _take(lease: Lease, seconds: float) -> None:
    """Take the lease, where there are locks. One that a process of another host has not given back
    is taken over: a host that fails with its cluster must not keep groups from being moved."""
    for last in attempts(seconds, _LOOK_SECONDS):
        try:
            lease.take(sure=True)
            return
        except LeaseTaken:
            if last:
                raise
        except LakeError as error:
            if lease.can_exclude:
                lease.take()
            else:
                logger.debug("groups are moved without a lease: %s", error)
            return


def read_on_to(left: Checkpoint, now: GroupPositions) -> int | None:
    """Where a moved group stands by `now` at the cluster it left, if it has read on there: the move
    could not account for that. None if it has not."""
    at = now.positions.get(left.group_id, {}).get((left.topic, left.partition))
    return None if at is None or at.offset == left.source_position else at.offset


def target_groups(
    admin: GroupAdmin, groups: Iterable[str], starts: Mapping[TopicAndPartition, int] | None = None
) -> tuple[dict[str, TargetGroup], Mapping[str, str]]:
    """How groups stand on a cluster, and by group why it did not report one: those are left out.
    `starts` are the log starts, where known.

    Positions of groups with members are not queried, since such groups are never moved. A group
    that is not listed has no members only if all brokers listed theirs, or its coordinator says so.
    """
    wanted = sorted(set(groups))
    if not wanted:
        return {}, {}
    listing = admin.listing()
    unlisted = [group for group in wanted if group not in listing.states] if listing.errors else []
    answered, errors = _asked_of_coordinators(admin, unlisted, listing.errors)
    at_target = {
        group: TargetGroup(listing.states.get(group, answered.get(group)), {}, starts or {})
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
    """The partitions in which groups stand further ahead than planned: their logs may end in front
    of that, so their ends are queried (`with_ends`)."""
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


class MovePlan(NamedTuple):
    """What to do about each standing, in their order, and the groups at the goal by which this was
    decided."""

    results: list[MoveResult]
    goals: Mapping[str, TargetGroup]


def plan_within_logs(
    admin: ClusterAdmin,
    groups: GroupAdmin,
    standings: Sequence[Standing],
    mark: Callable[[Sequence[Standing]], Sequence[Standing]],
    force: bool = False,
) -> MovePlan:
    """Plan a command's moves to a cluster, within the logs that it has now; changes nothing.

    If the cluster does not report where a log begins or ends, a position may lie in front of it or
    behind it, and consumers would skip records: such a position is not moved, except by `force`.
    `mark` marks the bounded standings that were moved before as `synced`.

    Raises ClusterUnusable.
    """
    placed = {standing.checkpoint.target for standing in standings if standing.is_placed}
    there = logs.logs(admin, placed)
    bound = mark(within_logs(standings, there))
    checkpoints = [standing.checkpoint for standing in bound]
    names = {checkpoint.group_id for checkpoint in checkpoints}
    starts = {key: log.start for key, log in there.items()}
    reported, errors = target_groups(groups, names, starts)
    further = further_at_target(reported, checkpoints)
    ends = logs.ends(admin, further, committed=False) if further else {}
    goals = with_ends(reported, ends)
    results = [
        MoveResult(standing, "failed", None, NOT_REPORTED)
        if standing.is_placed and standing.checkpoint.target not in there and not force
        else result
        for standing, result in zip(bound, plan_moves(bound, goals, errors, force), strict=True)
    ]
    return MovePlan(results, goals)


def _asked_of_coordinators(
    admin: GroupAdmin, groups: Sequence[str], why: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """For groups that were not listed because some brokers list none (`why`): the state of those
    with members, and by group why its coordinator did not answer either."""
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
    """Set positions, `at_once` groups a step, unless the group has moved on since `groups`.

    A step whose coordinators do not answer counts as refused, and the next steps are tried.
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
    """The outcome of a planned move, by the positions read back."""
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
            now = replace(now, ends={})  # older than its new position: the log may have grown
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
