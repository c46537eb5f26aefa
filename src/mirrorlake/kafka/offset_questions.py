"""Questions for the offsets of many partitions, each with one future for all of them.

confluent-kafka makes a future of its own for each partition, with a lock and a condition, and
serves each: of thousands of partitions that took four fifths of the CPU time of a question.
"""

from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from mirrorlake.offsets.positions import TopicAndPartition

_Results = dict[TopicPartition, "ListOffsetsResultInfo | KafkaError"]


def ask_offsets(
    client: AdminClient,
    keys: Collection[TopicAndPartition],
    spec: OffsetSpec,
    level: IsolationLevel,
    seconds: float,
) -> "OffsetQuestion":
    """Ask, and do not wait; brokers have so many seconds to answer."""
    asked: Future[_Results] = Future()
    asked.set_running_or_notify_cancel()
    wanted = [TopicPartition(topic, partition, spec._value) for topic, partition in keys]
    # What `AdminClient.list_offsets` calls itself, once it has made its futures.
    options = {"isolation_level_value": level.value, "request_timeout": seconds}
    super(AdminClient, client).list_offsets(wanted, asked, **options)
    return OffsetQuestion(asked)


class OffsetQuestion:
    """One question; its answers come together."""

    def __init__(self, future: "Future[_Results]") -> None:
        self.future = future
        self._answers: dict[TopicAndPartition, ListOffsetsResultInfo | KafkaError] | None = None

    def answers(self) -> dict[TopicAndPartition, "ListOffsetsResultInfo | KafkaError"]:
        """All of them, once they have come. Raises KafkaException where the question failed as a
        whole."""
        if self._answers is None:
            results = self.future.result()
            self._answers = {(key.topic, key.partition): each for key, each in results.items()}
        return self._answers


class OffsetAnswer:
    """What a question says of one partition, in the words of a future."""

    __slots__ = ("_key", "_question")

    def __init__(self, question: OffsetQuestion, key: TopicAndPartition) -> None:
        self._question, self._key = question, key

    @property
    def future(self) -> "Future[Any]":
        """The future of the whole question."""
        return self._question.future

    def done(self) -> bool:
        """Whether it has come."""
        return self.future.done()

    def result(self) -> ListOffsetsResultInfo:
        """The answer, which is waited for. Raises KafkaException."""
        answer = self._question.answers()[self._key]
        if isinstance(answer, KafkaError):
            raise KafkaException(answer)
        return answer

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What is wrong with it; waited for so many seconds. Raises TimeoutError of
        concurrent.futures."""
        failed = self.future.exception(timeout)
        if failed is not None:
            return failed
        answer = self._question.answers()[self._key]
        return KafkaException(answer) if isinstance(answer, KafkaError) else None

    def add_done_callback(self, call: Callable[["OffsetAnswer"], object]) -> None:
        """Have this called with it once it has come, by librdkafka's thread."""
        self.future.add_done_callback(lambda _: call(self))
