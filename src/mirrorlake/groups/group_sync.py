"""A turn of a flow's groups at the target: set their positions there where that is safe."""

import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ReplicationError
from mirrorlake.groups.checkpoint_plan import (
    REWOUND,
    TRIMMED,
    Checkpoint,
    GroupPartition,
    trimmed_reason,
    with_outcome,
)
from mirrorlake.groups.checkpointing import Checkpointing
from mirrorlake.groups.logs import LogStarts, ThrottledLogEnds
from mirrorlake.groups.mover import (
    Sent,
    further_at_target,
    move_in_steps,
    sole_mover,
    target_groups,
    with_ends,
)
from mirrorlake.groups.moves import change_of
from mirrorlake.groups.named_groups import not_reported
from mirrorlake.groups.newest_checkpoints import NewestCheckpoints
from mirrorlake.groups.running_flow import RunningFlow
from mirrorlake.groups.sync_plan import NOT_THERE, SILENT, Keep, Move, TargetGroup, decide
from mirrorlake.lake.changes import Change, PendingChanges
from mirrorlake.lake.deployment import Deployment
from mirrorlake.mm2.mirror_topics import CheckpointTopic
from mirrorlake.offsets.positions import TopicAndPartition

logger = logging.getLogger(__name__)

#: How long group sync waits for a turn of the opposite flow, seconds. Then the turn is skipped.
OTHERS_SECONDS = 2.0


class GroupSync:
    """Sets positions of a flow's groups at its target. For one thread, as `newest` is."""

    def __init__(
        self,
        flow: ResolvedFlow,
        deployment: Deployment,
        newest: NewestCheckpoints,
        mirror_starts: LogStarts,
    ) -> None:
        self._flow = flow
        self._lake = deployment.lake
        self._target = deployment.connections.groups(flow.target)
        self._newest = newest
        self._mirror_starts = mirror_starts
        self._mirror_ends = ThrottledLogEnds(deployment.connections.admin(flow.target))
        # to ask before a log grows past a group that stood behind lost records
        newest.forgotten_by.append(lambda _: self._mirror_ends.forget())
        self._changes = PendingChanges(deployment.event_log, flow.name)
        self._at_target: tuple[Sequence[Checkpoint], Mapping[str, TargetGroup]] = (), {}
        #: The inputs of the last turn with nothing to move or write: a turn with equal inputs is
        #: skipped, however many positions there are.
        self._nothing_by: object = None
        self._movable_by: object = None
        self._movable = _Movable([])
        #: Which groups are further ahead at the target than planned, and the inputs of that answer.
        self._further_by: object = None
        self._further: Set[TopicAndPartition] = frozenset()

    def positions(self) -> dict[GroupPartition, int]:
        """Where groups without members stood last, by source partition. For any thread."""
        checkpoints, groups = self._at_target
        return {
            checkpoint.group_partition: groups[checkpoint.group_id]
            .positions[checkpoint.target]
            .offset
            for checkpoint in checkpoints
            if checkpoint.group_id in groups
            and checkpoint.target in groups[checkpoint.group_id].positions
        }

    def sync(self) -> list[Checkpoint]:
        """Set the positions of groups at the target where that is safe; return the rows written.

        Raises LeaseTaken while a command moves groups here, LakeError when the lake's store is
        silent, ClusterUnreachable when the target is, and ReplicationError when it did not report,
        or refused, some groups; the rows of the other groups are written first.
        """
        if self._lake.in_store and self._decisions().is_settled:
            self._changes.record()
            return []  # a lease in a store costs requests, each turn
        with sole_mover(self._lake, self._flow, OTHERS_SECONDS):
            return self._sync()

    def _sync(self) -> list[Checkpoint]:
        groups, errors, rows, wanted = self._decisions()
        moves = self._still_movable(wanted)
        sent: list[Sent] = []
        try:
            for step in move_in_steps(self._target, groups, moves):
                sent += step
        finally:  # however it ends, write down what the completed steps moved
            changed = self._note_moved(rows, sent)
        refused = [move.refused for move in sent if move.refused is not None]
        if problems := [*not_reported(errors), *refused]:
            raise ReplicationError(
                f"cluster {self._flow.target} did not take the positions of some groups: "
                f"{problems[0]}"
            )
        return changed

    def _decisions(self) -> "_Decisions":
        """Decide about each checkpoint, by what the target reports now."""
        movable = self._that_may_move()
        checkpoints = movable.checkpoints
        starts, silent = self._mirror_starts.starts_and_silent(movable.places)
        reported, errors = target_groups(self._target, movable.groups, starts)
        if (checkpoints, reported) != self._further_by:
            self._further_by = checkpoints, reported
            self._further = further_at_target(reported, checkpoints)
        ends = self._mirror_ends.of(self._further) if self._further else {}
        groups = with_ends(reported, ends)
        self._at_target = checkpoints, groups
        seen = self._newest.revision, checkpoints, starts, silent, groups, ends
        if seen == self._nothing_by:
            return _Decisions(groups, errors, [], [])
        known, rows, moves = self._newest.known(), list[Checkpoint](), list[Checkpoint]()
        for checkpoint in checkpoints:
            decision = _decided(checkpoint, groups.get(checkpoint.group_id), starts, silent)
            if isinstance(decision, Move):
                moves.append(checkpoint)
            elif decision is not None:
                row = _as_kept(checkpoint, decision)
                rows += [row] if row != known.get(row.group_partition) else []
        self._nothing_by = None if rows or moves else seen
        return _Decisions(groups, errors, rows, moves)

    def _that_may_move(self) -> "_Movable":
        """The checkpoints by which groups may be moved: not those in logs of the source that other
        ones have replaced, of which no operator has decided."""
        known, running = self._newest.known(), self._newest.running
        refused = {topic for topic in self._newest.topics if running.refuses(topic)}
        others = running.other_logs()
        if self._movable_by != (self._newest.revision, refused, others):
            self._movable_by = self._newest.revision, refused, others
            self._movable = _Movable(
                [
                    checkpoint
                    for checkpoint in known.values()
                    if checkpoint.has_counterpart
                    and not checkpoint.is_gone
                    and checkpoint.topic not in refused
                    and not others.have(checkpoint.source)
                ]
            )
        return self._movable

    def _still_movable(self, moves: Sequence[Checkpoint]) -> list[Checkpoint]:
        """The moves whose target topic, as the target answers now, is still the same."""
        if not moves:
            return []
        self._newest.running.check_targets()
        known = self._newest.known()
        return [checkpoint for checkpoint in moves if checkpoint.group_partition in known]

    def _note_moved(self, rows: Sequence[Checkpoint], sent: Sequence[Sent]) -> list[Checkpoint]:
        """Note kept positions and outcomes of moves; return rows that differ from known ones."""
        tried = [move for move in sent if move.kept is None]
        self._changes.add(map(_change_tried, tried))
        rows = list(rows)
        rows += [_as_kept(move.checkpoint, move.kept) for move in sent if move.kept is not None]
        rows += [with_outcome(as_set(move), move.refused is None, move.refused) for move in tried]
        # Once: it looks at all positions, and drops those of topics made again meanwhile.
        known = self._newest.known()
        living = [row for row in rows if row.group_partition in known]
        changed = [row for row in living if row != known[row.group_partition]]
        self._newest.write(changed)
        self._newest.unpublished.update(
            {
                row.group_partition: row
                for row in map(as_set, tried)
                if row.own_reason and row.group_partition in known
            }
        )
        self._changes.record()
        if tried:
            flow, count = self._flow, sum(move.refused is None for move in tried)
            logger.info("flow %s: set %d positions on %s", flow.name, count, flow.target)
        return changed


class _Movable:
    """Checkpoints that may move their groups, with their target partitions and groups."""

    def __init__(self, checkpoints: list[Checkpoint]) -> None:
        self.checkpoints = checkpoints
        self.places = frozenset(checkpoint.target for checkpoint in checkpoints)
        self.groups = frozenset(checkpoint.group_id for checkpoint in checkpoints)


class _Decisions(NamedTuple):
    """Groups at the target, errors by group, rows to write, and checkpoints to move."""

    groups: Mapping[str, TargetGroup]
    errors: Mapping[str, str]
    rows: list[Checkpoint]
    moves: list[Checkpoint]

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to move or write, and no error."""
        return not (self.rows or self.moves or self.errors)


def _decided(
    checkpoint: Checkpoint,
    group: TargetGroup | None,
    starts: Mapping[TopicAndPartition, int],
    silent: Set[TopicAndPartition],
) -> Move | Keep | None:
    """The decision about one position; None where it stays as it is known."""
    if group is None:
        return None
    if checkpoint.target in starts:
        return decide(checkpoint, group)
    if checkpoint.synced:
        return None
    return Keep(SILENT if checkpoint.target in silent else NOT_THERE)


def as_set(sent: Sent) -> Checkpoint:
    """The checkpoint of a position that was set, or of the log's start if that lies behind it."""
    checkpoint, to = sent.checkpoint, sent.to
    if to is None or to.offset <= checkpoint.target_position:
        return checkpoint
    # A position that was held back still has to be translated again.
    reasons = [part for part in checkpoint.own_reasons if not part.startswith(TRIMMED)]
    reasons.append(trimmed_reason(to.offset - checkpoint.target_position))
    return replace(checkpoint, target_position=to.offset, reason="; ".join(reasons))


def _change_tried(sent: Sent) -> Change:
    """A move that was sent, as a row of `changes`."""
    to = sent.checkpoint.target_position if sent.to is None else sent.to.offset
    return change_of(sent.checkpoint, sent.before, sent.refused, to)


def _as_kept(checkpoint: Checkpoint, decision: Keep) -> Checkpoint:
    """The checkpoint of a position that is left where it is, by a decision."""
    is_noted = decision.reason == REWOUND or not decision.there
    return with_outcome(checkpoint, decision.there, decision.reason if is_noted else None)


class GroupTurns:
    """Two tasks of a flow's control loop over the same newest checkpoints: `source` queries what
    groups committed, `target` sets positions. For one thread."""

    def __init__(
        self,
        flow: ResolvedFlow,
        deployment: Deployment,
        running: RunningFlow,
        topic: CheckpointTopic,
    ) -> None:
        mirror_starts = LogStarts(deployment.connections.admin(flow.target))
        newest = NewestCheckpoints(flow, deployment.lake, running, lambda _: mirror_starts.forget())
        self.source = Checkpointing(flow, deployment, newest, mirror_starts, topic)
        self.target = GroupSync(flow, deployment, newest, mirror_starts)
