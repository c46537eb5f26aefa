"""Making topics: on how many brokers they can count, and what takes too long is tried again. Over a
client that answers as brokers do."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_topics import CREATE_TRIES
from mirrorlake.kafka.values import TopicInfo


class Client:
    """Brokers 0 to 1 are up; broker 2 has a replica; a controller knows `registered` of them."""

    def __init__(self) -> None:
        self.registered = 3
        self.replicas = [0, 1, 2]
        self.unasked: int | None = None
        self.answers: list[int | None] = []
        self.asked: list[tuple[int, bool]] = []

    def list_topics(self, timeout: float) -> Any:
        place, up = (
            SimpleNamespace(replicas=self.replicas, leader=0),
            SimpleNamespace(host="", port=1),
        )
        topic = SimpleNamespace(partitions={0: place}, error=None)
        return SimpleNamespace(cluster_id="one", brokers={0: up, 1: up}, topics={"t": topic})

    def of_many(self, *_: object) -> None:
        return None

    def poll(self, _seconds: float) -> int:
        return 0

    def create_topics(
        self, topics: list[Any], validate_only: bool = False, **_: object
    ) -> dict[str, "Future[None]"]:
        (topic,) = topics
        self.asked.append((topic.replication_factor, validate_only))
        code = self.answers.pop(0) if self.answers and not validate_only else None
        if validate_only and self.unasked is not None:
            code = self.unasked
        elif topic.replication_factor > self.registered:
            code = KafkaError.INVALID_REPLICATION_FACTOR
        future: Future[None] = Future()
        future.set_result(None) if code is None else future.set_exception(
            KafkaException(KafkaError(code))
        )
        return {topic.topic: future}


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def admin(client: Client) -> ClusterAdmin:
    made = ClusterAdmin("west", {"bootstrap.servers": "127.0.0.1:1"})
    made._connection.current.client = client  # type: ignore[assignment]
    return made


def test_a_broker_that_is_being_restarted_counts(admin: ClusterAdmin, client: Client) -> None:
    assert admin.known_brokers() == 3, "two are up, and the third has replicas"
    assert admin.registered_brokers("n", 3) == 3 and not client.asked
    client.replicas = [0, 1]
    assert admin.registered_brokers("n", 3) == 3, (
        "it has no replica that would tell, and the controller knows it"
    )
    assert all(validate_only for _, validate_only in client.asked)
    client.registered = 2
    assert admin.registered_brokers("n", 3) == 2
    assert admin.registered_brokers("n", 32_767) == 2 and len(client.asked) < 20
    assert admin.registered_brokers("n", 1) == 1
    client.unasked = KafkaError._TIMED_OUT
    assert admin.registered_brokers("n", 3) == 3, (
        "no answer is no no: the topic is asked for, and waits"
    )


@pytest.mark.parametrize("code", [KafkaError.REQUEST_TIMED_OUT, KafkaError._TIMED_OUT])
def test_what_is_not_made_in_time_is_tried_again(
    admin: ClusterAdmin, client: Client, code: int
) -> None:
    client.answers = [code, KafkaError.TOPIC_ALREADY_EXISTS]
    assert admin.try_create_topics([TopicInfo("n", 1, 2)]) == [] and len(client.asked) == 2
    client.answers = [code] * 10
    (refused,) = admin.try_create_topics([TopicInfo("n", 1, 2)])
    assert refused.topic == "n" and len(client.asked) == 2 + CREATE_TRIES
    client.answers = [KafkaError.POLICY_VIOLATION]
    assert (
        len(admin.try_create_topics([TopicInfo("n", 1, 2)])) == 1
        and len(client.asked) == 3 + CREATE_TRIES
    )
