"""What mirrorlake asks of and does to a cluster, apart from records: metadata, offsets, topics and partitions."""

import logging
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ClusterMetadata,
    ListOffsetsResultInfo,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from mirrorlake.core.survey import Key, LogEnds
from mirrorlake.errors import AuthenticationFailed, ClusterUnreachable, TargetRefused, TopologyError
from mirrorlake.kafka.refusals import is_refusal, reason_of, refusal_text

logger = logging.getLogger(__name__)

#: How long a cluster may take to answer before it counts as unreachable, seconds.
ANSWER_SECONDS = 15.0
#: What one request to create topics may hold: far less than the 10,000 records that a KRaft controller takes at a time.
_TOPICS_PER_REQUEST, _PARTITIONS_PER_REQUEST = 100, 2000


@dataclass(frozen=True)
class TopicInfo:
    """A topic as its cluster describes it; `factor` is the replication factor of its first partition.

    `configs` are those to create it with; they are not filled when a cluster describes its topics. `leaderless` are the
    partitions that nobody can read now.
    """

    name: str
    partitions: int
    factor: int
    configs: Mapping[str, str] = field(default_factory=dict, hash=False)
    leaderless: frozenset[int] = frozenset()


@dataclass(frozen=True)
class TopicIdentity:
    """Kafka's id of a topic, and how many partitions it has."""

    topic_id: str
    partitions: int


class ClusterAdmin:
    """One cluster, asked through one admin client. Every call is bounded by ANSWER_SECONDS.

    Raises ClusterUnreachable or AuthenticationFailed when nobody answers.
    """

    def __init__(self, alias: str, client: Mapping[str, str | int | bool]) -> None:
        self.alias = alias
        self.address = str(client["bootstrap.servers"])
        self._settings = client
        self._refusal: KafkaError | None = None
        self._last: KafkaError | None = None
        self._refused = threading.Event()
        try:
            self._client = AdminClient({**client, "error_cb": self._on_error, "logger": logger})
        except KafkaException as error:
            raise TopologyError(
                f"the settings of cluster {alias} cannot be used ({reason_of(error.args[0])}); check its security "
                "block and its client settings",
                alias=alias,
            ) from None

    def _on_error(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._last = error
        if is_refusal(error):
            self._refusal = error
            self._refused.set()

    @property
    def client(self) -> AdminClient:
        """The admin client itself, for `admin_configs` and `admin_acls`."""
        return self._client

    def cluster_id(self) -> str:
        """The broker's own cluster id: the identity of the cluster, whatever its alias."""
        return str(self._metadata().cluster_id)

    def broker_count(self) -> int:
        """Brokers that are up."""
        return len(self._metadata().brokers)

    def topics(self) -> dict[str, TopicInfo]:
        """All topics by name."""
        found = {}
        for name, topic in self._metadata().topics.items():
            if topic.error is None and topic.partitions:
                factor = len(topic.partitions[min(topic.partitions)].replicas)
                leaderless = frozenset(number for number, place in topic.partitions.items() if place.leader < 0)
                found[name] = TopicInfo(name, len(topic.partitions), factor, leaderless=leaderless)
        return found

    def _metadata(self) -> ClusterMetadata:
        """Cluster metadata; asked in short steps, so that a refused login is told at once and not after the timeout."""
        step = 2.0
        waited = 0.0
        while True:
            try:
                return self._client.list_topics(timeout=step)
            except KafkaException as error:
                self._client.poll(0)
                waited += step
                if self._refused.is_set() or waited >= ANSWER_SECONDS:
                    raise self._unanswered(error, waited) from error

    def _unanswered(self, error: KafkaException, waited: float) -> ClusterUnreachable | AuthenticationFailed:
        if self._refusal is not None:
            return AuthenticationFailed(
                f"cluster {self.alias} at {self.address} cannot be used: {refusal_text(self._refusal, self._settings)}",
                alias=self.alias,
                address=self.address,
            )
        return ClusterUnreachable(
            f"cluster {self.alias} does not answer at {self.address} within {waited:.0f} s "
            f"({reason_of(self._last or error.args[0])}); check bootstrap_servers, and that the brokers run",
            alias=self.alias,
            address=self.address,
            seconds=waited,
        )

    def start_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The first offset still there, of each (topic, partition)."""
        return self._offsets(partitions, OffsetSpec.earliest())

    def end_offsets(self, partitions: Iterable[tuple[str, int]], committed: bool = True) -> dict[tuple[str, int], int]:
        """The offset after the last record; with `committed` the last stable offset (read_committed)."""
        return self._offsets(partitions, OffsetSpec.latest(), committed)

    def log_ends(self, partitions: Collection[Key]) -> dict[Key, LogEnds]:
        """What is there of some partitions, up to the high watermark; those that do not answer are missing."""
        starts = self._asked(partitions, OffsetSpec.earliest(), False)
        ends = self._asked(partitions, OffsetSpec.latest(), False)
        found = {}
        for key in partitions:
            try:
                start, end = starts[key].result(), ends[key].result()
            except KafkaException as error:
                logger.warning("cluster %s: offsets of %s-%d: %s", self.alias, *key, reason_of(error.args[0]))
                continue
            epoch = end.leader_epoch
            found[key] = LogEnds(start.offset, end.offset, None if epoch is None or epoch < 0 else epoch)
        return found

    def _offsets(
        self, partitions: Iterable[tuple[str, int]], spec: OffsetSpec, committed: bool = True
    ) -> dict[tuple[str, int], int]:
        futures = self._asked(partitions, spec, committed)
        return {key: future.result().offset for key, future in futures.items()}

    def _asked(
        self, partitions: Iterable[tuple[str, int]], spec: OffsetSpec, committed: bool
    ) -> dict[tuple[str, int], "Future[ListOffsetsResultInfo]"]:
        request = {TopicPartition(topic, partition): spec for topic, partition in partitions}
        if not request:
            return {}
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        futures = self._client.list_offsets(request, isolation_level=level, request_timeout=ANSWER_SECONDS)
        return {(key.topic, key.partition): future for key, future in futures.items()}

    def create_topics(self, topics: Sequence[TopicInfo]) -> None:
        """As `try_create_topics`; raises the first refusal, after all have been tried."""
        for refusal in self.try_create_topics(topics):
            raise refusal

    def try_create_topics(self, topics: Sequence[TopicInfo]) -> list[TargetRefused]:
        """Create topics with their configs and wait until they can be written. One that is there already is no error.

        A topic whose configs the cluster does not accept is made without them. Returns the refusals, each with its
        topic; the others are made.
        """
        refused: list[TargetRefused] = []
        plain = [topic for chunk in _chunks(topics) for topic in self._create(chunk, refused)]
        for chunk in _chunks([replace(topic, configs={}) for topic in plain]):
            self._create(chunk, refused)
        return refused

    def _create(self, topics: Sequence[TopicInfo], refused: list[TargetRefused]) -> list[TopicInfo]:
        """One request; returns the topics whose configs were not accepted, adds other refusals to `refused`."""
        futures = self._client.create_topics(
            [
                NewTopic(
                    topic.name,
                    num_partitions=topic.partitions,
                    replication_factor=topic.factor,
                    config=dict(topic.configs),
                )
                for topic in topics
            ],
            operation_timeout=ANSWER_SECONDS,
            request_timeout=2 * ANSWER_SECONDS,
        )
        without = []
        for topic in topics:
            try:
                self._finish(
                    futures[topic.name],
                    f"cannot create topic {topic.name}",
                    topic.name,
                    KafkaError.TOPIC_ALREADY_EXISTS,
                )
            except TargetRefused as error:
                if error.facts["reason"] == "INVALID_CONFIG" and topic.configs:
                    without.append(topic)
                else:
                    refused.append(error)
        return without

    def add_partitions(self, topic: str, partitions: int) -> None:
        """Raise a topic's partition count to `partitions`. Raises TargetRefused."""
        futures = self._client.create_partitions([NewPartitions(topic, partitions)], request_timeout=2 * ANSWER_SECONDS)
        for name, future in futures.items():
            self._finish(future, f"cannot raise topic {name} to {partitions} partitions", name)

    def _finish(self, future, what: str, topic: str, allowed: int | None = None) -> None:  # type: ignore[no-untyped-def]
        try:
            future.result()
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if reason.code() == allowed:
                return
            raise TargetRefused(
                f"{what} on cluster {self.alias}: {reason_of(reason)}",
                alias=self.alias,
                topic=topic,
                reason=reason.name(),
            ) from error

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """Topic ids by name: a topic that was deleted and made again has another one. One that is gone has none."""
        found, missing = self.identities(topics)
        for name in set(topics) - found.keys() - missing:
            raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, f"{name} may not be described"))
        return {name: topic.topic_id for name, topic in found.items()}

    def identities(self, topics: Sequence[str]) -> tuple[dict[str, TopicIdentity], frozenset[str]]:
        """Topics by name, and the names that no topic has. What these clients may not see is in neither."""
        if not topics:
            return {}, frozenset()
        futures = self._client.describe_topics(TopicCollection(list(topics)), request_timeout=ANSWER_SECONDS)
        found, missing = {}, set()
        for name, future in futures.items():
            try:
                topic = future.result()
                found[name] = TopicIdentity(str(topic.topic_id), len(topic.partitions))
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    missing.add(name)
                elif code in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT):
                    raise self._unanswered(error, ANSWER_SECONDS) from error
                elif code != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise
        return found, frozenset(missing)


def _chunks(topics: Sequence[TopicInfo]) -> Iterator[list[TopicInfo]]:
    """Cut topics into requests (KAFKA-9218: one request for all is refused as a whole when it is too large)."""
    chunk: list[TopicInfo] = []
    partitions = 0
    for topic in topics:
        if chunk and (len(chunk) == _TOPICS_PER_REQUEST or partitions + topic.partitions > _PARTITIONS_PER_REQUEST):
            yield chunk
            chunk, partitions = [], 0
        chunk.append(topic)
        partitions += topic.partitions
    if chunk:
        yield chunk
