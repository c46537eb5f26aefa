"""Making topics and growing them: in requests that a controller takes, tried again where it only took too long."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewPartitions, NewTopic

from mirrorlake.errors import TargetRefused
from mirrorlake.kafka.admin_connection import ANSWER_SECONDS, AdminConnection
from mirrorlake.kafka.refusals import reason_of
from mirrorlake.kafka.values import TopicInfo

#: What one request to create topics may hold: far less than the 10,000 records that a KRaft controller takes at a time.
_TOPICS_PER_REQUEST, _PARTITIONS_PER_REQUEST = 100, 2000
#: How often a topic is asked for whose making came to no end in time, and what a cluster says then.
CREATE_TRIES = 3
_NOT_YET = frozenset(
    {"REQUEST_TIMED_OUT", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_TRANSPORT", "NOT_CONTROLLER", "THROTTLING_QUOTA_EXCEEDED"}
)


def would_make(connection: AdminConnection, name: str, factor: int) -> bool:
    """Whether a topic could have this replication factor. Only a clear no is one: a topic that is asked for with
    too many replicas waits, one that is made with too few has them for good."""
    asked, client = [NewTopic(name, num_partitions=1, replication_factor=factor)], connection.connected().client
    (future,) = client.create_topics(asked, validate_only=True, request_timeout=ANSWER_SECONDS).values()
    try:
        future.result()
    except KafkaException as error:
        return bool(error.args[0].code() != KafkaError.INVALID_REPLICATION_FACTOR)
    return True


def create_topics(connection: AdminConnection, topics: Sequence[TopicInfo]) -> list[TargetRefused]:
    """As `ClusterAdmin.try_create_topics` says."""
    refused: list[TargetRefused] = []
    plain = [topic for chunk in _chunks(topics) for topic in _create(connection, chunk, refused)]
    for chunk in _chunks([replace(topic, configs={}) for topic in plain]):
        _create(connection, chunk, refused)
    return refused


def _create(connection: AdminConnection, topics: Sequence[TopicInfo], refused: list[TargetRefused]) -> list[TopicInfo]:
    """One request; returns the topics whose configs were not accepted, adds other refusals to `refused`."""
    without = []
    left = list(topics)
    for tries_left in reversed(range(CREATE_TRIES)):
        futures, asked, left = _ask_to_create(connection, left), left, []
        for topic in asked:
            what = f"cannot create topic {topic.name}"
            try:
                _finish(connection, futures[topic.name], what, topic.name, KafkaError.TOPIC_ALREADY_EXISTS)
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


def _ask_to_create(connection: AdminConnection, topics: Sequence[TopicInfo]) -> Mapping[str, "Future[None]"]:
    return connection.connected().client.create_topics(  # type: ignore[no-any-return]
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


def add_partitions(connection: AdminConnection, topic: str, partitions: int) -> None:
    """Raise a topic's partition count to `partitions`. Raises TargetRefused."""
    futures = connection.connected().client.create_partitions(
        [NewPartitions(topic, partitions)], request_timeout=2 * ANSWER_SECONDS
    )
    for name, future in futures.items():
        _finish(connection, future, f"cannot raise topic {name} to {partitions} partitions", name)


def _finish(connection: AdminConnection, future, what: str, topic: str, allowed: int | None = None) -> None:  # type: ignore[no-untyped-def]
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
