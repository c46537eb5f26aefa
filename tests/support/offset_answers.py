"""Answers to questions for offsets, without a broker."""

from collections.abc import Collection, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from confluent_kafka import TopicPartition

from mirrorlake.kafka.admin_offsets import OffsetQuestion
from mirrorlake.offsets.positions import TopicAndPartition


class LateAnswer:
    """A question for one partition, which is answered later."""

    def __init__(self, key: TopicAndPartition) -> None:
        self._key, self._future = key, Future[Any]()
        self.question = OffsetQuestion([key], self._future)

    def set(self, value: Any) -> None:
        """Answer it: what a broker says, or a KafkaError."""
        self._future.set_result({TopicPartition(*self._key): value})


def offset_answer(offset: int) -> Any:
    """What a leader says, of epoch 3."""
    return SimpleNamespace(offset=offset, leader_epoch=3, timestamp=-1)


def question_of(offsets: Mapping[TopicAndPartition, int]) -> OffsetQuestion:
    """A question that is answered."""
    future: Future[Any] = Future()
    future.set_result(
        {TopicPartition(*key): offset_answer(offset) for key, offset in offsets.items()}
    )
    return OffsetQuestion(list(offsets), future)


def by_partition(
    keys: Collection[TopicAndPartition], offsets: list[int]
) -> dict[TopicAndPartition, int]:
    """The offsets of partitions, by their numbers."""
    return {key: offsets[key[1]] for key in keys}
