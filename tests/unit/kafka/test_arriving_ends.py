"""A leader that does not answer holds up the ends of none of the others. With clients of
librdkafka, and its own stand-in for brokers."""

import time
from collections.abc import Iterator

import pytest

from mirrorlake.kafka import arriving_ends
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_connection import ANSWER_SECONDS
from mirrorlake.kafka.arriving_ends import ArrivingEnds
from mirrorlake.offsets.positions import TopicAndPartition
from tests.support.calls import calls_of
from tests.support.mock_kafka import MockKafka, mock_brokers, write_to_mock
from tests.support.waiting import until

KEYS = [("t", number) for number in range(6)]
#: Led by the broker that a test lets answer late.
LATE = {key for key in KEYS if key[1] % 2}
REST = dict.fromkeys(set(KEYS) - LATE, 0)
#: How long an answer is waited for where none is to be, and what does not wait for one takes.
LONG_HOLD, AT_ONCE = 60.0, 10.0


@pytest.fixture
def kafka() -> Iterator[MockKafka]:
    with mock_brokers({"t": len(KEYS)}, 2) as kafka:
        for _, number in KEYS:
            kafka.lead("t", number, 1 + number % 2)
        yield kafka


@pytest.fixture
def asking(kafka: MockKafka) -> ArrivingEnds:
    asking = ArrivingEnds(
        ClusterAdmin("east", {"bootstrap.servers": kafka.address, "log_level": 0})
    )
    until(lambda: asking.of(KEYS) == dict.fromkeys(KEYS, 0), "all answer")
    return asking


def timed(asking: ArrivingEnds) -> tuple[dict[TopicAndPartition, int], float]:
    began = time.monotonic()
    return asking.of(KEYS), time.monotonic() - began


def test_what_others_answer_counts_at_once(
    kafka: MockKafka, asking: ArrivingEnds, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.answer_after(2, 60.0)
    ends, seconds = timed(asking)
    assert ends == REST
    assert seconds < ANSWER_SECONDS / 2, "and not only when the dead one's time is over"
    write_to_mock(kafka.address, "t", [2])
    monkeypatch.setattr(arriving_ends, "HOLD_SECONDS", LONG_HOLD)
    for _ in range(3):
        ends, seconds = timed(asking)
        assert ends == REST | {("t", 2): 1} and seconds < AT_ONCE, "it is not waited for again"


def test_only_what_a_broker_refuses_is_refused(kafka: MockKafka, asking: ArrivingEnds) -> None:
    """Logs whose leader only answers late may go on being watched."""
    kafka.answer_after(2, 60.0)
    assert timed(asking)[0] == REST and asking.refused_at == float("-inf")
    kafka.lead("t", 0, -1)
    began = time.monotonic()
    until(lambda: asking.of(KEYS) is not None and asking.refused_at > began, "one is refused", 30)


def test_an_answer_counts_however_late_it_comes(
    kafka: MockKafka, asking: ArrivingEnds, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.answer_after(2, 3.0)
    assert asking.of(KEYS) == REST
    monkeypatch.setattr(arriving_ends, "HOLD_SECONDS", LONG_HOLD)
    seen = set[TopicAndPartition]()

    def answered() -> bool:
        ends, seconds = timed(asking)
        assert seconds < AT_ONCE and ends.keys() >= REST.keys()
        seen.update(ends)
        return seen == set(KEYS)

    until(answered, "the late ones are answered", 10)
    kafka.answer_after(2, 0.0)
    until(lambda: bool(asking.of(KEYS)) and not asking._late, "it answers at once again", 10)
    assert timed(asking)[0] == dict.fromkeys(KEYS, 0)


def test_who_leads_now_is_asked_before_the_time_of_the_one_before_is_over(
    kafka: MockKafka, asking: ArrivingEnds
) -> None:
    kafka.answer_after(2, 60.0)
    assert asking.of(KEYS) == REST
    for _, number in LATE:
        kafka.lead("t", number, 1)
    began = time.monotonic()
    until(lambda: asking.of(KEYS) == dict.fromkeys(KEYS, 0), "the new leader is asked", 30)
    assert time.monotonic() - began < ANSWER_SECONDS


def test_a_question_that_nobody_answers_is_asked_again(
    kafka: MockKafka, asking: ArrivingEnds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the client is gone that had asked."""
    kafka.answer_after(2, 60.0)
    asking.of(KEYS)
    asked = calls_of(asking._admin, "request_ends", set, monkeypatch.setattr)
    asking.of(KEYS)
    assert asked == [REST.keys()], "one question is open"
    monkeypatch.setattr(arriving_ends, "_GIVEN_UP_SECONDS", 0.0)
    asking.of(KEYS)
    assert LATE in asked
