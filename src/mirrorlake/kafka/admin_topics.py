"""Makes and grows topics: in requests that a controller accepts, retried if they took too long."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewPartitions, NewTopic

from mirrorlake.errors import TargetRefused
from mirrorlake.kafka.admin_connection import ANSWER_SECONDS, AdminConnection
from mirrorlake.kafka.refusals import reason_of
from mirrorlake.kafka.values import TopicInfo

#: Limits of one request to create topics: below the 10,000 records that KRaft takes at a time.
_TOPICS_PER_REQUEST, _PARTITIONS_PER_REQUEST = 100, 2000
#: How often a topic's creation is tried if it did not finish in time, and the errors for that.
CREATE_TRIES = 3
#: Gets a topic and the configs that it was made without: by key the value and the cluster's error.
NotKept = Callable[[str, Mapping[str, tuple[str, str]]], object]
_NOT_YET = frozenset(
    {
        "REQUEST_TIMED_OUT",
        "_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "_TRANSPORT",
        "NOT_CONTROLLER",
        "THROTTLING_QUOTA_EXCEEDED",
    }
)


def would_make(connection: AdminConnection, name: str, factor: int) -> bool:
    """Whether a topic could have this replication factor. Only a clear refusal is a no: a request
    for too many replicas waits, but a topic made with too few has them for good."""
    refusal = _if_asked(connection, TopicInfo(name, 1, factor))
    return refusal is None or bool(refusal.code() != KafkaError.INVALID_REPLICATION_FACTOR)


def _if_asked(connection: AdminConnection, topic: TopicInfo) -> KafkaError | None:
    """Why a topic would not be made, None if it would; validates only, makes nothing."""
    futures = connection.connected().client.create_topics(
        [_new_topic(topic)], validate_only=True, request_timeout=ANSWER_SECONDS
    )
    try:
        futures[topic.name].result()
    except KafkaException as error:
        refusal: KafkaError = error.args[0]
        return refusal
    return None


def _new_topic(topic: TopicInfo) -> NewTopic:
    return NewTopic(topic.name, topic.partitions, topic.factor, config=dict(topic.configs))


def create_topics(
    connection: AdminConnection, topics: Sequence[TopicInfo], not_kept: NotKept | None = None
) -> list[TargetRefused]:
    """See `ClusterAdmin.try_create_topics`."""
    refused: list[TargetRefused] = []
    odd = [topic for chunk in _chunks(topics) for topic in _create(connection, chunk, refused)]
    accepted = _AcceptedConfigs(connection)
    split = {topic.name: accepted.split(topic) for topic in odd}
    again = [replace(topic, configs=split[topic.name][0]) for topic in odd]
    left = [topic for chunk in _chunks(again) for topic in _create(connection, chunk, refused)]
    refused += [_refused_at_last(connection, topic.name) for topic in left]
    for name in split.keys() - {error.topic for error in refused}:
        if not_kept is not None and split[name][1]:
            not_kept(name, split[name][1])
    return refused


def _refused_at_last(connection: AdminConnection, topic: str) -> TargetRefused:
    return TargetRefused(
        f"cannot create topic {topic} on cluster {connection.alias}: it takes none of its configs "
        "now that it said it would; it is tried again",
        topic=topic,
        reason="INVALID_CONFIG",
    )


class _AcceptedConfigs:
    """Which configs a cluster accepts, by requests that only validate, once per key and value."""

    def __init__(self, connection: AdminConnection) -> None:
        self._connection = connection
        self._alone: dict[tuple[str, str], str | None] = {}

    def split(self, topic: TopicInfo) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
        """As many configs as a topic can be made with; the others, with value and reason."""
        for config in sorted(topic.configs.items() - self._alone.keys()):
            self._alone[config] = self._refusal(topic, dict([config]))
        alone = {config: self._alone[config] for config in sorted(topic.configs.items())}
        refused = {key: (value, why) for (key, value), why in alone.items() if why is not None}
        kept = {key: value for (key, value), why in alone.items() if why is None}
        if self._refusal(topic, kept) is None:
            return kept, refused
        together: dict[str, str] = {}
        for key, value in kept.items():
            why = self._refusal(topic, {**together, key: value})
            if why is None:
                together[key] = value
            else:
                refused[key] = (value, why)
        return together, refused

    def _refusal(self, topic: TopicInfo, configs: Mapping[str, str]) -> str | None:
        """Why a topic cannot have these configs; None if they do not prevent its creation."""
        refusal = _if_asked(self._connection, replace(topic, configs=configs))
        is_about_configs = refusal is not None and refusal.name() == "INVALID_CONFIG"
        return reason_of(refusal) if refusal is not None and is_about_configs else None


def _create(
    connection: AdminConnection, topics: Sequence[TopicInfo], refused: list[TargetRefused]
) -> list[TopicInfo]:
    """Send a request; return topics with refused configs, and add other refusals to `refused`."""
    without = []
    left = list(topics)
    for tries_left in reversed(range(CREATE_TRIES)):
        futures, asked, left = _ask_to_create(connection, left), left, []
        for topic in asked:
            what = f"cannot create topic {topic.name}"
            try:
                _finish(
                    connection,
                    futures[topic.name],
                    what,
                    topic.name,
                    KafkaError.TOPIC_ALREADY_EXISTS,
                )
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


def _ask_to_create(
    connection: AdminConnection, topics: Sequence[TopicInfo]
) -> Mapping[str, "Future[None]"]:
    return connection.connected().client.create_topics(  # type: ignore[no-any-return]
        [_new_topic(topic) for topic in topics],
        operation_timeout=ANSWER_SECONDS,
        request_timeout=2 * ANSWER_SECONDS,
    )


def add_partitions(connection: AdminConnection, topic: str, partitions: int) -> None:
    """Raise a topic's partition count to `partitions`. Raises TargetRefused."""
    futures = connection.connected().client.create_partitions(
        [NewPartitions(topic, partitions)], request_timeout=2 * ANSWER_SECONDS
    )
    for name, future in futures.items():
        _finish(connection, future, f"cannot raise topic {name} to {partitions} partitions", name)


def _finish(
    connection: AdminConnection,
    future: "Future[Any]",
    what: str,
    topic: str,
    allowed: int | None = None,
) -> None:
    try:
        future.result()
    except KafkaException as error:
        reason: KafkaError = error.args[0]
        if reason.code() == allowed:
            return
        raise TargetRefused(
            f"{what} on cluster {connection.alias}: {reason_of(reason)}",
            topic=topic,
            reason=reason.name(),
        ) from error


def _chunks(topics: Sequence[TopicInfo]) -> Iterator[list[TopicInfo]]:
    """Cut topics into requests (KAFKA-9218: a request that is too large is refused as a whole)."""
    chunk: list[TopicInfo] = []
    partitions = 0
    for topic in topics:
        if chunk and (
            len(chunk) == _TOPICS_PER_REQUEST
            or partitions + topic.partitions > _PARTITIONS_PER_REQUEST
        ):
            yield chunk
            chunk, partitions = [], 0
        chunk.append(topic)
        partitions += topic.partitions
    if chunk:
        yield chunk
