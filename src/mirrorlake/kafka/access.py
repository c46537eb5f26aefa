"""What the principal of a client may do on a cluster, by asking the cluster (KIP-430). Changes
nothing.

A cluster without an authorizer allows everything; one that does not answer counts as allowing.
"""

import logging
from collections.abc import Collection
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection, Uuid
from confluent_kafka.admin import NewTopic, TopicDescription

from mirrorlake.kafka.admin_connection import ANSWER_SECONDS
from mirrorlake.kafka.chunks import chunks
from mirrorlake.kafka.controller import ask_controller
from mirrorlake.kafka.quick_admin import QuickAdmin
from mirrorlake.kafka.refusals import is_answer, not_described, reason_of
from mirrorlake.native.describer import Description

logger = logging.getLogger(__name__)

#: What a broker from before KIP-516 (Kafka 2.8) says of the id of each topic.
NO_TOPIC_ID = str(Uuid(0, 0))
#: Topics in one request.
_AT_ONCE = 500
#: Of a topic that its cluster describes, and did not show a moment ago.
NOT_SHOWN = "it was not shown a moment ago"


class TopicAccess(NamedTuple):
    """A topic as its cluster describes it to us: Kafka's id of it, None where it is gone or is not
    described; the operations (READ, WRITE, ...) that we may do, none where it may not be described,
    None where the cluster does not say; and what the cluster answered about it otherwise."""

    topic_id: str | None
    rights: frozenset[str] | None
    error: str | None = None


GONE = TopicAccess(None, None)
"""A topic that is not there."""


def described(client: QuickAdmin, topics: Collection[str]) -> dict[str, TopicAccess]:
    """Ask about topics. An error of one is in what is told of it, and for all such one line is
    logged. Raises KafkaException when no broker answers."""
    access: dict[str, TopicAccess] = {}
    for chunk in chunks(sorted(topics), _AT_ONCE):
        for name, topic in answers_about(client, chunk, rights=True).items():
            if isinstance(topic, KafkaError):
                access[name] = undescribed(topic)
                continue
            operations = topic.authorized_operations
            rights = frozenset(each.name for each in operations) if operations else None
            access[name] = TopicAccess(str(topic.topic_id), rights)
    odd = {name: topic.error for name, topic in access.items() if topic.error is not None}
    if odd:
        logger.warning("%s", not_described("a cluster", odd))
    return access


def answers_about(
    client: QuickAdmin, topics: Collection[str], rights: bool = False
) -> dict[str, TopicDescription | Description | KafkaError]:
    """Ask about topics, in one request: what each is, with our `rights`, or the error that a broker
    answers about it. Raises KafkaException when no broker answers."""
    names = TopicCollection(list(topics))
    futures = ask_controller(
        client,
        lambda seconds: client.describe_topics(
            names, include_authorized_operations=rights, request_timeout=seconds
        ),
    )
    answers: dict[str, TopicDescription | Description | KafkaError] = {}
    for name, future in futures.items():
        try:
            answers[name] = future.result()
        except KafkaException as error:
            if not is_answer(error.args[0]):
                raise
            answers[name] = error.args[0]
    return answers


def undescribed(error: KafkaError) -> TopicAccess:
    """What the error of a topic says of it."""
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return GONE
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return TopicAccess(None, frozenset())
    return TopicAccess(None, None, reason_of(error))


def hidden(client: QuickAdmin, topics: Collection[str]) -> dict[str, str | None]:
    """Those of some topics, which their cluster did not show, that may be there; and why they are
    not described, None where they may not be. Raises as `described`."""
    access = described(client, topics) if topics else {}
    return {
        name: NOT_SHOWN if topic.topic_id is not None else topic.error
        for name, topic in access.items()
        if topic != GONE
    }


def topic_rights(client: QuickAdmin, topics: Collection[str]) -> dict[str, frozenset[str] | None]:
    """The rights alone. Raises as `described`."""
    return {name: topic.rights for name, topic in described(client, topics).items()}


def refused_creations(client: QuickAdmin, topics: Collection[str]) -> set[str]:
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
        producer = Producer({**settings, "transactional.id": transactional_id})
        # one that knows no broker yet asks for its coordinator half a second on
        producer.list_topics(timeout=ANSWER_SECONDS)
        producer.init_transactions(ANSWER_SECONDS)
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
