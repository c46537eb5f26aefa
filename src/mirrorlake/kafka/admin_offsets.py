"""Offsets of many partitions, asked for at once; a leader that does not answer holds up no other.

A question has one future for all of its partitions. confluent-kafka makes one of its own for each,
with a lock and a condition, and serves each: of thousands of partitions that took four fifths of
the CPU time of a question.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from typing import Any

from confluent_kafka import OFFSET_END, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from mirrorlake.kafka.admin_connection import ANSWER_SECONDS, AdminConnection
from mirrorlake.kafka.answered_offsets import answered_offset
from mirrorlake.kafka.refusals import reason_of
from mirrorlake.offsets.positions import LogEnd, TopicAndPartition

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


logger = logging.getLogger(__name__)

#: Partitions in one question: librdkafka (2.16) looks for each answer among all of them.
_AT_ONCE = 250
#: What librdkafka says of partitions whose leader is another one by now.
_LEADER_MOVED = {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}
#: How long leaders are waited for once a question was answered; and those that did not answer the
#: last time, once the others have, in seconds.
LATE_SECONDS, SILENT_SECONDS = 4.0, 2.0
#: How long a broker may take to say who leads, seconds.
_METADATA_SECONDS = 5.0
#: What each partition's leader will answer.
OffsetRequests = Mapping[TopicAndPartition, OffsetAnswer]


def ask(
    connection: AdminConnection,
    partitions: Iterable[TopicAndPartition],
    spec: OffsetSpec,
    committed: bool,
) -> OffsetRequests:
    """Ask for offsets; with `committed` the end is the last stable offset (read_committed). All
    requests at once, and each leader by itself as far as they are known, since answers to a
    question come together; apart those that did not answer the last time."""
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    asked: dict[TopicAndPartition, OffsetAnswer] = {}
    for keys in _questions(connection, partitions):
        client = connection.connected().client
        question = ask_offsets(client, keys, spec, level, ANSWER_SECONDS)
        asked |= {key: OffsetAnswer(question, key) for key in keys}
    return asked


def _questions(
    connection: AdminConnection, partitions: Iterable[TopicAndPartition]
) -> list[list[TopicAndPartition]]:
    """The partitions of each question, by what is known of their leaders."""
    groups: dict[tuple[int | None, bool], list[TopicAndPartition]] = {}
    for key in dict.fromkeys(partitions):  # librdkafka refuses a question that has one twice
        groups.setdefault((connection.leader(*key), key in connection.silent), []).append(key)
    return [
        keys[start : start + _AT_ONCE]
        for keys in groups.values()
        for start in range(0, len(keys), _AT_ONCE)
    ]


def answers(
    connection: AdminConnection, asked: OffsetRequests
) -> dict[TopicAndPartition, ListOffsetsResultInfo]:
    """What leaders answered. Missing are partitions without a record of the time that was asked
    for, and those that do not answer."""
    by_partition, codes = arrived(connection, asked)
    if codes & _LEADER_MOVED:
        _learn_leaders(connection)
    return by_partition


def arrived(
    connection: AdminConnection, asked: OffsetRequests
) -> tuple[dict[TopicAndPartition, ListOffsetsResultInfo], set[int]]:
    """The same, and what is wrong with those that do not answer, for which one line is logged: a
    warning, unless all it takes is to ask another broker, as of a topic that has just been made."""
    by_partition, silent, codes = {}, {}, set()
    before = connection.silent.intersection(asked)
    _wait(asked, before)
    for key, future in asked.items():
        if not future.done():
            again = "it did not answer the last time either"
            silent[key] = again if key in before else "it does not answer, as others did"
            codes.add(KafkaError.LEADER_NOT_AVAILABLE)  # another may lead it by now
            future.add_done_callback(partial(_heard, connection, key))
            continue
        try:
            answer = future.result()
            if answer.offset != OFFSET_END:  # no record is so late
                answered_offset(answer.offset)
                by_partition[key] = answer
        except KafkaException as error:
            silent[key] = reason_of(error.args[0])
            codes.add(error.args[0].code())
    if silent or before:
        connection.silent = connection.silent.difference(by_partition).union(silent)
    if silent:
        (topic, partition), why = next(iter(silent.items()))
        moved = codes == {KafkaError.NOT_LEADER_FOR_PARTITION}
        logger.log(
            logging.DEBUG if moved else logging.WARNING,
            "cluster %s does not report the offsets of %d partitions, such as %s",
            connection.alias,
            len(silent),
            f"{topic}-{partition}: {why}",
        )
    return by_partition, codes


def _wait(asked: OffsetRequests, before: Collection[TopicAndPartition]) -> None:
    """Wait for answers, for ANSWER_SECONDS where no leader gives one; for those not for long that
    did not give one `before`."""
    if all(answer.done() for answer in asked.values()):
        return
    ones = {answer.future: answer for key, answer in asked.items() if key not in before}
    answered, late = wait(ones, 0.0)
    while late and all(ones[future].exception() for future in answered):
        answered, late = wait(late, return_when=FIRST_COMPLETED)
    _wait_for_each([asked[key] for key in asked if key not in before], LATE_SECONDS)
    _wait_for_each([asked[key] for key in before], SILENT_SECONDS)


def _wait_for_each(answers: Iterable[OffsetAnswer], seconds: float) -> None:
    """Wait for answers, until none has come for so long: a leader of thousands of partitions that
    has much to do answers one question after another."""
    until = time.monotonic() + seconds
    for future in {answer.future: None for answer in answers}:
        if not future.done() and wait((future,), max(0.0, until - time.monotonic())).done:
            until = time.monotonic() + seconds


def _heard(connection: AdminConnection, key: TopicAndPartition, answer: OffsetAnswer) -> None:
    """Give a leader that answers late the whole time again; called by librdkafka."""
    if answer.exception() is None and answer.result().offset >= 0:
        connection.silent = connection.silent.difference([key])


def _learn_leaders(connection: AdminConnection) -> None:
    """Let the next question go to those that lead now. librdkafka 2 keeps what it knows of a leader
    that died, and goes on to find none, for as long as no client asks for metadata: 90 seconds were
    seen."""
    try:
        connection.current.client.list_topics(timeout=_METADATA_SECONDS)
    except KafkaException as error:
        why = reason_of(error.args[0])
        logger.warning("cluster %s does not say who leads: %s", connection.alias, why)


def end_of(answer: ListOffsetsResultInfo) -> LogEnd:
    """Where a log ends, as its leader answered."""
    epoch = answer.leader_epoch
    return LogEnd(answer.offset, None if epoch is None or epoch < 0 else int(epoch))
