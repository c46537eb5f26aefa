"""What is logged of partitions whose offsets nobody tells, and for how long they are waited for."""

import logging
import time
from threading import Timer
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from mirrorlake.kafka import admin_offsets
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_offsets import answers, offsets_of
from tests.support.mock_kafka import mock_brokers
from tests.support.offset_answers import LateAnswer, offset_answer
from tests.support.waiting import until


@pytest.mark.parametrize(
    ("code", "levels"),
    [
        (KafkaError.NOT_LEADER_FOR_PARTITION, ["DEBUG", "DEBUG"]),
        (KafkaError.LEADER_NOT_AVAILABLE, ["DEBUG", "WARNING"]),
        (KafkaError._TIMED_OUT, ["WARNING", "WARNING"]),
    ],
)
def test_a_leader_that_has_just_moved_is_no_warning(
    code: int, levels: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """As a new topic's first question shows, by which a first run began with a warning."""
    asked: list[float] = []
    client = SimpleNamespace(learn_leaders=lambda seconds: asked.append(seconds))
    connection: Any = SimpleNamespace(
        alias="west", current=SimpleNamespace(client=client), silent=frozenset()
    )
    late = LateAnswer(("orders", 0))
    late.set(KafkaError(code))
    with caplog.at_level(logging.DEBUG, "mirrorlake.kafka.admin_offsets"):
        for _ in levels:
            assert answers(connection, [late.question], offsets_of) == {}
    assert [line.levelname for line in caplog.records] == levels
    assert all("such as orders-0" in line.getMessage() for line in caplog.records)
    assert len(asked) == len(levels) * (code != KafkaError._TIMED_OUT), "it learns who leads now"


@pytest.mark.parametrize(
    ("codes", "level"),
    [
        ([KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE], "DEBUG"),
        ([KafkaError.NOT_LEADER_FOR_PARTITION, None, 0], "WARNING"),
        ([KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError._TIMED_OUT], "WARNING"),
    ],
)
def test_nor_are_several_that_have_moved_unless_another_one_is_silent(
    codes: list[int | None],
    level: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Thousands of new partitions have their leaders on all brokers; None answers nothing."""
    monkeypatch.setattr(admin_offsets, "LATE_SECONDS", 0.05)
    client = SimpleNamespace(learn_leaders=lambda seconds: None)
    connection: Any = SimpleNamespace(
        alias="west", current=SimpleNamespace(client=client), silent=frozenset()
    )
    late = [LateAnswer(("t", number)) for number in range(len(codes))]
    for each, code in zip(late, codes, strict=True):
        if code is not None:
            each.set(KafkaError(code) if code else offset_answer(7))
    with caplog.at_level(logging.DEBUG, "mirrorlake.kafka.admin_offsets"):
        answers(connection, [each.question for each in late], offsets_of)
    assert [line.levelname for line in caplog.records] == [level]


@pytest.mark.parametrize(
    ("again", "level"),
    [(KafkaError.NOT_LEADER_FOR_PARTITION, "DEBUG"), (KafkaError.LEADER_NOT_AVAILABLE, "WARNING")],
)
def test_nor_are_new_ones_beside_one_that_was_silent_before(
    again: int, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = SimpleNamespace(learn_leaders=lambda seconds: None)
    connection: Any = SimpleNamespace(
        alias="west", current=SimpleNamespace(client=client), silent=frozenset({("t", 1)})
    )
    late = [LateAnswer(("t", number)) for number in (0, 1)]
    for each, code in zip(late, (KafkaError.LEADER_NOT_AVAILABLE, again), strict=True):
        each.set(KafkaError(code))
    with caplog.at_level(logging.DEBUG, "mirrorlake.kafka.admin_offsets"):
        assert answers(connection, [each.question for each in late], offsets_of) == {}
    (line,) = caplog.records
    assert line.levelname == level and connection.silent == {("t", 0), ("t", 1)}
    assert level == "DEBUG" or "of 1 partitions, such as t-1" in line.getMessage()


def test_a_leader_that_does_not_answer_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of positions asks four times: it took a minute, in which the flow's control did
    nothing else, for as long as a broker was away. The first time it is waited for not much longer:
    the others were answered with it, 15 s later."""
    monkeypatch.setattr(admin_offsets, "ANSWER_SECONDS", 5.0)
    monkeypatch.setattr(admin_offsets, "LATE_SECONDS", 2.0)
    monkeypatch.setattr(admin_offsets, "SILENT_SECONDS", 0.5)
    monkeypatch.setattr(admin_offsets, "_METADATA_SECONDS", 0.1)
    keys = [("t", number) for number in range(4)]
    with mock_brokers({"t": 4}, 2) as kafka:
        for _, number in keys:
            kafka.lead("t", number, 1 + number % 2)
        admin = ClusterAdmin("east", {"bootstrap.servers": kafka.address, "log_level": 0})

        def asked() -> tuple[int, float]:
            began = time.monotonic()
            ends = admin.end_offsets(keys, skip_silent=True)
            return len(ends), time.monotonic() - began

        until(lambda: asked()[0] == 4, "all answer")
        assert len(admin.end_offsets([*keys, *keys], skip_silent=True)) == 4, "each asked for once"
        assert admin.topics()
        kafka.answer_after(2, 5.0)
        for _ in range(3):
            count, seconds = asked()
            assert count == 2 and seconds < 4.0
        # one that is slow is no dead one
        kafka.answer_after(2, 1.5)
        until(lambda: asked()[0] == 4, "it is given its time again", 20)
        assert asked()[0] == 4 and asked()[0] == 4


def test_a_cluster_that_is_slow_as_a_whole_is_given_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What says at once that it has no leader is no answer by which the others would be late."""
    monkeypatch.setattr(admin_offsets, "LATE_SECONDS", 0.2)
    client = SimpleNamespace(learn_leaders=lambda seconds: None)
    connection: Any = SimpleNamespace(
        alias="west", current=SimpleNamespace(client=client), silent=frozenset()
    )
    late = [LateAnswer(("t", number)) for number in range(4)]
    asked = [each.question for each in late]
    late[0].set(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
    Timer(0.6, late[1].set, [offset_answer(7)]).start()
    Timer(0.7, late[2].set, [offset_answer(8)]).start()
    assert answers(connection, asked, offsets_of) == {("t", 1): 7, ("t", 2): 8}
    assert connection.silent == {("t", 0), ("t", 3)}
    late[3].set(offset_answer(9))
    assert connection.silent == {("t", 0)}, "one that is slow is no dead one"


def test_one_that_answers_question_after_question_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a broker that leads thousands and has much to do, for longer than a silent one is."""
    monkeypatch.setattr(admin_offsets, "LATE_SECONDS", 1.0)
    connection: Any = SimpleNamespace(alias="west", silent=frozenset())
    late = [LateAnswer(("t", number)) for number in range(5)]
    asked = [each.question for each in late]
    for number, each in enumerate(late):
        Timer(0.4 * number, each.set, [offset_answer(number)]).start()
    assert len(answers(connection, asked, offsets_of)) == 5 and not connection.silent
