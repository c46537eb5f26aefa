"""Whether a principal may write transactions is found out without the half second that librdkafka
takes before it asks for a coordinator again, where it knew no broker the first time."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.kafka import access


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of a producer, in order; a test adds what it answers to `init_transactions`."""
    calls: list[str] = []

    class FakeProducer:
        answer: KafkaError | None = None

        def __init__(self, settings: dict[str, Any]) -> None:
            calls.append(settings["transactional.id"])

        def list_topics(self, timeout: float) -> None:
            calls.append("brokers")

        def init_transactions(self, timeout: float) -> None:
            calls.append("init")
            if self.answer is not None:
                raise KafkaException(self.answer)

    monkeypatch.setattr(access, "Producer", FakeProducer)
    return calls


def test_it_knows_brokers_before_it_asks_for_its_coordinator(called: list[str]) -> None:
    assert access.may_write_transactions({}, "x")
    assert called == ["x", "brokers", "init"]


@pytest.mark.parametrize(
    "code", [KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, KafkaError.COORDINATOR_NOT_AVAILABLE]
)
def test_only_a_refusal_is_an_answer(
    called: list[str], monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(access.Producer, "answer", KafkaError(code))
    if code == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        assert not access.may_write_transactions({}, "x")
    else:
        with pytest.raises(KafkaException):
            access.may_write_transactions({}, "x")
