"""A flow's topics in MirrorMaker 2's formats, so that its clients work (docs/mirror_clients.md)."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from confluent_kafka import KafkaException

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import MirrorlakeError, TargetRefused
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.changes import Change, ChangeLog, ChangeOutcome
from mirrorlake.mm2.formats import (
    Heartbeat,
    MirrorCheckpoint,
    OffsetSync,
    encode_checkpoint,
    encode_heartbeat,
    encode_offset_sync,
)
from mirrorlake.mm2.heartbeat_topics import holds_other_records
from mirrorlake.mm2.internal_topics import InternalTopic
from mirrorlake.mm2.topics import checkpoints_topic, offset_syncs_place
from mirrorlake.naming.policy import HEARTBEATS

logger = logging.getLogger(__name__)


class CheckpointTopic:
    """The topic `<source>.checkpoints.internal` on a flow's target. Not thread-safe."""

    def __init__(self, flow: ResolvedFlow, connections: Connections, log: ChangeLog) -> None:
        settings = flow.settings
        self.enabled = settings.emit_checkpoints_enabled
        name, factor = checkpoints_topic(flow), settings.checkpoints_topic_replication_factor
        self._topic = _topic(flow, connections, log, flow.target, name, factor=factor)
        self._flow, self._log = flow, log
        self._looked_at = False  # whether `compact` was called
        self._written: dict[bytes, bytes] = {}
        self._lost: dict[bytes, bytes] = {}  # records written to a topic that is gone

    @property
    def name(self) -> str:
        """Name of the topic."""
        return self._topic.name

    def publish(self, checkpoints: Iterable[MirrorCheckpoint]) -> int:
        """Write the checkpoints that differ from the last one written for their group and
        partition.

        Creates the topic even without checkpoints: clients wait a minute for a missing topic. Does
        nothing if `emit_checkpoints_enabled` is false. Never writes a tombstone, which MirrorMaker
        2's clients cannot read: a deleted group keeps its last checkpoint. Negative positions mean
        none and are left out, as in MirrorMaker 2.

        Returns:
            The number of checkpoints written; all are acknowledged.

        Raises:
            ClusterUnreachable, AuthenticationFailed, TargetRefused: some may have been written;
                calling again writes all once more.
            InputError: the format cannot represent a name or metadata; nothing was written.
        """
        if not self.enabled:
            return 0
        wanted = dict(
            encode_checkpoint(checkpoint)
            for checkpoint in checkpoints
            if min(checkpoint.upstream, checkpoint.downstream) >= 0
        )
        if self._topic.replaced():
            self._begin_anew()
            self._looked_at = False
        if self._topic.ensure():
            self._begin_anew()
        elif not self._looked_at:
            self._keep()
        self._looked_at = True
        wanted = {**self._lost, **wanted}
        fresh = {key: value for key, value in wanted.items() if self._written.get(key) != value}
        if fresh:
            for key in fresh:
                self._written.pop(key, None)
            self._topic.write(list(fresh.items()))
            self._written.update(fresh)
        self._lost = {}
        return len(fresh)

    def _begin_anew(self) -> None:
        """The topic was created or recreated, so earlier records must be written again."""
        self._lost, self._written = {**self._lost, **self._written}, {}

    def _keep(self) -> None:
        """Compact a topic that a broker created because a client asked for it first: otherwise
        MirrorMaker 2's clients lose groups that have not moved for some days."""
        compacted = self._topic.compact()
        if compacted is None:
            return
        before, error = compacted
        change = Change(
            "config",
            self.name,
            before=f"cleanup.policy={before}",
            after="cleanup.policy=compact",
            outcome="done" if error is None else "refused",
            error=error,
        )
        if error is not None:
            logger.warning(
                "flow %s: topic %s on cluster %s deletes checkpoints (cleanup.policy %s), and it "
                "could not be set to compact: %s",
                self._flow.name, self.name, self._topic.alias, before, error,
            )  # fmt: skip
        self._log.record(self._flow.name, [change])


class OffsetSyncTopic:
    """The topic of a flow's offset syncs, `mm2-offset-syncs.<other>.internal`, on its source or
    target (KIP-716). Not thread-safe."""

    def __init__(self, flow: ResolvedFlow, connections: Connections, log: ChangeLog) -> None:
        self._flow, self._log = flow, log
        alias, name = offset_syncs_place(flow)
        factor = flow.settings.offset_syncs_topic_replication_factor
        self._topic = _topic(flow, connections, log, alias, name, factor=factor, making=self._begin)
        self._replaced = False  # since `ensure` said so last

    @property
    def name(self) -> str:
        """Name of the topic."""
        return self._topic.name

    def ensure(self) -> bool:
        """Create the topic; return whether it was created or replaced, and so lacks all earlier
        syncs. A topic that the flow did not create is left alone: MirrorMaker 2's readers could not
        tell whose pairs it contains.

        Raises:
            ClusterUnreachable, AuthenticationFailed, TargetRefused: as for any topic; or not ours.
        """
        self._replaced = self._topic.replaced() or self._replaced
        made = self._topic.ensure() or self._is_of_one_that_died()
        if not made and "done" not in self._noted():
            raise TargetRefused(
                f"topic {self.name} on cluster {self._topic.alias} was not made by flow "
                f"{self._flow.name}, so it gets no offset syncs: stop what writes it, MirrorMaker "
                "2 perhaps, and delete it, or set emit_offset_syncs_enabled: false",
                topic=self.name,
            )
        is_new, self._replaced = made or self._replaced, False
        return is_new

    def _begin(self, alias: str, topic: TopicInfo) -> None:
        """Record that the topic is about to be made: it is known as ours if this process dies."""
        if not self._noted():
            self._log.record(self._flow.name, [_made(self._flow, alias, topic, "begun")])

    def _is_of_one_that_died(self) -> bool:
        """Whether a process made the topic, died, and neither noted nor wrote to it; note it."""
        noted = self._noted()
        if noted.keys() != {"begun"} or not self._topic.is_empty():
            return False
        self._log.record(self._flow.name, [replace(noted["begun"], outcome="done")])
        return True

    def _noted(self) -> dict[ChangeOutcome, Change]:
        """The recorded outcomes of creating the topic."""
        resource = _resource(self._flow, self._topic.alias, self.name)
        history = self._log.history(self._flow.name, "topic")
        return {change.outcome: change for change in history if change.resource == resource}

    def publish(self, syncs: Sequence[OffsetSync]) -> None:
        """Write syncs in order; all are acknowledged. Raises as `ensure`, and InputError for a name
        that the format cannot represent."""
        if syncs:
            self._topic.write([encode_offset_sync(sync) for sync in syncs])


class Heartbeats:
    """The topics `heartbeats` of both ends of a flow.

    The flow mirrors the source's like any other, to `<source>.heartbeats`: the newest record's age
    there measures the whole path. The same heartbeat is written to the target's topic, as
    MirrorMaker 2 does. A topic of that name with other records is an application's and gets none.
    """

    def __init__(self, flow: ResolvedFlow, connections: Connections, log: ChangeLog) -> None:
        self._flow = flow
        self._connections = connections
        self._looked_at: set[str] = set()
        factor = flow.settings.heartbeats_topic_replication_factor
        self._topics = [
            _topic(flow, connections, log, alias, HEARTBEATS, factor=factor)
            for alias in (flow.source, flow.target)
        ]

    def missing(self) -> list[tuple[str, TopicInfo]]:
        """The topics that the first heartbeat would create, each with its cluster's alias; changes
        nothing. Raises ClusterUnreachable, AuthenticationFailed."""
        answers = [(topic.alias, topic.missing()) for topic in self._topics]
        return [(alias, topic) for alias, topic in answers if topic is not None]

    def beat(self) -> Heartbeat:
        """Write a heartbeat to both ends and return it. A failure at one end does not affect the
        other.

        Raises:
            ClusterUnreachable, AuthenticationFailed, TargetRefused, KafkaException: after both have
                been tried.
        """
        heartbeat = Heartbeat(self._flow.source, self._flow.target, time.time_ns() // 1_000_000)
        record = encode_heartbeat(heartbeat)
        failed: list[MirrorlakeError | KafkaException] = []
        for topic in self._topics:
            try:
                self._look_at(topic)
                topic.write([record])
            except (MirrorlakeError, KafkaException) as error:
                failed.append(error)
        if failed:
            raise failed[0]
        return heartbeat

    def _look_at(self, topic: InternalTopic) -> None:
        """Raise TargetRefused if the topic has an application's records. Checks a cluster once."""
        alias = topic.alias
        if alias in self._looked_at:
            return
        settings = self._connections.client(alias, "consumer")
        if holds_other_records(self._connections.admin(alias), settings, topic.name):
            raise TargetRefused(
                f"topic {topic.name} of cluster {alias} holds records that are no heartbeats, so "
                f"it is an application's, and flow {self._flow.name} writes none there; say "
                "emit_heartbeats_enabled: false",
                topic=topic.name,
                reason="FOREIGN_RECORDS",
            )
        self._looked_at.add(alias)


def _topic(
    flow: ResolvedFlow,
    connections: Connections,
    log: ChangeLog,
    alias: str,
    name: str,
    *,
    factor: int | None,
    making: Callable[[str, TopicInfo], object] | None = None,
) -> InternalTopic:
    def made(where: str, topic: TopicInfo) -> None:
        logger.info("flow %s: made topic %s on %s", flow.name, topic.name, where)
        log.record(flow.name, [_made(flow, where, topic)])

    admin, producer = connections.admin(alias), connections.live(alias, "producer")
    return InternalTopic(admin, producer, name, factor, made, making=making)


def _made(
    flow: ResolvedFlow, alias: str, topic: TopicInfo, outcome: ChangeOutcome = "done"
) -> Change:
    shape = f"partitions={topic.partitions}, factor={topic.factor}"
    return Change("topic", _resource(flow, alias, topic.name), None, shape, outcome=outcome)


def _resource(flow: ResolvedFlow, alias: str, topic: str) -> str:
    """The name of a cluster's topic in the flow's `changes`."""
    return topic if alias == flow.target else f"{topic} on cluster {alias}"
