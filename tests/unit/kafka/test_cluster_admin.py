"""What an admin client makes of refusals: one that is over must not stand for a slow answer later.
No Kafka."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import OFFSET_END, OFFSET_INVALID, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from mirrorlake.errors import AuthenticationFailed, ClusterUnreachable, ClusterUnusable
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_connection import ANSWER_SECONDS
from mirrorlake.offsets.positions import LogEnds


class Answers:
    """A client that answers, or does not, as it is told; counts how often it was asked."""

    def __init__(self) -> None:
        self.answers = True
        self.asked = 0

    def list_topics(self, timeout: float) -> SimpleNamespace:
        self.asked += 1
        if not self.answers:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "no answer"))
        return SimpleNamespace(cluster_id="one", brokers={}, topics={})

    def poll(self, _seconds: float) -> int:
        return 0


def made() -> tuple[ClusterAdmin, Answers]:
    admin, client = ClusterAdmin("east", {"bootstrap.servers": "127.0.0.1:1"}), Answers()
    admin._connection.current.client = client  # type: ignore[assignment]
    return admin, client


REFUSAL = KafkaError(KafkaError._AUTHENTICATION, "wrong password")


def test_a_refusal_is_told_at_once_where_nobody_ever_answered() -> None:
    admin, client = made()
    client.answers = False
    admin._connection.current.on_error(REFUSAL)
    with pytest.raises(AuthenticationFailed, match="refused the credentials"):
        admin.cluster_id()
    assert client.asked == 1


def test_a_refusal_is_forgotten_with_the_next_answer() -> None:
    admin, client = made()
    admin._connection.current.on_error(REFUSAL)
    assert admin.cluster_id() == "one"
    client.answers = False
    with pytest.raises(ClusterUnreachable):
        admin.cluster_id()


def test_a_cluster_that_has_answered_is_given_the_time_to_answer_again() -> None:
    """One of its brokers refuses all the while, in the background."""
    admin, client = made()
    admin.cluster_id()
    admin._connection.current.on_error(REFUSAL)
    client.answers, client.asked = False, 0
    with pytest.raises(AuthenticationFailed):
        admin.cluster_id()
    assert client.asked >= ANSWER_SECONDS / 2


def test_both_mean_that_the_cluster_cannot_be_used() -> None:
    assert issubclass(AuthenticationFailed, ClusterUnusable) and issubclass(
        ClusterUnreachable, ClusterUnusable
    )


def offset(number: int) -> "Future[SimpleNamespace]":
    """What a leader answered."""
    answer: Future[SimpleNamespace] = Future()
    answer.set_result(SimpleNamespace(offset=number, leader_epoch=3, timestamp=-1))
    return answer


class Offsets(Answers):
    """A client whose answers are given: by partition, and by whether the start of a log is asked
    for."""

    def __init__(self, starts: list[int], ends: list[int]) -> None:
        super().__init__()
        self._offsets = {True: starts, False: ends}

    def list_offsets(self, request: dict[TopicPartition, OffsetSpec], **_options: object) -> object:
        return {
            key: offset(self._offsets[isinstance(spec, type(OffsetSpec.earliest()))][key.partition])
            for key, spec in request.items()
        }


def test_an_offset_that_no_broker_answered_is_none() -> None:
    """librdkafka ends a question without an error where a partition lost its leader meanwhile."""
    admin, keys = made()[0], [("t", number) for number in range(3)]
    client = Offsets([0, 0, OFFSET_INVALID], [7, OFFSET_INVALID, 9])
    admin._connection.current.client = client  # type: ignore[assignment]
    assert admin.end_offsets(keys, skip_silent=True) == {("t", 0): 7, ("t", 2): 9}
    assert admin.start_offsets(keys, skip_silent=True) == {("t", 0): 0, ("t", 1): 0}
    assert admin.log_ends(keys) == {("t", 0): LogEnds(0, 7, 3)}
    for ask in (admin.start_offsets, admin.end_offsets):
        with pytest.raises(KafkaException, match="LEADER_NOT_AVAILABLE"):
            ask(keys)
    client = Offsets([0] * 3, [7, OFFSET_END, OFFSET_INVALID])
    admin._connection.current.client = client  # type: ignore[assignment]
    assert admin.offsets_at(keys[:2], 1) == {("t", 0): 7}, "no record is so late"
    with pytest.raises(KafkaException, match="LEADER_NOT_AVAILABLE"):
        admin.offsets_at(keys, 1)


def test_many_partitions_are_asked_for_in_several_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """librdkafka looks for each answer among all partitions of its question."""
    admin, _ = made()
    sizes = list[int]()

    def list_offsets(asked: dict[TopicPartition, OffsetSpec], **_given: object) -> object:
        sizes.append(len(asked))
        return {place: offset(place.partition) for place in asked}

    client = SimpleNamespace(list_offsets=list_offsets, poll=lambda _seconds: 0)
    monkeypatch.setattr(admin._connection.current, "client", client)
    keys = [("t", number) for number in range(1_010)]
    assert admin.end_offsets(iter(keys)) == {key: key[1] for key in keys}
    assert sum(sizes) == len(keys) and max(sizes) <= 250 and len(sizes) == 5
    assert admin.end_offsets([]) == {} and len(sizes) == 5
