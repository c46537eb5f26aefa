"""Queries and changes of a cluster but for records: metadata, offsets, topics, partitions."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import OffsetSpec

from mirrorlake.errors import ReplicationError, TargetRefused
from mirrorlake.kafka import access, admin_offsets, admin_topics
from mirrorlake.kafka.admin_connection import ANSWER_SECONDS, AdminConnection
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.kafka.quick_admin import QuickAdmin
from mirrorlake.kafka.refusals import not_described, reason_of
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.kafka.values import TopicIdentity, TopicInfo
from mirrorlake.native.layouts import Layout
from mirrorlake.offsets.positions import LogEnd, LogEnds, TopicAndPartition

logger = logging.getLogger(__name__)


class ClusterAdmin:
    """One cluster, asked through one admin client. Every call is bounded by ANSWER_SECONDS.

    Live settings are checked again after a refusal and from time to time; a client with rotated
    secrets is replaced. Raises ClusterUnreachable or AuthenticationFailed when no broker answers.
    """

    def __init__(self, alias: str, client: "Settings | LiveSettings[str | int | bool]") -> None:
        self.alias = alias
        live = client if isinstance(client, LiveSettings) else LiveSettings(lambda: client)
        self._connection = AdminConnection(alias, live)
        self._shown: tuple[Layout, Mapping[str, TopicInfo]] | None = None

    @property
    def address(self) -> str:
        """The cluster's bootstrap servers."""
        return self._connection.address

    @property
    def client(self) -> QuickAdmin:
        """For `admin_configs` and `admin_acls`. Get it for each call: it is replaced."""
        return self._connection.connected().client

    def cluster_id(self) -> str:
        """The broker's own cluster id: the identity of the cluster, whatever its alias."""
        return str(self._connection.metadata().cluster_id)

    def known_brokers(self) -> int:
        """How many brokers are up or have replicas: one that restarts is away only for a moment."""
        metadata = self._connection.metadata()
        replicas = (topic.replicas.values() for topic in metadata.topics.values())
        return len({*metadata.brokers, *chain.from_iterable(chain.from_iterable(replicas))})

    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each broker that is up, as the cluster advertises it to clients."""
        brokers = self._connection.metadata().brokers
        return [address for _, address in sorted(brokers.items())]

    def registered_brokers(self, name: str, asked: int) -> int:
        """How many brokers a new topic can count on, up to `asked`, also those that are down.

        Metadata names only brokers that are up. A KRaft controller places replicas on all that are
        registered, so it is asked if it would make topic `name` with more; none is made.
        """
        known = self.known_brokers()
        if asked <= known:
            return asked
        lowest, highest = known, asked
        while lowest < highest:
            middle = (lowest + highest + 1) // 2
            if admin_topics.would_make(self._connection, name, middle):
                lowest = middle
            else:
                highest = middle - 1
        return lowest

    def topics(self) -> Mapping[str, TopicInfo]:
        """All topics by name; the same object as before if nothing has changed."""
        layout, shown = self._connection.metadata(), self._shown
        if shown is None or shown[0] is not layout:
            shown = self._shown = layout, _infos(layout)
        return shown[1]

    def leaders(
        self, partitions: Iterable[TopicAndPartition]
    ) -> dict[tuple[str, int], list[TopicAndPartition]]:
        """Partitions by the address (host, port) of their leader; those without one are missing."""
        metadata = self._connection.metadata()
        by_broker: dict[tuple[str, int], list[TopicAndPartition]] = {}
        for topic, number in partitions:
            known = metadata.topics.get(topic)
            leader = -1 if known is None else known.leaders.get(number, -1)
            if leader in metadata.brokers:
                by_broker.setdefault(metadata.brokers[leader], []).append((topic, number))
        return by_broker

    def start_offsets(
        self, partitions: Iterable[TopicAndPartition], skip_silent: bool = False
    ) -> dict[TopicAndPartition, int]:
        """The first offset still there, of each (topic, partition). Raises KafkaException where a
        leader does not answer; with `skip_silent` its partitions are missing."""
        return self._offsets(partitions, OffsetSpec.earliest(), True, skip_silent)

    def end_offsets(
        self,
        partitions: Iterable[TopicAndPartition],
        committed: bool = True,
        skip_silent: bool = False,
    ) -> dict[TopicAndPartition, int]:
        """The offset after the last record; with `committed` the last stable offset
        (read_committed). Silent leaders are handled as in `start_offsets`."""
        return self._offsets(partitions, OffsetSpec.latest(), committed, skip_silent)

    def request_ends(self, partitions: Iterable[TopicAndPartition]) -> admin_offsets.OffsetRequests:
        """Request last stable offsets without waiting; see `arrived`."""
        return admin_offsets.ask(self._connection, partitions, OffsetSpec.latest(), True)

    def arrived(self, asked: admin_offsets.OffsetRequests) -> dict[TopicAndPartition, int]:
        """The offsets of the requests answered so far; partitions without one are missing."""
        return admin_offsets.arrived(self._connection, asked, admin_offsets.offsets_of)[0]

    def _offsets(
        self,
        partitions: Iterable[TopicAndPartition],
        spec: OffsetSpec,
        committed: bool,
        skip_silent: bool,
    ) -> dict[TopicAndPartition, int]:
        asked = admin_offsets.ask(self._connection, partitions, spec, committed)
        if skip_silent:
            return admin_offsets.answers(self._connection, asked, admin_offsets.offsets_of)
        return admin_offsets.required(asked)

    def log_ends(
        self, partitions: Collection[TopicAndPartition]
    ) -> dict[TopicAndPartition, LogEnds]:
        """The logs of partitions up to the high watermark, without those that do not answer."""
        connection, first, last = self._connection, OffsetSpec.earliest(), OffsetSpec.latest()
        asked = [admin_offsets.ask(connection, partitions, spec, False) for spec in (first, last)]
        starts = admin_offsets.answers(connection, asked[0], admin_offsets.offsets_of)
        ends = admin_offsets.answers(connection, asked[1], admin_offsets.ends_of)
        return {
            key: LogEnds(starts[key], *ends[key])
            for key in partitions
            if key in starts and key in ends
        }

    def high_watermarks(
        self, partitions: Collection[TopicAndPartition]
    ) -> dict[TopicAndPartition, LogEnd]:
        """Where the logs of some partitions end; those that do not answer are missing."""
        asked = admin_offsets.ask(self._connection, partitions, OffsetSpec.latest(), False)
        return admin_offsets.answers(self._connection, asked, admin_offsets.ends_of)

    def written_since(
        self, partitions: Collection[TopicAndPartition], at_ms: int
    ) -> dict[TopicAndPartition, bool]:
        """Whether each partition has a record of that time (ms) or later; those whose leader does
        not answer are missing. Brokers before Kafka 3.0 do not know a newest time (KIP-734): they
        take it for a time before all, and answer with the oldest."""
        spec = OffsetSpec.for_timestamp(at_ms)
        asked = {key: admin_offsets.ask(self._connection, [key], spec, False) for key in partitions}
        written = {}
        for key, question in asked.items():
            try:
                written[key] = bool(admin_offsets.required(question))
            except KafkaException as error:
                why = reason_of(error.args[0])
                logger.info("cluster %s: times of %s-%d: %s", self.alias, *key, why)
        return written

    def offsets_at(
        self, partitions: Iterable[TopicAndPartition], at_ms: int
    ) -> dict[TopicAndPartition, int]:
        """The first offset of each partition with a record of that time (ms) or later; partitions
        without one are missing. Raises KafkaException if a leader does not answer, since its
        partitions are then unknown."""
        asked = admin_offsets.ask(
            self._connection, partitions, OffsetSpec.for_timestamp(at_ms), True
        )
        return admin_offsets.required(asked)

    def create_topics(self, topics: Sequence[TopicInfo]) -> None:
        """As `try_create_topics`; raises the first refusal, after all have been tried."""
        for refusal in self.try_create_topics(topics):
            raise refusal

    def try_create_topics(
        self, topics: Sequence[TopicInfo], not_kept: admin_topics.NotKept | None = None
    ) -> list[TargetRefused]:
        """Create topics with their configs and wait until they can be written. A topic that exists
        already is not an error.

        Configs that the cluster does not accept are left out, key by key; `not_kept` gets them,
        each with its value and the cluster's error. Requests that take too long are tried again. A
        replication factor of -1 is the cluster's default. Returns the refusals, each with its
        topic; the other topics are made.
        """
        return admin_topics.create_topics(self._connection, topics, not_kept)

    def add_partitions(self, topic: str, partitions: int) -> None:
        """Raise a topic's partition count to `partitions`. Raises TargetRefused."""
        admin_topics.add_partitions(self._connection, topic, partitions)

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """Topic ids by name: a topic that was deleted and made again has a new one, and a topic
        that is gone has none. Raises ReplicationError for a topic that is not described."""
        identities, missing, odd = self._identities(topics)
        for name in sorted(set(topics) - identities.keys() - missing):
            raise ReplicationError(
                f"topic {name} is not described by cluster {self.alias}: {odd[name]}"
                if name in odd
                else f"topic {name} may not be described at cluster {self.alias}; grant DESCRIBE "
                "on it",
                topic=name,
            )
        return {name: topic.topic_id for name, topic in identities.items()}

    def identities(self, topics: Sequence[str]) -> tuple[dict[str, TopicIdentity], frozenset[str]]:
        """Topics by name, and the names without a topic. Topics that these clients may not see, or
        that the cluster does not describe, are in neither."""
        identities, missing, odd = self._identities(topics)
        if odd:
            logger.warning("%s", not_described(f"cluster {self.alias}", odd))
        return identities, missing

    def _identities(
        self, topics: Sequence[str]
    ) -> tuple[dict[str, TopicIdentity], frozenset[str], Mapping[str, str]]:
        """`identities`, and the cluster's answers about topics that it does not describe."""
        if not topics:
            return {}, frozenset(), {}
        connection = self._connection.connected()
        try:
            answers = access.answers_about(connection.client, topics)
        except KafkaException as error:
            if error.args[0].code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT):
                raise self._connection.unanswered(connection, error, ANSWER_SECONDS) from error
            raise
        identities, missing, odd = {}, set(), {}
        for name, topic in answers.items():
            if not isinstance(topic, KafkaError):
                identities[name] = TopicIdentity(str(topic.topic_id), len(topic.partitions))
            elif (answer := access.undescribed(topic)) == access.GONE:
                missing.add(name)
            elif answer.error is not None:
                odd[name] = answer.error
        return identities, frozenset(missing), odd


def _infos(layout: Layout) -> Mapping[str, TopicInfo]:
    infos = {}
    for name, topic in layout.topics.items():
        if not topic.error and topic.leaders:
            factor = len(topic.replicas[min(topic.leaders)])
            leaderless = frozenset(number for number, at in topic.leaders.items() if at < 0)
            infos[name] = TopicInfo(name, len(topic.leaders), factor, leaderless=leaderless)
    return infos
