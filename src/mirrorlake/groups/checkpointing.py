"""A turn of a flow's consumer groups at the source: checkpoints of what they have committed.

It queries the source once for each group, translates all new positions in one statement, and writes
what changed. The newest checkpoints are read from the lake at the start and then kept in memory, so
a turn in which nothing moved writes nothing.
"""

import logging
import sys
import time
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import NamedTuple

from mirrorlake import failpoints
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import MirrorlakeError, ReplicationError
from mirrorlake.groups import logs
from mirrorlake.groups.checkpoint_plan import (
    OTHER_KIND,
    Checkpoint,
    GroupPartition,
    plan_checkpoints,
    selects_group,
    to_translate,
)
from mirrorlake.groups.left_out import LeftOutGroups
from mirrorlake.groups.logs import LogStarts
from mirrorlake.groups.named_groups import not_reported
from mirrorlake.groups.newest_checkpoints import NewestCheckpoints
from mirrorlake.groups.passed_over import RunningPassedOver
from mirrorlake.groups.readable import Sides, readable_positions
from mirrorlake.groups.shared_topics import Direction, joined
from mirrorlake.kafka.groups import GroupAdmin, GroupPositions, Listing
from mirrorlake.lake.deployment import Deployment
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

#: By group and partition, as a cluster reported them.
PositionsOfGroups = Mapping[str, Mapping[TopicAndPartition, Committed]]


class Split(NamedTuple):
    """Positions in mirrored logs, their partitions, and the keys of all other positions."""

    committed: Mapping[GroupPartition, Committed]
    places: Set[TopicAndPartition]
    elsewhere: Set[GroupPartition]


class SplitPositions:
    """Caches what follows from a cluster's answer, which must not be modified: an equal answer
    yields the same objects. For one thread."""

    def __init__(self) -> None:
        self._last: PositionsOfGroups | None = None
        self._topics: frozenset[str] = frozenset()
        self._within: tuple[Set[str], Mapping[TopicAndPartition, int]] = frozenset(), {}
        self._split: Split | None = None

    def topics(self, reported: PositionsOfGroups) -> frozenset[str]:
        """The topics in which there are positions."""
        if reported != self._last:
            self._last, self._split = reported, None
            self._topics = frozenset(key[0] for positions in reported.values() for key in positions)
        return self._topics

    def split(
        self, reported: PositionsOfGroups, topics: Set[str], since: Mapping[TopicAndPartition, int]
    ) -> Split:
        """Split positions by whether they are in these topics, and not behind the offset since
        which the log of their partition is another one."""
        self.topics(reported)
        if self._split is None or (topics, since) != self._within:
            everything = {
                (group, *place): position
                for group, positions in reported.items()
                for place, position in positions.items()
            }
            committed = {
                key: at
                for key, at in everything.items()
                if key[1] in topics and at.offset <= since.get(key[1:], at.offset)
            }
            places = frozenset(key[1:] for key in committed)
            self._within = topics, since
            self._split = Split(committed, places, everything.keys() - committed.keys())
        return self._split


class ListedGroups:
    """Groups of a source, asked for again in time. For one thread. Raises ClusterUnreachable."""

    def __init__(self, flow: ResolvedFlow, source: GroupAdmin) -> None:
        self._flow = flow
        self._source = source
        self._listed: Listing | None = None
        self._listed_at = float("-inf")
        #: Groups that are no consumer groups; None where that is not known.
        self.other_kinds: frozenset[str] | None = None
        self._told: frozenset[str] = frozenset()

    def listing(self) -> Listing:
        """The newest answer; one with errors is not kept."""
        settings = self._flow.settings
        old = time.monotonic() - self._listed_at >= settings.refresh_groups_interval_seconds
        if self._listed is None or self._listed.errors or (settings.refresh_groups_enabled and old):
            self._listed = self._source.listing()
            self._listed_at = time.monotonic()
            self.other_kinds = self._source.other_kinds(self._listed)
            self._tell_other_kinds(self.other_kinds or self._told)
        return self._listed

    def _tell_other_kinds(self, groups: frozenset[str]) -> None:
        for group in sorted(groups - self._told):
            if selects_group(self._flow.settings, group):
                logger.warning(
                    "flow %s leaves out group %s, which is %s", self._flow.name, group, OTHER_KIND
                )
        self._told = groups


class Checkpointing:
    """Writes the checkpoints of one flow. For one thread, the same as `newest`."""

    def __init__(
        self,
        flow: ResolvedFlow,
        deployment: Deployment,
        newest: NewestCheckpoints,
        mirror_starts: LogStarts,
        topic: CheckpointTopic,
    ) -> None:
        """`topic` publishes the checkpoints for MirrorMaker 2's clients."""
        self._flow = flow
        self._lake = deployment.lake
        self._connections = connections = deployment.connections
        self._newest = newest
        self._mirror_starts = mirror_starts
        self._topic = topic
        self._translator = Translator(deployment.lake, flow.name)
        self._passed_over = RunningPassedOver(flow.name, deployment.lake, newest.running)
        newest.forgotten_by.append(self._translator.forget)
        source = connections.admin(flow.source)
        self._sides = Sides(
            self._translate,
            partial(logs.starts, source),
            partial(logs.ends, source, committed=False),
            self._mirrors,
        )
        self._source = connections.groups(flow.source)
        self._listed = ListedGroups(flow, self._source)
        self._left_out = LeftOutGroups(flow, self._lake, self._source, newest.running)
        self._split = SplitPositions()
        #: Partitions with checkpoints in an earlier target topic, as under another policy; None:
        #: not looked for yet. Once it is known how far the flow is, those behind all of its
        #: records lead into the topic of now.
        self._moved_on: set[TopicAndPartition] | None = None
        self._knows_reached = False
        self._committed: Mapping[GroupPartition, Committed] = {}
        #: The inputs of the last turn with nothing to write: a turn with equal inputs is skipped,
        #: however many positions there are.
        self._nothing_by: object = None

    def positions(self) -> dict[GroupPartition, int]:
        """Where groups stood at the newest turn. For any thread."""
        return {key: position.offset for key, position in self._committed.items()}

    def checkpoint(self) -> list[Checkpoint]:
        """Translate what groups have committed since the last turn; return the rows written.

        Raises ClusterUnreachable when a cluster is silent, and ReplicationError when some groups
        were not reported; the rows of the other groups are written, and published, first.
        """
        listing = self._listed.listing()
        # Groups no longer listed are queried too: only their coordinator knows if they are gone.
        self._newest.known()
        known, settings = self._newest.groups, self._flow.settings
        groups = [
            group for group in known | listing.states.keys() if selects_group(settings, group)
        ]
        read_at = datetime.now(timezone.utc)
        reported = self._source.positions(groups)
        changed = self._changed(reported)
        self._newest.write(changed, read_at)
        self._newest.unpublished.update({row.group_partition: row for row in changed})
        # groups that were not reported are translated once they are
        unseen = self._newest.places_of(reported.errors)
        self._passed_over.seen(but=unseen)
        if self._moved_on and self._knows_reached:
            self._moved_on &= unseen
        failpoints.reached("checkpointed")
        self._left_out.note(listing, self._listed.other_kinds)
        unreported = self._unreported([*listing.errors, *not_reported(reported.errors)])
        try:
            self._publish()
        except MirrorlakeError as refused:
            if unreported is not None:
                raise ReplicationError(f"{refused}; and {unreported}") from refused
            raise
        if unreported is not None:
            raise unreported
        return changed

    def _unreported(self, problems: Sequence[str]) -> ReplicationError | None:
        if not problems:
            return None
        return ReplicationError(
            f"cluster {self._flow.source} did not report the positions of some groups "
            f"({'; '.join(problems)}); their checkpoints stay as they are, and they are asked "
            "for again"
        )

    def _changed(self, reported: GroupPositions) -> list[Checkpoint]:
        """The rows to write. A position in a topic that was made again, or behind where a log went
        back, lies in another log than the map's, until an operator lets a new generation begin."""
        by_group, running = reported.positions, self._newest.running
        others = running.other_logs()
        topics = self._split.topics(by_group) - others.topics
        mirrored = frozenset(topic for topic in topics if running.mirrors(topic))
        places = self._split.split(by_group, mirrored, others.since).places
        self._newest.begin_generations(places)
        newest = self._newest.known()
        # Read before the translation: rows of a generation that ends meanwhile are discarded.
        generations = self._newest.generations(mirrored | self._newest.topics)
        committed, _, elsewhere = self._split.split(
            by_group, mirrored & generations.keys(), others.since
        )
        self._committed = committed
        all_reported = by_group.keys() - reported.errors.keys()
        other = self._translated_anew(newest) if committed else frozenset()
        seen = self._newest.revision, committed, generations, all_reported, elsewhere
        if seen == self._nothing_by and not other:
            return []
        wanted = to_translate(committed, newest, other)
        translated = readable_positions(wanted, self._sides) if wanted else {}
        changed = [
            replace(
                row,
                target_generation=generations[row.topic],
                generation=self._newest.landed[row.topic, row.partition],
            )
            for row in plan_checkpoints(
                committed, translated, newest, asked=all_reported, elsewhere=elsewhere, other=other
            )
            if row.topic in generations
        ]
        self._nothing_by = None if wanted or changed else seen
        return changed

    def _translated_anew(
        self, newest: Mapping[GroupPartition, Checkpoint]
    ) -> Set[TopicAndPartition]:
        """Partitions whose positions are translated once more, wherever groups stand."""
        if self._moved_on is None:
            self._moved_on = {
                key[1:]
                for key, row in newest.items()
                if row.has_counterpart and row.target_topic != self._flow.target_topic(row.topic)
            }
        return self._passed_over.changed() | self._moved_on

    def _translate(
        self, asked: Collection[TopicPartitionOffset]
    ) -> dict[TopicPartitionOffset, Translated]:
        places = {(topic, partition) for topic, partition, _ in asked}
        reached = self._newest.running.reached(places)
        self._knows_reached = reached is not None
        translated = self._translator.translate(asked, reached)
        topology = self._connections.topology
        together = joined(self._lake.now, topology, Direction(self._flow), translated)
        return self._passed_over.counted(together)

    def _mirrors(self, wanted: Collection[TopicAndPartition]) -> dict[TopicAndPartition, LogEnds]:
        """Where mirrors begin. Their ends do not matter: the map never leads behind them, as
        offsets that the target loses are taken out of it."""
        starts = self._mirror_starts.offsets_of(wanted)
        return {key: LogEnds(start, sys.maxsize) for key, start in starts.items()}

    def _publish(self) -> None:
        """Publish what changed, also what an earlier turn could not publish."""
        there = [
            checkpoint
            for checkpoint in self._newest.unpublished.values()
            if checkpoint.has_counterpart and not checkpoint.is_gone
        ]
        self._topic.publish(map(_published, there))
        self._newest.unpublished = {}


def _published(checkpoint: Checkpoint) -> PublishedCheckpoint:
    """As MirrorMaker 2's clients read it."""
    return PublishedCheckpoint(
        checkpoint.group_id,
        *checkpoint.target,
        checkpoint.source_position,
        checkpoint.target_position,
        checkpoint.metadata,
    )
