"""What is logged of partitions whose offsets nobody tells."""

import logging
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.kafka.admin_offsets import answers


@pytest.mark.parametrize(
    ("code", "level"),
    [
        (KafkaError.NOT_LEADER_FOR_PARTITION, "DEBUG"),
        (KafkaError.LEADER_NOT_AVAILABLE, "WARNING"),
        (KafkaError._TIMED_OUT, "WARNING"),
    ],
)
def test_a_leader_that_has_just_moved_is_no_warning(
    code: int, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As a new topic's first question shows, by which a first run began with a warning."""
    asked: list[float] = []
    client = SimpleNamespace(list_topics=lambda timeout: asked.append(timeout))
    connection: Any = SimpleNamespace(alias="west", current=SimpleNamespace(client=client))
    future: Any = Future()
    future.set_exception(KafkaException(KafkaError(code)))
    with caplog.at_level(logging.DEBUG, "mirrorlake.kafka.admin_offsets"):
        assert answers(connection, {("orders", 0): future}) == {}
    (line,) = caplog.records
    assert line.levelname == level and "such as orders-0" in line.getMessage()
    assert len(asked) == (code != KafkaError._TIMED_OUT), "it learns who leads now"
