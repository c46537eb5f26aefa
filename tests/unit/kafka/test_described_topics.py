"""What a cluster answers about one topic concerns that topic alone. No Kafka."""

import logging
from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import NewTopic

from mirrorlake.errors import ClusterUnreachable, ReplicationError
from mirrorlake.kafka.access import (
    NOT_SHOWN,
    TopicAccess,
    creation_rights,
    described,
    hidden,
    topic_rights,
)
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_configs import refusal_of

READ = SimpleNamespace(name="READ")
#: `broken` is answered with an error that says nothing of the other topics.
ANSWERS: Mapping[str, int | None] = {
    "orders": None,
    "broken": KafkaError.KAFKA_STORAGE_ERROR,
    "secret": KafkaError.TOPIC_AUTHORIZATION_FAILED,
    "gone": KafkaError.UNKNOWN_TOPIC_OR_PART,
}


class Topics:
    """A client that describes topics as it is told; once others are named, as it is told `then`."""

    def __init__(
        self, answers: Mapping[str, int | None], then: Mapping[str, int | None] | None = None
    ) -> None:
        self._answers, self._then = answers, then

    def learn_leaders(self, _seconds: float) -> None:
        """Brokers and a controller are named anew."""
        if self._then is None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        self._answers = self._then

    def poll(self, _seconds: float) -> int:
        return 0

    def describe_topics(
        self, topics: TopicCollection, **_options: object
    ) -> dict[str, "Future[SimpleNamespace]"]:
        return {name: self._answer(name) for name in topics.topic_names}

    def create_topics(
        self, topics: list[NewTopic], **_options: object
    ) -> dict[str, "Future[SimpleNamespace]"]:
        return {one.topic: self._answer(one.topic) for one in topics}

    def _answer(self, name: str) -> "Future[SimpleNamespace]":
        answer: Future[SimpleNamespace] = Future()
        code = self._answers[name]
        if code is None:
            topic = SimpleNamespace(
                topic_id=f"id of {name}", partitions=[0, 1], authorized_operations=[READ]
            )
            answer.set_result(topic)
        else:
            answer.set_exception(KafkaException(KafkaError(code, f"{name} is odd")))
        return answer


def client(answers: Mapping[str, int | None] = ANSWERS) -> Any:
    return Topics(answers)


def admin(answers: Mapping[str, int | None] = ANSWERS) -> ClusterAdmin:
    made = ClusterAdmin("east", {"bootstrap.servers": "127.0.0.1:1"})
    made._connection.current.client = client(answers)
    return made


def test_an_error_of_one_topic_is_that_topics_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        access = described(client(), ANSWERS)
    assert access["orders"] == TopicAccess("id of orders", frozenset({"READ"}))
    assert access["secret"].rights == frozenset() and access["gone"] == TopicAccess(None, None)
    assert access["broken"] == TopicAccess(None, None, "broken is odd")
    assert caplog.messages == [
        "a cluster does not describe 1 topics, such as broken: broken is odd"
    ]
    assert topic_rights(client(), ANSWERS)["broken"] is None, "it does not say"


def test_what_a_cluster_does_not_describe_is_not_taken_for_gone() -> None:
    """Nor what it describes by now, and did not show a moment ago."""
    assert hidden(client(), ANSWERS) == {
        "orders": NOT_SHOWN,
        "broken": "broken is odd",
        "secret": None,
    }


def test_only_an_answer_about_the_topic_says_that_it_may_be_created() -> None:
    answers = {
        "made": None,
        "there": KafkaError.TOPIC_ALREADY_EXISTS,
        "three": KafkaError.POLICY_VIOLATION,
        "secret": KafkaError.TOPIC_AUTHORIZATION_FAILED,
        "silent": KafkaError._TIMED_OUT,
        "moved": KafkaError.NOT_CONTROLLER,
    }
    access = creation_rights(client(answers), answers)
    assert {name for name, topic in access.items() if topic.lacks("CREATE")} == {"secret"}
    assert {name: topic.error for name, topic in access.items() if topic.error} == {
        "silent": "silent is odd",
        "moved": "moved is odd",
    }


@pytest.mark.parametrize("code", [KafkaError._TIMED_OUT, KafkaError._TRANSPORT])
def test_where_no_broker_answers_nothing_is_known_of_any(code: int) -> None:
    answers = {**ANSWERS, "broken": code}
    with pytest.raises(KafkaException):
        described(client(answers), answers)
    with pytest.raises(ClusterUnreachable):
        admin(answers).identities(list(answers))


@pytest.mark.parametrize("code", [KafkaError._TIMED_OUT, KafkaError._TRANSPORT])
def test_another_broker_is_asked_where_the_one_that_was_named_is_silent(code: int) -> None:
    made = admin()
    made._connection.current.client = Topics(dict.fromkeys(ANSWERS, code), ANSWERS)
    assert made.identities(list(ANSWERS))[1] == {"gone"}


def test_ids_of_the_others_are_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        identities, missing = admin().identities(list(ANSWERS))
    assert identities.keys() == {"orders"} and missing == {"gone"}
    assert caplog.messages == [
        "cluster east does not describe 1 topics, such as broken: broken is odd"
    ]


@pytest.mark.parametrize(
    ("topic", "sentence"),
    [("secret", "may not be described at cluster east; grant"), ("broken", "broken is odd")],
)
def test_a_topic_whose_id_is_needed_is_named_with_the_reason(topic: str, sentence: str) -> None:
    with pytest.raises(ReplicationError, match=sentence) as raised:
        admin().topic_ids(["orders", topic])
    assert raised.value.topic == topic and topic in str(raised.value)


def test_an_error_that_no_name_fits_is_an_answer_too() -> None:
    """As where a policy of the broker's own throws: nothing says that the cluster is away."""
    refused: Future[object] = Future()
    refused.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN, "thrown")))
    error = refusal_of(admin(), refused)
    assert error is not None and error.str() == "thrown"
    silent: Future[object] = Future()
    silent.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    with pytest.raises(ClusterUnreachable):
        refusal_of(admin(), silent)
