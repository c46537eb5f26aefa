"""Checkpoints of a flow's consumer groups, and their positions set on the target: two tasks of its
control loop.

A turn asks the source once for each group, translates all that is new in one statement, and writes
what changed. What is newest is kept in memory and read from the lake at the start, so a turn in
which nothing moved writes nothing.
"""

import logging
import sys
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import NamedTuple

from mirrorlake import failpoints
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ReplicationError
from mirrorlake.groups import logs
from mirrorlake.groups.checkpoint_plan import (
    Checkpoint,
    GroupPartition,
    plan_checkpoints,
    selects_group,
    to_translate,
    with_outcome,
)
from mirrorlake.groups.left_out import LeftOutGroups
from mirrorlake.groups.listed_groups import ListedGroups
from mirrorlake.groups.mover import Sent, move_in_steps, sole_mover, target_groups, with_ends
from mirrorlake.groups.moves import change_of
from mirrorlake.groups.newest_checkpoints import NewestCheckpoints
from mirrorlake.groups.readable import Sides, readable_positions
from mirrorlake.groups.running_flow import RunningFlow
from mirrorlake.groups.sent_checkpoints import as_kept, as_set, change_tried, published
from mirrorlake.groups.shared_topics import Direction, joined
from mirrorlake.groups.sync_plan import NOT_THERE, SILENT, Keep, Move, TargetGroup, decide
from mirrorlake.lake.changes import PendingChanges
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.translate import Translator
from mirrorlake.mm2.mirror_topics import CheckpointTopic
from mirrorlake.offsets.positions import (
    Committed,
    LogEnds,
    TopicAndPartition,
    TopicPartitionOffset,
    Translated,
)

logger = logging.getLogger(__name__)

#: How long group sync waits for a turn of the opposite flow, seconds; a command takes longer, the
#: turn is left out.
OTHERS_SECONDS = 2.0


class Checkpoints:
    """The groups of one flow. Used by one thread; every call raises ClusterUnreachable when a
    cluster is silent.

    `running` is the flow that mirrors the topics, `topic` publishes the checkpoints for MirrorMaker
    2's clients.
    """

    def __init__(
        self,
        flow: ResolvedFlow,
        deployment: Deployment,
        running: RunningFlow,
        topic: CheckpointTopic,
    ) -> None:
        connections = deployment.connections
        self.flow = flow
        self._lake = deployment.lake
        self._connections = connections
        self._source = connections.groups(flow.source)
        self._target = connections.groups(flow.target)
        self._running = running
        self._sides = Sides(
            self._translate,
            partial(logs.starts, connections.admin(flow.source)),
            partial(logs.ends, connections.admin(flow.source), committed=False),
            self._target_logs,
        )
        self._starts = logs.LogStarts(connections.admin(flow.target))
        self._ends = logs.EndsNowAndThen(connections.admin(flow.target))
        self._topic = topic
        self._changes = PendingChanges(deployment.event_log, flow.name)
        self._translator = Translator(deployment.lake, flow.name)
        self._newest = NewestCheckpoints(flow, self._lake, running, self._forget)
        self._listed = ListedGroups(flow, self._source)
        self._left_out = LeftOutGroups(flow, self._lake, self._source, running)
        self._at_source: Mapping[GroupPartition, Committed] = {}
        self._at_target: tuple[Sequence[Checkpoint], Mapping[str, TargetGroup]] = (), {}
        #: What was known and answered when a turn had nothing to write or to move: a turn about the
        #: same has nothing either, however many positions there are.
        self._planned_by: object = None
        self._settled_by: object = None
        self._movable_by: object = None
        self._movable: Sequence[Checkpoint] = ()

    def _forget(self, topics: Collection[str]) -> None:
        """Forget what is known of topics of which a log, here or there, is over."""
        self._translator.forget(topics)
        if topics:
            self._starts.forget()
            # before the log grows beyond a group that stood behind what it has lost
            self._ends.forget()

    def positions(self) -> dict[str, dict[GroupPartition, int]]:
        """Where groups stood at the newest turn, by the source's partitions: at the `source`, and
        at the `target`, where those with members are not asked for. For any thread."""
        checkpoints, groups = self._at_target
        at_target = {
            checkpoint.group_partition: groups[checkpoint.group_id].positions[checkpoint.target]
            for checkpoint in checkpoints
            if checkpoint.group_id in groups
            and checkpoint.target in groups[checkpoint.group_id].positions
        }
        sides = {"source": self._at_source, "target": at_target}
        return {
            side: {key: position.offset for key, position in known.items()}
            for side, known in sides.items()
        }

    def checkpoint(self) -> list[Checkpoint]:
        """Translate what groups have committed since the last turn; returns the rows that it wrote.

        Raises ReplicationError when some groups were not reported; the others are written before
        that.
        """
        listing = self._listed.listing()
        # Those that are not listed any more are asked for too: only their coordinator knows whether
        # they are gone.
        known = {key[0] for key, newest in self._newest.known().items() if not newest.is_gone}
        groups = [
            group
            for group in known | listing.states.keys()
            if selects_group(self.flow.settings, group)
        ]
        read_at = datetime.now(timezone.utc)
        reported = self._source.positions(groups)
        everything = reported.by_partition
        committed = self._selected(everything)
        self._newest.begin_generations({key[1:] for key in committed})
        newest = self._newest.known()
        # As they were before the translation: one of a generation that ends meanwhile is not used
        # again.
        generations = self._newest.generations(key[1] for key in (*committed, *newest))
        committed = {key: position for key, position in committed.items() if key[1] in generations}
        self._at_source = committed
        about = _Asked(
            committed,
            generations,
            reported.positions.keys() - reported.errors.keys(),
            everything.keys() - committed.keys(),
        )
        changed = self._changed(about, newest)
        self._write(changed, read_at)
        failpoints.reached("checkpointed")
        self._publish(changed)
        self._left_out.note(listing)
        problems = [*listing.errors, *_named(reported.errors)]
        if problems:
            raise ReplicationError(
                f"cluster {self.flow.source} did not report the positions of some groups "
                f"({'; '.join(problems)}); their checkpoints stay as they are, and they are asked "
                "for again"
            )
        return changed

    def _changed(
        self, about: "_Asked", newest: Mapping[GroupPartition, Checkpoint]
    ) -> list[Checkpoint]:
        """The rows that are to be written."""
        seen = self._newest.revision, about
        if seen == self._planned_by:
            return []
        wanted = to_translate(about.committed, newest)
        translated = readable_positions(wanted, self._sides) if wanted else {}
        changed = [
            replace(
                row,
                target_generation=about.generations[row.topic],
                generation=self._newest.landed[row.topic, row.partition],
            )
            for row in plan_checkpoints(
                about.committed, translated, newest, about.groups, about.elsewhere
            )
            if row.topic in about.generations
        ]
        self._planned_by = None if wanted or changed else seen
        return changed

    def sync(self) -> list[Checkpoint]:
        """Set the positions of groups at the target where that is right; returns the rows that it
        wrote.

        Raises LeaseTaken while a command moves groups between these clusters, and ReplicationError
        when the target did not report, or refused, some; the others are written before that.
        """
        if self._lake.in_store and self._decisions().is_settled:
            self._changes.record()
            return []  # a lease there is paid for, each turn
        with sole_mover(self._lake, self.flow, OTHERS_SECONDS):
            return self._sync()

    def _decisions(self) -> "_Decisions":
        """What is right for each checkpoint, by what the target says now."""
        checkpoints = self._that_may_move()
        starts, silent = self._starts.starts_and_silent(
            {checkpoint.target for checkpoint in checkpoints}
        )
        reported, errors = target_groups(
            self._target, {checkpoint.group_id for checkpoint in checkpoints}, starts
        )
        groups = with_ends(reported, checkpoints, self._ends.of)
        self._at_target = checkpoints, groups
        seen = self._newest.revision, checkpoints, starts, silent, groups
        if seen == self._settled_by:
            return _Decisions(groups, errors, [], [])
        known, rows, moves = self._newest.known(), list[Checkpoint](), list[Checkpoint]()
        for checkpoint in checkpoints:
            if checkpoint.group_id not in groups or (
                checkpoint.synced and checkpoint.target not in starts
            ):
                continue
            decision = (
                decide(checkpoint, groups[checkpoint.group_id])
                if checkpoint.target in starts
                else Keep(SILENT if checkpoint.target in silent else NOT_THERE)
            )
            if isinstance(decision, Move):
                moves.append(checkpoint)
            elif (row := as_kept(checkpoint, decision)) != known.get(row.group_partition):
                rows.append(row)
        self._settled_by = None if rows or moves else seen
        return _Decisions(groups, errors, rows, moves)

    def _sync(self) -> list[Checkpoint]:
        groups, errors, rows, wanted = self._decisions()
        moves = self._still_movable(wanted)
        sent: list[Sent] = []
        try:
            for step in move_in_steps(self._target, groups, moves):
                sent += step
        finally:  # whatever ends it, what the steps before it moved is written down
            changed = self._note_moved(rows, sent)
        refused = [move.refused for move in sent if move.refused is not None]
        problems = [*_named(errors), *refused]
        if problems:
            raise ReplicationError(
                f"cluster {self.flow.target} did not take the positions of some groups: "
                f"{problems[0]}"
            )
        return changed

    def _note_moved(self, rows: Sequence[Checkpoint], sent: Sequence[Sent]) -> list[Checkpoint]:
        """Write down what is kept as it is, and what became of moves; returns the rows that say
        something new."""
        tried = [move for move in sent if move.kept is None]
        self._changes.add(change_of(*change_tried(move)) for move in tried)
        rows = list(rows)
        rows += [as_kept(move.checkpoint, move.kept) for move in sent if move.kept is not None]
        rows += [with_outcome(as_set(move), move.refused is None, move.refused) for move in tried]
        # Once: it looks at all positions. Those of a topic that was made again meanwhile are none.
        known = self._newest.known()
        living = [row for row in rows if row.group_partition in known]
        self._write(changed := [row for row in living if row != known[row.group_partition]])
        self._newest.unpublished.update(
            {
                row.group_partition: row
                for row in map(as_set, tried)
                if row.own_reason and row.group_partition in known
            }
        )
        self._changes.record()
        if tried:
            count = sum(move.refused is None for move in tried)
            logger.info("flow %s: set %d positions on %s", self.flow.name, count, self.flow.target)
        return changed

    def _that_may_move(self) -> Sequence[Checkpoint]:
        known = self._newest.known()
        refused = {topic for topic in self._newest.topics if self._running.refuses(topic)}
        if self._movable_by != (self._newest.revision, refused):
            self._movable_by = self._newest.revision, refused
            self._movable = [
                checkpoint
                for checkpoint in known.values()
                if checkpoint.has_counterpart
                and not checkpoint.is_gone
                and checkpoint.topic not in refused
            ]
        return self._movable

    def _still_movable(self, moves: Sequence[Checkpoint]) -> list[Checkpoint]:
        """Those whose target topic is the one that it was, as the target says now."""
        if not moves:
            return []
        self._running.check_targets()
        known = self._newest.known()
        return [checkpoint for checkpoint in moves if checkpoint.group_partition in known]

    def _publish(self, changed: Sequence[Checkpoint]) -> None:
        """What changed, and what an earlier turn could not publish."""
        self._newest.unpublished.update({row.group_partition: row for row in changed})
        there = [
            checkpoint
            for checkpoint in self._newest.unpublished.values()
            if checkpoint.has_counterpart and not checkpoint.is_gone
        ]
        self._topic.publish(map(published, there))
        self._newest.unpublished = {}

    def _write(self, rows: Sequence[Checkpoint], read_at: datetime | None = None) -> None:
        if rows:
            self._newest.write(rows, read_at)

    def _selected(
        self, positions: Mapping[GroupPartition, Committed]
    ) -> dict[GroupPartition, Committed]:
        """Those in topics that the flow mirrors. One in a topic that was made again is of another
        log than the map, until an operator has let its generation begin."""
        topics = {key[1] for key in positions} - self._running.made_again()
        mirrored = {topic for topic in topics if self._running.mirrors(topic)}
        return {key: position for key, position in positions.items() if key[1] in mirrored}

    def _translate(
        self, asked: Collection[TopicPartitionOffset]
    ) -> dict[TopicPartitionOffset, Translated]:
        reached = self._running.reached({(topic, partition) for topic, partition, _ in asked})
        translated = self._translator.translate(asked, reached)
        topology = self._connections.topology
        return joined(self._lake.now, topology, Direction(self.flow), translated)

    def _target_logs(
        self, wanted: Collection[TopicAndPartition]
    ) -> dict[TopicAndPartition, LogEnds]:
        """Where mirrors begin. They end behind all that the map leads to: what they lost leaves
        it."""
        return {
            key: LogEnds(start, sys.maxsize)
            for key, start in self._starts.offsets_of(wanted).items()
        }


class _Asked(NamedTuple):
    """What the source says of the positions of groups: in topics that the flow mirrors, the
    generations of these, which groups' positions are known to be all, and where they stand in other
    topics."""

    committed: Mapping[GroupPartition, Committed]
    generations: Mapping[str, int]
    groups: Set[str]
    elsewhere: Set[GroupPartition]


class _Decisions(NamedTuple):
    """How groups stand at the target, by group why one was not reported, what is to be written
    down, and what is moved."""

    groups: Mapping[str, TargetGroup]
    errors: Mapping[str, str]
    rows: list[Checkpoint]
    moves: list[Checkpoint]

    @property
    def is_settled(self) -> bool:
        """Whether nothing is to be moved, and nothing to be written down."""
        return not (self.rows or self.moves or self.errors)


def _named(errors: Mapping[str, str]) -> list[str]:
    """One sentence for all groups that were not reported, none for none."""
    group = min(errors, default="")
    return [f"{len(errors)} groups, such as {group}: {errors[group]}"] if errors else []
