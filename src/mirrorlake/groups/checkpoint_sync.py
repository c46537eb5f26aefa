"""Checkpoints of a flow's consumer groups, and their positions set on the target: two tasks of its
control loop.

A turn asks the source once for each group, translates all that is new in one statement, and writes
what changed. What is newest is kept in memory and read from the lake at the start, so a turn in
which nothing moved writes nothing.
"""

import logging
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial

from mirrorlake import failpoints
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import LeaseTaken, ReplicationError
from mirrorlake.groups import logs
from mirrorlake.groups.checkpoint_plan import (
    OTHER_KIND,
    REWOUND,
    Checkpoint,
    GroupPartition,
    leaves_out,
    plan_checkpoints,
    selects_group,
    to_translate,
    trimmed_reason,
    with_outcome,
)
from mirrorlake.groups.checkpoint_table import (
    append_checkpoints,
    left_out_groups,
    newest_checkpoints,
    note_left_out,
)
from mirrorlake.groups.mover import Sent, move_in_steps, sole_mover, target_groups
from mirrorlake.groups.moves import change_of
from mirrorlake.groups.readable import Sides, readable_positions
from mirrorlake.groups.running_flow import RunningFlow
from mirrorlake.groups.shared_topics import Route, joined
from mirrorlake.groups.sync_plan import NOT_THERE, Keep, Move, decide
from mirrorlake.kafka.groups import GroupPositions, Listing
from mirrorlake.lake.changes import ChangeLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.source_generations import source_generations
from mirrorlake.lake.translate import Translator
from mirrorlake.mm2.formats import MirrorCheckpoint as PublishedCheckpoint
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
#: How often groups that the settings leave out are asked for their positions, seconds: they may be
#: many.
LEFT_OUT_SECONDS = 60.0


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
        self._starts = logs.Starts(connections.admin(flow.target))
        self._topic = topic
        self._log: ChangeLog = deployment.event_log
        self._translator = Translator(deployment.lake, flow.name)
        self._newest: dict[GroupPartition, Checkpoint] | None = None
        self._unpublished: dict[GroupPartition, Checkpoint] = {}
        self._landed: dict[
            TopicAndPartition, int
        ] = {}  # the generations that were landed at the turn before
        self._listed: Listing | None = None
        self._other_kinds: frozenset[str] = frozenset()
        self._listed_at = float("-inf")
        self._left_out: dict[str, TopicAndPartition] | None = None
        self._left_out_at = float("-inf")

    def checkpoint(self) -> list[Checkpoint]:
        """Translate what groups have committed since the last turn; returns the rows that it wrote.

        Raises ReplicationError when some groups were not reported; the others are written before
        that.
        """
        listing = self._listing()
        # Those that are not listed any more are asked for too: only their coordinator knows whether
        # they are gone.
        known = {key[0] for key, newest in self._known().items() if not newest.is_gone}
        groups = [
            group
            for group in known | listing.states.keys()
            if selects_group(self.flow.settings, group)
        ]
        read_at = datetime.now(timezone.utc)
        reported = self._source.positions(groups)
        everything = reported.by_partition
        committed = self._selected(everything)
        self._begin_generations({key[1:] for key in committed})
        newest = self._known()
        # As they were before the translation: one of a generation that ends meanwhile is not used
        # again.
        generations = self._generations(key[1] for key in (*committed, *newest))
        committed = {key: position for key, position in committed.items() if key[1] in generations}
        wanted = to_translate(committed, newest)
        translated = readable_positions(wanted, self._sides) if wanted else {}
        asked = reported.positions.keys() - reported.errors.keys()
        changed = [
            replace(
                row,
                target_generation=generations[row.topic],
                generation=self._landed[row.topic, row.partition],
            )
            for row in plan_checkpoints(
                committed, translated, newest, asked, everything.keys() - committed.keys()
            )
            if row.topic in generations
        ]
        self._write(changed, read_at)
        failpoints.reached("checkpointed")
        self._publish(changed)
        self._note_left_out(listing)
        problems = [*listing.errors, *_named(reported.errors)]
        if problems:
            raise ReplicationError(
                f"cluster {self.flow.source} did not report the positions of some groups "
                f"({'; '.join(problems)}); their checkpoints stay as they are, and they are asked "
                "for again"
            )
        return changed

    def sync(self) -> list[Checkpoint]:
        """Set the positions of groups at the target where that is right; returns the rows that it
        wrote.

        Does nothing while a command moves groups between these clusters. Raises ReplicationError
        when the target did not report, or refused, some; the others are written before that.
        """
        try:
            with sole_mover(self._lake, self.flow, OTHERS_SECONDS):
                return self._sync()
        except LeaseTaken as taken:
            logger.info(
                "flow %s: %s; group positions wait for the next turn", self.flow.name, taken
            )
            return []

    def _sync(self) -> list[Checkpoint]:
        checkpoints = self._movable()
        starts = self._starts.offsets_of({checkpoint.target for checkpoint in checkpoints})
        groups, errors = target_groups(
            self._target, {checkpoint.group_id for checkpoint in checkpoints}, starts
        )
        rows, moves = [], []
        for checkpoint in checkpoints:
            if checkpoint.group_id not in groups or (
                checkpoint.synced and checkpoint.target not in starts
            ):
                continue
            decision = (
                decide(checkpoint, groups[checkpoint.group_id])
                if checkpoint.target in starts
                else Keep(NOT_THERE)
            )
            if isinstance(decision, Move):
                moves.append(checkpoint)
            else:
                rows.append(_kept(checkpoint, decision))
        moves = self._still_movable(moves)
        sent = [move for step in move_in_steps(self._target, groups, moves) for move in step]
        tried = [move for move in sent if move.kept is None]
        rows += [_kept(move.checkpoint, move.kept) for move in sent if move.kept is not None]
        rows += [with_outcome(_as_set(move), move.refused is None, move.refused) for move in tried]
        known = self._known()  # once: it looks at all positions
        self._write(changed := [row for row in rows if row != known[row.group_partition]])
        self._unpublished.update(
            {row.group_partition: row for row in map(_as_set, tried) if row.own_reason}
        )
        self._log.record(self.flow.name, [change_of(*_tried(move)) for move in tried])
        refused = [move.refused for move in tried if move.refused is not None]
        if tried:
            logger.info(
                "flow %s: set %d positions on %s",
                self.flow.name,
                len(tried) - len(refused),
                self.flow.target,
            )
        problems = [*_named(errors), *refused]
        if problems:
            raise ReplicationError(
                f"cluster {self.flow.target} did not take the positions of some groups: "
                f"{problems[0]}"
            )
        return changed

    def _known(self) -> dict[GroupPartition, Checkpoint]:
        """The newest checkpoints, except those of groups that the flow does not mirror (any more),
        and of generations of target topics, or of source topics, that are over: they say
        nothing."""
        if self._newest is None:
            newest = newest_checkpoints(self._lake.now, self.flow.name)
            ours = {key for key in newest if selects_group(self.flow.settings, key[0])}
            self._newest = {key: newest[key][0] for key in ours}
            # a process before this one may have died between the two
            self._unpublished = dict(self._newest)
        living = self._generations(key[1] for key in self._newest)
        self._begin_generations({key[1:] for key in self._newest})
        other = {
            key: checkpoint
            for key, checkpoint in self._newest.items()
            if checkpoint.generation != self._landed[key[1:]]
        }
        self._newest.update(carried := self._carried_over(other) if other else {})
        over = {
            key
            for key, checkpoint in self._newest.items()
            if living.get(key[1]) != checkpoint.target_generation
        }
        for key in over | other.keys() - carried.keys():
            self._translator.forget(key[1])
            del self._newest[key]
            self._unpublished.pop(key, None)
        return self._newest

    def _carried_over(
        self, checkpoints: Mapping[GroupPartition, Checkpoint]
    ) -> dict[GroupPartition, Checkpoint]:
        """Checkpoints of earlier generations that are as good in those that are landed now: a log
        that went back is the same up to where it did."""
        known = source_generations(self._lake.now, self.flow.name)
        return {
            key: replace(checkpoint, generation=self._landed[key[1:]])
            for key, checkpoint in checkpoints.items()
            if checkpoint.generation < self._landed[key[1:]] == known.newest(key[1:])
            and known.living(checkpoint.place, checkpoint.source_position)
            == checkpoint.source_position
        }

    def _generations(self, topics: Iterable[str]) -> dict[str, int]:
        """The generations that topics are produced to; those without one are left out."""
        generations = {topic: self._running.target_generation(topic) for topic in set(topics)}
        return {
            topic: generation for topic, generation in generations.items() if generation is not None
        }

    def _movable(self) -> list[Checkpoint]:
        known = self._known().values()
        refused = {
            topic
            for topic in {checkpoint.topic for checkpoint in known}
            if self._running.refuses(topic)
        }
        return [
            checkpoint
            for checkpoint in known
            if checkpoint.has_counterpart
            and not checkpoint.is_gone
            and checkpoint.topic not in refused
        ]

    def _still_movable(self, moves: Sequence[Checkpoint]) -> list[Checkpoint]:
        """Those whose target topic is the one that it was, as the target says now."""
        if not moves:
            return []
        self._running.check_targets()
        known = self._known()
        return [checkpoint for checkpoint in moves if checkpoint.group_partition in known]

    def _publish(self, changed: Sequence[Checkpoint]) -> None:
        """What changed, and what an earlier turn could not publish."""
        self._unpublished.update({row.group_partition: row for row in changed})
        there = [
            checkpoint
            for checkpoint in self._unpublished.values()
            if checkpoint.has_counterpart and not checkpoint.is_gone
        ]
        self._topic.publish(map(_published, there))
        self._unpublished = {}

    def _write(self, rows: Sequence[Checkpoint], read_at: datetime | None = None) -> None:
        append_checkpoints(self._lake, self.flow.name, rows, read_at)
        self._known().update({row.group_partition: row for row in rows})

    def _listing(self) -> Listing:
        """The source's groups, asked for again when the last answer is old enough."""
        settings = self.flow.settings
        old = time.monotonic() - self._listed_at >= settings.refresh_groups_interval_seconds
        if self._listed is None or self._listed.errors or (settings.refresh_groups_enabled and old):
            self._listed = self._source.listing()
            self._listed_at = time.monotonic()
            self._tell_other_kinds(self._source.other_kinds(self._listed))
        return self._listed

    def _tell_other_kinds(self, groups: frozenset[str]) -> None:
        for group in sorted(groups - self._other_kinds):
            if selects_group(self.flow.settings, group):
                logger.warning(
                    "flow %s leaves out group %s, which is %s", self.flow.name, group, OTHER_KIND
                )
        self._other_kinds = groups

    def _note_left_out(self, listing: Listing) -> None:
        """Note the groups that the settings leave out, with positions in topics of the flow: so
        that a failover without the source can name them."""
        if time.monotonic() - self._left_out_at < LEFT_OUT_SECONDS:
            return
        self._left_out_at = time.monotonic()
        known = self._left_out
        if known is None:
            known = left_out_groups(self._lake.now, self.flow.name)
        left_out = {
            group
            for group in listing.states.keys() | known.keys()
            if leaves_out(self.flow.settings, group)
        }
        committed = self._source.positions(left_out) if left_out else GroupPositions({})
        places = {
            group: min(ours)
            for group, positions in committed.positions.items()
            if (ours := [key for key in positions if self._running.mirrors(key[0])])
        }
        fresh = {group: place for group, place in places.items() if group not in known}
        answered = committed.positions.keys() - committed.errors.keys()
        gone = {group: known[group] for group in (known.keys() & answered) - places.keys()}
        note_left_out(self._lake, self.flow.name, fresh, gone)
        self._left_out = {
            group: place for group, place in {**known, **fresh}.items() if group not in gone
        }

    def _selected(
        self, positions: Mapping[GroupPartition, Committed]
    ) -> dict[GroupPartition, Committed]:
        mirrored = {
            topic for topic in {key[1] for key in positions} if self._running.mirrors(topic)
        }
        return {key: position for key, position in positions.items() if key[1] in mirrored}

    def _translate(
        self, asked: Collection[TopicPartitionOffset]
    ) -> dict[TopicPartitionOffset, Translated]:
        reached = self._running.reached({(topic, partition) for topic, partition, _ in asked})
        translated = self._translator.translate(asked, reached)
        return joined(
            Route(self.flow, lake=self._lake.now, connections=self._connections), translated
        )

    def _target_logs(
        self, wanted: Collection[TopicAndPartition]
    ) -> dict[TopicAndPartition, LogEnds]:
        """Where mirrors begin. They end behind all that the map leads to: what they lost leaves
        it."""
        return {
            key: LogEnds(start, sys.maxsize)
            for key, start in self._starts.offsets_of(wanted).items()
        }

    def _begin_generations(self, keys: Iterable[TopicAndPartition]) -> None:
        """What was translated of a partition's previous generation says nothing about the newer
        one."""
        for key in keys:
            generation = self._running.generation(key)
            if self._landed.setdefault(key, generation) != generation:
                self._landed[key] = generation
                self._translator.forget(key[0])


def _named(errors: Mapping[str, str]) -> list[str]:
    """One sentence for all groups that were not reported, none for none."""
    group = min(errors, default="")
    return [f"{len(errors)} groups, such as {group}: {errors[group]}"] if errors else []


def _as_set(sent: Sent) -> Checkpoint:
    """The checkpoint of a position that was set; where its log begins behind it by now, at that
    start."""
    checkpoint, to = sent.checkpoint, sent.to
    if to is None or to.offset <= checkpoint.target_position:
        return checkpoint
    return replace(
        checkpoint,
        target_position=to.offset,
        reason=trimmed_reason(to.offset - checkpoint.target_position),
    )


def _tried(sent: Sent) -> tuple[Checkpoint, Committed | None, str | None, int]:
    to = sent.checkpoint.target_position if sent.to is None else sent.to.offset
    return sent.checkpoint, sent.before, sent.refused, to


def _published(checkpoint: Checkpoint) -> PublishedCheckpoint:
    """As MirrorMaker 2's clients read it."""
    positions = checkpoint.source_position, checkpoint.target_position
    return PublishedCheckpoint(
        checkpoint.group_id,
        checkpoint.target_topic,
        checkpoint.partition,
        *positions,
        checkpoint.metadata,
    )


def _kept(checkpoint: Checkpoint, decision: Keep) -> Checkpoint:
    is_noted = decision.reason == REWOUND or not decision.there
    return with_outcome(checkpoint, decision.there, decision.reason if is_noted else None)
