"""What the principal of a client may do on a cluster, by asking the cluster (KIP-430). Changes
nothing.

A cluster without an authorizer allows everything; one that does not answer counts as allowing.
"""

from collections.abc import Collection, Iterator

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection, Uuid
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic, TopicDescription

from mirrorlake.kafka.admin_configs import chunks
from mirrorlake.kafka.admin_connection import ANSWER_SECONDS

#: What a broker from before KIP-516 (Kafka 2.8) says of the id of each topic.
NO_TOPIC_ID = str(Uuid(0, 0))
#: Topics in one request.
_AT_ONCE = 500
_NOT_DESCRIBED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN_TOPIC_OR_PART)


def topic_rights(client: AdminClient, topics: Collection[str]) -> dict[str, frozenset[str] | None]:
    """The operations (READ, WRITE, ...) allowed on each topic; none for one that may not even be
    described.

    A topic that is not there, or whose cluster does not answer, is None. Raises KafkaException when
    no broker answers.
    """
    rights: dict[str, frozenset[str] | None] = {}
    for name, topic in _descriptions(client, topics):
        if isinstance(topic, int):
            denied = topic == KafkaError.TOPIC_AUTHORIZATION_FAILED
            rights[name] = frozenset() if denied else None
        else:
            rights[name] = _names(topic.authorized_operations)
    return rights


def described(client: AdminClient, topics: Collection[str]) -> dict[str, tuple[str, bool]]:
    """Kafka's id of each topic, and whether the principal may read it; those that are gone, or that
    may not be described here, are missing. Raises KafkaException when no broker answers."""
    topics_seen = {}
    for name, topic in _descriptions(client, topics):
        if not isinstance(topic, int):
            allowed = _names(topic.authorized_operations)
            topics_seen[name] = (str(topic.topic_id), allowed is None or "READ" in allowed)
    return topics_seen


def _descriptions(
    client: AdminClient, topics: Collection[str]
) -> Iterator[tuple[str, TopicDescription | int]]:
    """Each topic as the cluster describes it, or the code of an error that says that it is not
    there, or may not be described. Raises KafkaException for any other."""
    for chunk in chunks(sorted(topics), _AT_ONCE):
        futures = client.describe_topics(
            TopicCollection(list(chunk)),
            include_authorized_operations=True,
            request_timeout=ANSWER_SECONDS,
        )
        for name, future in futures.items():
            try:
                yield name, future.result()
            except KafkaException as error:
                code = error.args[0].code()
                if code not in _NOT_DESCRIBED:
                    raise
                yield name, code


def refused_creations(client: AdminClient, topics: Collection[str]) -> set[str]:
    """Those of some topics, none of them there, that the principal may not create; only asks,
    creates nothing."""
    if not topics:
        return set()
    futures = client.create_topics(
        [NewTopic(name, num_partitions=1, replication_factor=1) for name in sorted(topics)],
        validate_only=True,
        request_timeout=ANSWER_SECONDS,
    )
    return {
        name
        for name, future in futures.items()
        if _code(future) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    }


def may_write_transactions(settings: dict[str, str | int | bool], transactional_id: str) -> bool:
    """Whether a producer may use a transactional id. Fences the producer that has it now, so give
    one that is not used.

    Raises KafkaException when no broker answers.
    """
    try:
        Producer({**settings, "transactional.id": transactional_id}).init_transactions(
            ANSWER_SECONDS
        )
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            raise
        return False
    return True


def _names(operations: Collection[AclOperation] | None) -> frozenset[str] | None:
    return frozenset(operation.name for operation in operations) if operations else None


def _code(future) -> int | None:  # type: ignore[no-untyped-def]
    try:
        future.result()
    except KafkaException as error:
        return int(error.args[0].code())
    return None
