"""Checkpoints of a flow's consumer groups, and their positions set on the target: two tasks of its control loop.

A round asks the source once for each group, translates all that is new in one statement, and writes what changed. What
is newest is kept in memory and read from the lake at the start, so a round in which nothing moved writes nothing.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from mirrorlake import crash
from mirrorlake.core.changes import ChangeLog
from mirrorlake.core.group_moves import change_of
from mirrorlake.core.group_sync import Keep, Move, TargetGroup, decide, noted
from mirrorlake.core.groups import Checkpoint, Committed, Place, plan_checkpoints, selects_group, to_translate
from mirrorlake.core.mm2_formats import Checkpoint as PublishedCheckpoint
from mirrorlake.core.survey import Key
from mirrorlake.core.topology import ResolvedFlow
from mirrorlake.engine.connections import Connections
from mirrorlake.engine.mirror_topics import CheckpointTopic
from mirrorlake.engine.shared_topics import Way, joined
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.groups import GroupAdmin, Listing
from mirrorlake.lake.checkpoints import append_checkpoints, newest_checkpoints
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.translate import Passed, Translator

logger = logging.getLogger(__name__)


class Checkpoints:
    """The groups of one flow. Used by one thread; every call raises ClusterUnreachable when a cluster is silent.

    `topic` publishes them for MirrorMaker 2's clients, `log` is told of each position that is set. `mirrored` says
    whether a source topic is mirrored, `life` which life of it is landed, `target_generation` which generation of its
    target topic it is produced to (None: none, and no group is moved there), which `check_targets` compares with what
    is there; `passed` is how far the flow is in partitions of its own knowledge (None if it cannot tell now).
    """

    def __init__(
        self,
        flow: ResolvedFlow,
        lake: Lake,
        connections: Connections,
        mirrored: Callable[[str], bool],
        life: Callable[[str], int],
        passed: Callable[[Iterable[Key]], Mapping[Key, Passed] | None],
        topic: CheckpointTopic,
        log: ChangeLog,
        target_generation: Callable[[str], int | None] = lambda _topic: 0,
        check_targets: Callable[[], None] = lambda: None,
    ) -> None:
        self.flow = flow
        self._lake = lake
        self._connections = connections
        self._source = connections.groups(flow.source)
        self._target = connections.groups(flow.target)
        self._mirrored = mirrored
        self._life = life
        self._target_generation = target_generation
        self._check_targets = check_targets
        self._passed = passed
        self._topic = topic
        self._log = log
        self._translator = Translator(lake, flow.name)
        self._newest: dict[Place, Checkpoint] | None = None
        self._unpublished: dict[Place, Checkpoint] = {}
        self._lives: dict[str, int] = {}
        self._listed: Listing | None = None
        self._listed_at = float("-inf")

    def checkpoint(self) -> list[Checkpoint]:
        """Translate what groups have committed since the last round; returns the rows that it wrote.

        Raises ReplicationError when some groups were not told; the others are written before that.
        """
        listing = self._listing()
        groups = [group for group in listing.states if selects_group(self.flow.settings, group)]
        read_at = datetime.now(timezone.utc)
        told = self._source.positions(groups)
        committed = self._mirrored_only(told.positions)
        self._begin_lives({place[1] for place in committed})
        newest = self._known()
        # As of before the translation: one of a generation that ends meanwhile is not used again.
        generations = self._generations(place[1] for place in (*committed, *newest))
        committed = {place: position for place, position in committed.items() if place[1] in generations}
        wanted = to_translate(committed, newest)
        translated = {}
        if wanted:
            passed = self._passed({(topic, partition) for topic, partition, _ in wanted})
            found = self._translator.translate(wanted, passed)
            translated = joined(self._lake, self._connections, Way(self.flow), found)
        asked = set(told.positions)
        if not listing.errors:
            asked |= {place[0] for place in newest} - listing.states.keys()
        changed = [
            replace(row, target_generation=generations[row.topic])
            for row in plan_checkpoints(committed, translated, newest, asked)
            if row.topic in generations
        ]
        self._write(changed, read_at)
        crash.reached("checkpointed")
        self._publish(changed)
        problems = [*listing.errors, *told.errors.values()]
        if problems:
            raise ReplicationError(
                f"cluster {self.flow.source} did not tell the positions of some groups ({problems[0]}); they are asked "
                "for again"
            )
        return changed

    def sync(self) -> list[Checkpoint]:
        """Set the positions of groups at the target where that is right; returns the rows that it wrote.

        Raises ReplicationError when the target did not tell, or refused, some; the others are written before that.
        """
        checkpoints = self._movable()
        groups, errors = target_groups(self._target, {item.group_id for item in checkpoints})
        rows, moves = [], []
        for item in checkpoints:
            if item.group_id not in groups:
                continue
            decision = decide(item, groups[item.group_id])
            if isinstance(decision, Move):
                moves.append(item)
            else:
                rows.append(_kept(item, decision))
        moves = self._still_movable(moves)
        refused = self._target.move(by_group(moves))
        rows += [noted(item, (why := refused.get(_at_target(item))) is None, why) for item in moves]
        changed = [row for row in rows if row != self._known()[row.place]]
        self._write(changed)
        before = {item.place: groups[item.group_id].positions.get(item.target) for item in moves}
        told = [change_of(item, before[item.place], refused.get(_at_target(item))) for item in moves]
        self._log.record(self.flow.name, told)
        if moves:
            logger.info("flow %s: set %d positions on %s", self.flow.name, len(moves) - len(refused), self.flow.target)
        problems = [*errors, *refused.values()]
        if problems:
            raise ReplicationError(
                f"cluster {self.flow.target} did not take the positions of some groups: {problems[0]}"
            )
        return changed

    def _known(self) -> dict[Place, Checkpoint]:
        """The newest checkpoints, but for those of generations of target topics that are over: they say nothing."""
        if self._newest is None:
            self._newest = {place: item for place, (item, _) in newest_checkpoints(self._lake, self.flow.name).items()}
            self._unpublished = dict(self._newest)  # a process before this one may have died between the two
        living = self._generations(place[1] for place in self._newest)
        over = {place for place, item in self._newest.items() if living.get(place[1]) != item.target_generation}
        for place in over:
            self._translator.forget(place[1])
            del self._newest[place]
            self._unpublished.pop(place, None)
        return self._newest

    def _generations(self, topics: Iterable[str]) -> dict[str, int]:
        """The generations that topics are produced to; those without one are left out."""
        found = {topic: self._target_generation(topic) for topic in set(topics)}
        return {topic: generation for topic, generation in found.items() if generation is not None}

    def _movable(self) -> list[Checkpoint]:
        return [item for item in self._known().values() if not item.is_gone]

    def _still_movable(self, moves: Sequence[Checkpoint]) -> list[Checkpoint]:
        """Those whose target topic is the one that it was, as the target says now."""
        if not moves:
            return []
        self._check_targets()
        known = self._known()
        return [item for item in moves if item.place in known]

    def _publish(self, changed: Sequence[Checkpoint]) -> None:
        """What changed, and what an earlier round could not publish."""
        self._unpublished.update({row.place: row for row in changed})
        self._topic.publish(_published(item) for item in self._unpublished.values() if not item.is_gone)
        self._unpublished = {}

    def _write(self, rows: Sequence[Checkpoint], read_at: datetime | None = None) -> None:
        append_checkpoints(self._lake, self.flow.name, rows, read_at)
        self._known().update({row.place: row for row in rows})

    def _listing(self) -> Listing:
        """The source's groups, asked for again when the last answer is old enough."""
        settings = self.flow.settings
        old = time.monotonic() - self._listed_at >= settings.refresh_groups_interval_seconds
        if self._listed is None or self._listed.errors or (settings.refresh_groups_enabled and old):
            self._listed = self._source.listing()
            self._listed_at = time.monotonic()
        return self._listed

    def _mirrored_only(self, positions: Mapping[str, Mapping[Key, Committed]]) -> dict[Place, Committed]:
        topics = {topic for items in positions.values() for topic, _ in items}
        mirrored = {topic for topic in topics if self._mirrored(topic)}
        return {
            (group, topic, partition): position
            for group, items in positions.items()
            for (topic, partition), position in items.items()
            if topic in mirrored
        }

    def _begin_lives(self, topics: Iterable[str]) -> None:
        """What was translated of a topic's elder life says nothing about the newer one.

        Nor do rows of the lake tell of which life they are: those of a topic that has had more than one are not used.
        """
        newest = self._known()
        for topic in topics:
            life = self._life(topic)
            if self._lives.setdefault(topic, 0) != life:
                self._lives[topic] = life
                self._translator.forget(topic)
                self._newest = newest = {place: item for place, item in newest.items() if place[1] != topic}


def target_groups(admin: GroupAdmin, groups: Iterable[str]) -> tuple[dict[str, TargetGroup], list[str]]:
    """How groups stand on a cluster, and what it did not tell; groups that it did not tell about are left out.

    Positions of groups with members are not asked for: nothing is done to them.
    """
    wanted = sorted(set(groups))
    if not wanted:
        return {}, []
    listing = admin.listing()
    found = {group: TargetGroup(listing.states.get(group), {}) for group in wanted}
    told = admin.positions([group for group in wanted if not found[group].is_active])
    for group, positions in told.positions.items():
        found[group] = TargetGroup(listing.states.get(group), positions)
    left = {group: item for group, item in found.items() if group not in told.errors}
    return left, [*listing.errors, *told.errors.values()]


def _published(item: Checkpoint) -> PublishedCheckpoint:
    """As MirrorMaker 2's clients read it."""
    positions = item.source_position, item.target_position
    return PublishedCheckpoint(item.group_id, item.target_topic, item.partition, *positions, item.metadata)


def by_group(checkpoints: Iterable[Checkpoint]) -> dict[str, dict[Key, Committed]]:
    """Positions to set on the target, by group."""
    moves: dict[str, dict[Key, Committed]] = {}
    for item in checkpoints:
        moves.setdefault(item.group_id, {})[item.target] = Committed(item.target_position, item.metadata)
    return moves


def _kept(item: Checkpoint, decision: Keep) -> Checkpoint:
    return noted(item, decision.there, None if decision.there else decision.reason)


def _at_target(item: Checkpoint) -> tuple[str, str, int]:
    return item.group_id, item.target_topic, item.partition
