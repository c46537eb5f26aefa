"""What the principal of a client may do on a cluster, by asking the cluster (KIP-430). Changes
nothing.

A cluster without an authorizer allows everything; one that does not answer counts as allowing.
"""

from collections.abc import Collection
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection, Uuid
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorlake.kafka.admin_configs import chunks
from mirrorlake.kafka.admin_connection import ANSWER_SECONDS

#: What a broker from before KIP-516 (Kafka 2.8) says of the id of each topic.
NO_TOPIC_ID = str(Uuid(0, 0))
#: Topics in one request.
_AT_ONCE = 500
_NOT_DESCRIBED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN_TOPIC_OR_PART)


class TopicAccess(NamedTuple):
    """A topic as its cluster describes it to us: Kafka's id of it, None where it is gone or may not
    be described; and the operations (READ, WRITE, ...) that we may do, None where the cluster does
    not say."""

    topic_id: str | None
    rights: frozenset[str] | None


def described(client: AdminClient, topics: Collection[str]) -> dict[str, TopicAccess]:
    """Ask about topics. Raises KafkaException when no broker answers."""
    access: dict[str, TopicAccess] = {}
    for chunk in chunks(sorted(topics), _AT_ONCE):
        futures = client.describe_topics(
            TopicCollection(list(chunk)),
            include_authorized_operations=True,
            request_timeout=ANSWER_SECONDS,
        )
        for name, future in futures.items():
            try:
                topic = future.result()
            except KafkaException as error:
                code = error.args[0].code()
                if code not in _NOT_DESCRIBED:
                    raise
                denied = code == KafkaError.TOPIC_AUTHORIZATION_FAILED
                access[name] = TopicAccess(None, frozenset() if denied else None)
            else:
                operations = topic.authorized_operations
                rights = frozenset(each.name for each in operations) if operations else None
                access[name] = TopicAccess(str(topic.topic_id), rights)
    return access


def hidden(client: AdminClient, topics: Collection[str]) -> set[str]:
    """Those of some topics that may be there, and may not be described. Raises as `described`."""
    access = described(client, topics) if topics else {}
    return {name for name, topic in access.items() if topic.rights == frozenset()}


def topic_rights(client: AdminClient, topics: Collection[str]) -> dict[str, frozenset[str] | None]:
    """The rights alone. Raises as `described`."""
    return {name: topic.rights for name, topic in described(client, topics).items()}


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


def _code(future) -> int | None:  # type: ignore[no-untyped-def]
    try:
        future.result()
    except KafkaException as error:
        return int(error.args[0].code())
    return None
