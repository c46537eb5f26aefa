"""What an admin client makes of refusals: one that is over must not stand for a slow answer later.
No Kafka."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, OFFSET_INVALID, KafkaError, KafkaException
from confluent_kafka.admin import OffsetSpec

from mirrorlake.errors import AuthenticationFailed, ClusterUnreachable, ClusterUnusable
from mirrorlake.kafka import admin_offsets
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_connection import ANSWER_SECONDS
from mirrorlake.kafka.admin_offsets import OffsetQuestion
from mirrorlake.offsets.positions import LogEnds
from tests.support.offset_answers import by_partition, question_of


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

    def learn_leaders(self, seconds: float) -> None:
        self.list_topics(seconds)

    def of_many(self, *_: object) -> None:
        return None


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


def test_an_offset_that_no_broker_answered_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka ends a question without an error where a partition lost its leader meanwhile."""
    admin, keys = made()[0], [("t", number) for number in range(3)]
    starts, ends = [0, 0, OFFSET_INVALID], [7, OFFSET_INVALID, 9]

    def asked(_client: object, keys: list[Any], spec: OffsetSpec, *_: object) -> OffsetQuestion:
        first = isinstance(spec, type(OffsetSpec.earliest()))
        return question_of(by_partition(keys, starts if first else ends))

    monkeypatch.setattr(admin_offsets, "ask_offsets", asked)
    assert admin.end_offsets(keys, skip_silent=True) == {("t", 0): 7, ("t", 2): 9}
    assert admin.start_offsets(keys, skip_silent=True) == {("t", 0): 0, ("t", 1): 0}
    assert admin.log_ends(keys) == {("t", 0): LogEnds(0, 7, 3)}
    for ask in (admin.start_offsets, admin.end_offsets):
        with pytest.raises(KafkaException, match="LEADER_NOT_AVAILABLE"):
            ask(keys)
    ends = [7, OFFSET_END, OFFSET_INVALID]
    assert admin.offsets_at(keys[:2], 1) == {("t", 0): 7}, "no record is so late"
    with pytest.raises(KafkaException, match="LEADER_NOT_AVAILABLE"):
        admin.offsets_at(keys, 1)


def test_late_records_are_asked_for_in_a_way_that_every_broker_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Brokers before Kafka 3.0 answer about the newest time, -3, with their oldest record. What is
    not answered is not taken for a partition without such a record."""
    admin, keys = made()[0], [("t", number) for number in range(3)]
    ends, times = [7, OFFSET_END, OFFSET_INVALID], set[int]()

    def asked(_client: object, keys: list[Any], spec: OffsetSpec, *_: object) -> OffsetQuestion:
        times.add(spec._value)
        return question_of({key: ends[key[1]] for key in keys})

    monkeypatch.setattr(admin_offsets, "ask_offsets", asked)
    assert admin.written_since(keys, 1_000) == {("t", 0): True, ("t", 1): False}
    assert times == {1_000}


def test_many_partitions_are_asked_for_in_several_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """librdkafka looks for each answer among all partitions of its question."""
    admin, _ = made()
    sizes = list[int]()

    def asked(_client: object, keys: list[Any], *_: object) -> OffsetQuestion:
        sizes.append(len(keys))
        return question_of({key: key[1] for key in keys})

    monkeypatch.setattr(admin_offsets, "ask_offsets", asked)
    keys = [("t", number) for number in range(1_010)]
    assert admin.end_offsets(iter(keys)) == {key: key[1] for key in keys}
    assert sum(sizes) == len(keys) and max(sizes) <= 250 and len(sizes) == 5
    assert admin.end_offsets([]) == {} and len(sizes) == 5
