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

from mirrorlake.errors import AuthenticationFailed, ClusterUnreachable, TargetRefused, TopologyError
from mirrorlake.kafka.refusals import is_refusal, reason_of, refusal_text
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.offsets.positions import LogEnds, TopicAndPartition

logger = logging.getLogger(__name__)

#: How long a cluster may take to answer before it counts as unreachable, seconds.
ANSWER_SECONDS = 15.0
#: What one request to create topics may hold: far less than the 10,000 records that a KRaft controller takes at a time.
_TOPICS_PER_REQUEST, _PARTITIONS_PER_REQUEST = 100, 2000
#: How often a topic is asked for whose making came to no end in time, and what a cluster says then.
CREATE_TRIES = 3
_NOT_YET = frozenset(
    {"REQUEST_TIMED_OUT", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_TRANSPORT", "NOT_CONTROLLER", "THROTTLING_QUOTA_EXCEEDED"}
)


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


class _Connection:
    """An admin client with its settings, and what its cluster last complained of."""

    def __init__(self, alias: str, settings: Mapping[str, str | int | bool]) -> None:
        self.settings = settings
        self.refusal: KafkaError | None = None
        self.last: KafkaError | None = None
        self.refused = threading.Event()
        try:
            self.client = AdminClient({**settings, "error_cb": self._on_error, "logger": logger})
        except KafkaException as error:
            raise TopologyError(
                f"the settings of cluster {alias} cannot be used ({reason_of(error.args[0])}); check its security "
                "block and its client settings"
            ) from None

    def _on_error(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.last = error
        if is_refusal(error):
            self.refusal = error
            self.refused.set()


class ClusterAdmin:
    """One cluster, asked through one admin client. Every call is bounded by ANSWER_SECONDS.

    Live settings are checked again after a refusal and from time to time; a client whose secrets were rotated gives
    way to a new one. Raises ClusterUnreachable or AuthenticationFailed when nobody answers.
    """

    def __init__(self, alias: str, client: "Mapping[str, str | int | bool] | LiveSettings[str | int | bool]") -> None:
        self.alias = alias
        self._live = client if isinstance(client, LiveSettings) else LiveSettings(lambda: client)
        self.address = str(self._live.now["bootstrap.servers"])
        self._connection = _Connection(alias, self._live.now)
        self._use = threading.Lock()
        self._answered = False

    @property
    def client(self) -> AdminClient:
        """The admin client itself, for `admin_configs` and `admin_acls`; for one call, since another may follow it."""
        return self._connected().client

    def _connected(self) -> _Connection:
        with self._use:
            self._connection.client.poll(0)
            refused = self._connection.refused.is_set()
            if self._live.renewed(refused):
                self._connection = _Connection(self.alias, self._live.now)
            return self._connection

    def cluster_id(self) -> str:
        """The broker's own cluster id: the identity of the cluster, whatever its alias."""
        return str(self._metadata().cluster_id)

    def known_brokers(self) -> int:
        """Brokers that are up, or have replicas: one that is being restarted is away for a moment only."""
        metadata = self._metadata()
        partitions = (partition for topic in metadata.topics.values() for partition in topic.partitions.values())
        return len(metadata.brokers.keys() | {broker for partition in partitions for broker in partition.replicas})

    def registered_brokers(self, name: str, asked: int) -> int:
        """How many brokers a new topic can count on, up to `asked`, those included that are down for now.

        Metadata names only brokers that are up. A KRaft controller places replicas on all that are registered, so it is
        asked whether it would make topic `name` with more; nothing is made.
        """
        known = self.known_brokers()
        if asked <= known:
            return asked
        lowest, highest = known, asked
        while lowest < highest:
            middle = (lowest + highest + 1) // 2
            if self._would_make(name, middle):
                lowest = middle
            else:
                highest = middle - 1
        return lowest

    def _would_make(self, name: str, factor: int) -> bool:
        """Whether a topic could have this replication factor. Only a clear no is one: a topic that is asked for with
        too many replicas waits, one that is made with too few has them for good."""
        asked = [NewTopic(name, num_partitions=1, replication_factor=factor)]
        (future,) = self.client.create_topics(asked, validate_only=True, request_timeout=ANSWER_SECONDS).values()
        try:
            future.result()
        except KafkaException as error:
            return bool(error.args[0].code() != KafkaError.INVALID_REPLICATION_FACTOR)
        return True

    def topics(self) -> dict[str, TopicInfo]:
        """All topics by name."""
        found = {}
        for name, topic in self._metadata().topics.items():
            if topic.error is None and topic.partitions:
                factor = len(topic.partitions[min(topic.partitions)].replicas)
                leaderless = frozenset(number for number, partition in topic.partitions.items() if partition.leader < 0)
                found[name] = TopicInfo(name, len(topic.partitions), factor, leaderless=leaderless)
        return found

    def _metadata(self) -> ClusterMetadata:
        """Cluster metadata; asked in short steps, so that a refused login is told at once and not after the timeout.

        An answer makes up for what was refused before: one broker of several may refuse, or one did while its
        certificate was replaced. So a cluster that has answered before is given the whole time to answer again.
        """
        step = 2.0
        waited = 0.0
        connection = self._connected()
        while True:
            try:
                found = connection.client.list_topics(timeout=step)
            except KafkaException as error:
                connection.client.poll(0)
                waited += step
                refused_at_once = connection.refused.is_set() and not self._answered
                if refused_at_once or waited >= ANSWER_SECONDS:
                    raise self._unanswered(connection, error, waited) from error
            else:
                connection.refusal = connection.last = None
                connection.refused.clear()
                self._answered = True
                return found

    def _unanswered(
        self, connection: _Connection, error: KafkaException, waited: float
    ) -> ClusterUnreachable | AuthenticationFailed:
        if connection.refusal is not None:
            why = refusal_text(connection.refusal, connection.settings)
            return AuthenticationFailed(
                f"cluster {self.alias} at {self.address} cannot be used: {why}", alias=self.alias
            )
        return ClusterUnreachable(
            f"cluster {self.alias} does not answer at {self.address} within {waited:.0f} s "
            f"({reason_of(connection.last or error.args[0])}); check bootstrap_servers, and that the brokers run",
            alias=self.alias,
        )

    def start_offsets(self, partitions: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        """The first offset still there, of each (topic, partition)."""
        return self._offsets(partitions, OffsetSpec.earliest())

    def end_offsets(
        self, partitions: Iterable[TopicAndPartition], committed: bool = True
    ) -> dict[TopicAndPartition, int]:
        """The offset after the last record; with `committed` the last stable offset (read_committed)."""
        return self._offsets(partitions, OffsetSpec.latest(), committed)

    def told_starts(self, partitions: Collection[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        """As `start_offsets`; partitions whose leader does not answer are missing."""
        return self._told(self._asked(partitions, OffsetSpec.earliest(), True))

    def told_ends(self, partitions: Collection[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        """As `end_offsets` of what is committed; partitions whose leader does not answer are missing."""
        return self._told(self._asked(partitions, OffsetSpec.latest(), True))

    def _told(self, asked: Mapping[TopicAndPartition, "Future[ListOffsetsResultInfo]"]) -> dict[TopicAndPartition, int]:
        found, silent = {}, {}
        for key, future in asked.items():
            try:
                found[key] = future.result().offset
            except KafkaException as error:
                silent[key] = reason_of(error.args[0])
        if silent:
            (topic, partition), why = next(iter(silent.items()))
            logger.warning(
                "cluster %s does not tell the offsets of %d partitions, such as %s-%d: %s",
                *(self.alias, len(silent), topic, partition, why),
            )
        return found

    def log_ends(self, partitions: Collection[TopicAndPartition]) -> dict[TopicAndPartition, LogEnds]:
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
        self, partitions: Iterable[TopicAndPartition], spec: OffsetSpec, committed: bool = True
    ) -> dict[TopicAndPartition, int]:
        futures = self._asked(partitions, spec, committed)
        return {key: future.result().offset for key, future in futures.items()}

    def _asked(
        self, partitions: Iterable[TopicAndPartition], spec: OffsetSpec, committed: bool
    ) -> dict[TopicAndPartition, "Future[ListOffsetsResultInfo]"]:
        request = {TopicPartition(topic, partition): spec for topic, partition in partitions}
        if not request:
            return {}
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        futures = self.client.list_offsets(request, isolation_level=level, request_timeout=ANSWER_SECONDS)
        return {(key.topic, key.partition): future for key, future in futures.items()}

    def create_topics(self, topics: Sequence[TopicInfo]) -> None:
        """As `try_create_topics`; raises the first refusal, after all have been tried."""
        for refusal in self.try_create_topics(topics):
            raise refusal

    def try_create_topics(self, topics: Sequence[TopicInfo]) -> list[TargetRefused]:
        """Create topics with their configs and wait until they can be written. One that is there already is no error.

        A topic whose configs the cluster does not accept is made without them; what takes too long is tried again. A
        replication factor of -1 is the cluster's default. Returns the refusals, each with its
        topic; the others are made.
        """
        refused: list[TargetRefused] = []
        plain = [topic for chunk in _chunks(topics) for topic in self._create(chunk, refused)]
        for chunk in _chunks([replace(topic, configs={}) for topic in plain]):
            self._create(chunk, refused)
        return refused

    def _create(self, topics: Sequence[TopicInfo], refused: list[TargetRefused]) -> list[TopicInfo]:
        """One request; returns the topics whose configs were not accepted, adds other refusals to `refused`."""
        without = []
        left = list(topics)
        for tries_left in reversed(range(CREATE_TRIES)):
            futures, asked, left = self._ask_to_create(left), left, []
            for topic in asked:
                what = f"cannot create topic {topic.name}"
                try:
                    self._finish(futures[topic.name], what, topic.name, KafkaError.TOPIC_ALREADY_EXISTS)
                except TargetRefused as error:
                    if error.reason == "INVALID_CONFIG" and topic.configs:
                        without.append(topic)
                    elif error.reason in _NOT_YET and tries_left:
                        left.append(topic)
                    else:
                        refused.append(error)
            if not left:
                break
        return without

    def _ask_to_create(self, topics: Sequence[TopicInfo]) -> Mapping[str, "Future[None]"]:
        return self.client.create_topics(  # type: ignore[no-any-return]
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

    def add_partitions(self, topic: str, partitions: int) -> None:
        """Raise a topic's partition count to `partitions`. Raises TargetRefused."""
        futures = self.client.create_partitions([NewPartitions(topic, partitions)], request_timeout=2 * ANSWER_SECONDS)
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
        connection = self._connected()
        futures = connection.client.describe_topics(TopicCollection(list(topics)), request_timeout=ANSWER_SECONDS)
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
                    raise self._unanswered(connection, error, ANSWER_SECONDS) from error
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
