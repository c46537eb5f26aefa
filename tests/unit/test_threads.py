"""Calls in threads that nothing has to wait for."""

import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.question import Question
from mirrorlake.produce import deadline
from mirrorlake.produce.deadline import within
from mirrorlake.threads import in_thread


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """What is waited for in vain, until the test ends."""
    event = threading.Event()
    yield event
    event.set()


def fail() -> None:
    raise ClusterUnreachable("cluster east does not answer", alias="east")


def test_what_a_call_returns_or_raises_comes_with_its_answer() -> None:
    assert in_thread("two", lambda: 2).result(10) == 2
    with pytest.raises(ClusterUnreachable):
        in_thread("none", fail).result(10)
    with pytest.raises(SystemExit):
        in_thread("end", lambda: exit(3)).result(10)


def test_a_call_keeps_no_process_from_ending(never: threading.Event) -> None:
    names = in_thread("waits", lambda: threading.current_thread()).result(10)
    assert names.name == "waits" and names.daemon


def test_a_cluster_that_does_not_answer_is_left_behind(never: threading.Event) -> None:
    assert Question("east", lambda: 7, "silent").answer(10) == (7, "")
    assert Question("east", never.wait, "silent").answer(0.01) == (None, "silent")
    assert Question("east", never.wait, "silent").answer(-1.0) == (None, "silent")
    assert Question("east", fail, "silent").answer(10) == (None, "cluster east does not answer")


def test_a_call_that_outlives_its_timeout_is_given_up(
    never: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "GRACE_SECONDS", 0.01)
    given: list[float] = []
    within(5.0, given.append, "a call")
    assert given == [5.0]
    with pytest.raises(ClusterUnreachable):
        within(5.0, lambda _: fail(), "a call")
    with pytest.raises(KafkaException, match="a call did not return within 0 s") as late:
        within(0.01, lambda _: never.wait(), "a call")
    assert late.value.args[0].code() == KafkaError._TIMED_OUT
