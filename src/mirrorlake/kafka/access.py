"""What a client's principal may do on a cluster, which is asked (KIP-430). Changes nothing.

A cluster without an authorizer allows everything.
"""

import logging
from collections.abc import Collection
from concurrent.futures import Future
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

#: The topic id that brokers before KIP-516 (Kafka 2.8) report for each topic.
NO_TOPIC_ID = str(Uuid(0, 0))
#: Topics per request.
_AT_ONCE = 500
#: Errors about a new topic itself, which brokers find after the right to create it.
_OF_THE_TOPIC = (
    KafkaError.TOPIC_ALREADY_EXISTS,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.INVALID_PARTITIONS,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_REPLICA_ASSIGNMENT,
    KafkaError.INVALID_CONFIG,
    KafkaError.POLICY_VIOLATION,
)
#: The error for a topic that its cluster describes, but did not list a moment ago.
NOT_SHOWN = "it was not shown a moment ago"


class TopicAccess(NamedTuple):
    """A topic as its cluster describes it to us: Kafka's topic id, None if it is gone or not
    described; the operations (READ, WRITE, ...) that we may do, empty if we may not describe it,
    None if the cluster does not report them; and any other error of the cluster about it, after
    which nothing is known of the rights."""

    topic_id: str | None
    rights: frozenset[str] | None
    error: str | None = None

    def lacks(self, right: str) -> bool:
        """Whether an operation is known not to be allowed."""
        return self.rights is not None and right not in self.rights


GONE = TopicAccess(None, None)
"""A topic that is not there."""


def described(client: QuickAdmin, topics: Collection[str]) -> dict[str, TopicAccess]:
    """Query topics. An error about a topic is in its result; one line is logged for all of them.
    Raises KafkaException when no broker answers."""
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
    """Query topics in one request: the description of each, with our `rights`, or a broker's error
    about it. Raises KafkaException when no broker answers."""
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
    """The access that follows from a topic's error."""
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return GONE
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return TopicAccess(None, frozenset())
    return TopicAccess(None, None, reason_of(error))


def hidden(client: QuickAdmin, topics: Collection[str]) -> dict[str, str | None]:
    """Which of these topics, which their cluster did not list, may exist; and why they are not
    described, None if they may not be. Raises as `described`."""
    access = described(client, topics) if topics else {}
    return {
        name: NOT_SHOWN if topic.topic_id is not None else topic.error
        for name, topic in access.items()
        if topic != GONE
    }


def topic_rights(client: QuickAdmin, topics: Collection[str]) -> dict[str, frozenset[str] | None]:
    """The rights alone. Raises as `described`."""
    return {name: topic.rights for name, topic in described(client, topics).items()}


def creation_rights(client: QuickAdmin, topics: Collection[str]) -> dict[str, TopicAccess]:
    """Whether the principal may CREATE these missing topics; validates, creates nothing."""
    if not topics:
        return {}
    futures = client.create_topics(
        [NewTopic(name, num_partitions=1, replication_factor=1) for name in sorted(topics)],
        validate_only=True,
        request_timeout=ANSWER_SECONDS,
    )
    return {name: _creation_access(future) for name, future in futures.items()}


def _creation_access(future: "Future[None]") -> TopicAccess:
    try:
        future.result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return TopicAccess(None, frozenset())
        if error.args[0].code() not in _OF_THE_TOPIC:
            return TopicAccess(None, None, reason_of(error.args[0]))
    return TopicAccess(None, frozenset({"CREATE"}))


def may_write_transactions(settings: dict[str, str | int | bool], transactional_id: str) -> bool:
    """Whether a producer may use a transactional id. Give an unused one: its producer is fenced.

    Raises KafkaException when no broker answers.
    """
    try:
        producer = Producer({**settings, "transactional.id": transactional_id})
        # a producer that knows no broker yet looks for its coordinator half a second later
        producer.list_topics(timeout=ANSWER_SECONDS)
        producer.init_transactions(ANSWER_SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            raise
        return False
    return True
