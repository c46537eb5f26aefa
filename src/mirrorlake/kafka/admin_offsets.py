"""Queries offsets of many partitions at once; a leader that does not answer holds up no other.

A question has one future for all of its partitions, and its answer consists of lists.
confluent-kafka makes a future for each partition, with a lock and a condition: for thousands of
partitions that took four fifths of a question's CPU time, and other objects most of the rest.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import OFFSET_END, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from mirrorlake.kafka.admin_connection import ANSWER_SECONDS, AdminConnection
from mirrorlake.kafka.quick_admin import QuickAdmin
from mirrorlake.kafka.refusals import reason_of
from mirrorlake.native.describer import Describer
from mirrorlake.native.offset_asker import OffsetAnswers, answers_by
from mirrorlake.offsets.positions import LogEnd, TopicAndPartition

logger = logging.getLogger(__name__)

#: Partitions per question: librdkafka (2.16) searches all of them for each answer.
_AT_ONCE = 250
#: librdkafka's errors for partitions that have a new leader by now.
_LEADER_MOVED = {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
}
#: How long a broker may take to name the leaders, seconds.
_METADATA_SECONDS = 5.0

Read = TypeVar("Read")


class OffsetQuestion:
    """Its answers arrive together: `future` has `OffsetAnswers`, or confluent-kafka's."""

    def __init__(self, keys: Sequence[TopicAndPartition], future: "Future[Any]") -> None:
        self.keys, self.future = keys, future
        self._told: OffsetAnswers | None = None

    def told(self) -> OffsetAnswers:
        """Wait for the answers. The offset is OFFSET_END if no record is as late as requested.
        Raises KafkaException if the question failed as a whole."""
        if self._told is None:
            answer = self.future.result()
            told = answer if isinstance(answer, OffsetAnswers) else answers_by(answer)
            if min(told.offsets, default=0) < OFFSET_END:
                # librdkafka reports no error, but OFFSET_INVALID (-1001) as the offset, if a
                # partition lost its leader during the question. No log begins or ends there: as an
                # end, it would mean that the log went back.
                pairs = zip(told.offsets, told.errors, strict=True)
                unsaid = KafkaError.LEADER_NOT_AVAILABLE
                errors = [code or (unsaid if at < OFFSET_END else 0) for at, code in pairs]
                told = told._replace(errors=errors)
            self._told = told
        return self._told

    def is_refused(self) -> bool:
        """Whether all answers are errors."""
        return self.future.exception() is not None or all(self.told().errors)


#: The questions of one query, each to one leader, as far as leaders are known.
OffsetRequests = Sequence[OffsetQuestion]


def ask_offsets(
    client: "QuickAdmin | Describer",
    keys: Sequence[TopicAndPartition],
    spec: OffsetSpec,
    level: IsolationLevel,
) -> OffsetQuestion:
    """Send a question without waiting."""
    if isinstance(client, Describer):
        future = client.offsets(keys, spec._value, level.value, ANSWER_SECONDS)
        return OffsetQuestion(keys, future)
    asked: Future[Any] = Future()
    asked.set_running_or_notify_cancel()
    wanted = [TopicPartition(topic, partition, spec._value) for topic, partition in keys]
    # What `AdminClient.list_offsets` calls after it has made its futures.
    options = {"isolation_level_value": level.value, "request_timeout": ANSWER_SECONDS}
    super(AdminClient, client).list_offsets(wanted, asked, **options)
    return OffsetQuestion(keys, asked)


#: How long to wait for more leaders after the last answer; then for those silent before, s.
LATE_SECONDS, SILENT_SECONDS = 4.0, 2.0
_NOTHING = OffsetAnswers([], [], [], [], [])


def ask(
    connection: AdminConnection,
    partitions: Iterable[TopicAndPartition],
    spec: OffsetSpec,
    committed: bool,
) -> OffsetRequests:
    """Query offsets; with `committed` the end is the last stable offset (read_committed). Sends all
    questions at once, one for each known leader, since the answers to a question arrive together;
    partitions that did not answer the last time get their own."""
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    keys = dict.fromkeys(partitions)  # librdkafka refuses duplicates in a question
    if not keys:
        return []
    client = connection.connected().client
    describer = client.of_many("offsets", len(keys))
    return [
        ask_offsets(client if describer is None else describer, each, spec, level)
        for each in _questions(connection, keys)
    ]


def _questions(
    connection: AdminConnection, keys: Iterable[TopicAndPartition]
) -> list[list[TopicAndPartition]]:
    """Divide partitions into questions, by their leaders as far as known."""
    topics, silent = connection.topics_known(), connection.silent
    groups: dict[tuple[int | None, bool], list[TopicAndPartition]] = {}
    of_topic: str | None = None
    leaders: Mapping[int, int] = {}
    for key in keys:
        topic, number = key
        if topic != of_topic:  # keys usually come topic by topic
            known, of_topic = topics.get(topic), topic
            leaders = {} if known is None else known.leaders
        group = leaders.get(number), key in silent if silent else False
        if group in groups:
            groups[group].append(key)
        else:
            groups[group] = [key]
    return [
        group[start : start + _AT_ONCE]
        for group in groups.values()
        for start in range(0, len(group), _AT_ONCE)
    ]


def offsets_of(told: OffsetAnswers) -> dict[TopicAndPartition, int]:
    """The offsets alone."""
    return dict(zip(told.keys, told.offsets, strict=True))


def ends_of(told: OffsetAnswers) -> dict[TopicAndPartition, LogEnd]:
    """The log ends by partition, with the epochs of their leaders."""
    epochs = [None if epoch < 0 else epoch for epoch in told.epochs]
    return dict(zip(told.keys, map(LogEnd, told.offsets, epochs), strict=True))


def answers(
    connection: AdminConnection,
    asked: OffsetRequests,
    read: "Callable[[OffsetAnswers], Mapping[TopicAndPartition, Read]]",
) -> dict[TopicAndPartition, Read]:
    """The leaders' answers by partition, without those that lack an answer or so late a record."""
    by_partition, codes = arrived(connection, asked, read)
    if codes & _LEADER_MOVED:
        _learn_leaders(connection)
    return by_partition


def arrived(
    connection: AdminConnection,
    asked: OffsetRequests,
    read: "Callable[[OffsetAnswers], Mapping[TopicAndPartition, Read]]",
) -> tuple[dict[TopicAndPartition, Read], set[int]]:
    """`answers`, and the error codes of partitions that did not answer. Logs one line about them: a
    warning, which counts no partition where it is enough to ask another broker, or that says for
    the first time that its leader has moved, as those of a topic do that was just made."""
    by_partition: dict[TopicAndPartition, Read] = {}
    silent: dict[TopicAndPartition, str] = {}
    moved, codes = set[TopicAndPartition](), set[int]()
    known = connection.silent
    before = {key for each in asked for key in each.keys if key in known} if known else set()
    _wait(asked, before)
    for question in asked:
        if not question.future.done():
            again = "it did not answer the last time either"
            for key in question.keys:
                silent[key] = again if key in before else "it does not answer, as others did"
            codes.add(KafkaError.LEADER_NOT_AVAILABLE)  # it may have a new leader by now
            question.future.add_done_callback(partial(_heard, connection, question))
            continue
        told, errors = _sorted_out(question)
        by_partition |= read(told)
        silent |= {key: reason_of(error) for key, error in errors.items()}
        codes |= {error.code() for error in errors.values()}
        moved |= {
            key
            for key, error in errors.items()
            if error.code() == KafkaError.NOT_LEADER_FOR_PARTITION
            or (error.code() in _LEADER_MOVED and key not in before)
        }
    if silent or before:
        connection.silent = connection.silent.difference(by_partition).union(silent)
    if silent:
        away = {key: why for key, why in silent.items() if key not in moved}
        shown = away or silent
        (topic, partition), why = next(iter(shown.items()))
        logger.log(
            logging.WARNING if away else logging.DEBUG,
            "cluster %s does not report the offsets of %d partitions, such as %s",
            connection.alias,
            len(shown),
            f"{topic}-{partition}: {why}",
        )
    return by_partition, codes


def _sorted_out(
    question: OffsetQuestion,
) -> tuple[OffsetAnswers, dict[TopicAndPartition, KafkaError]]:
    """The answers with an offset, and the errors of other partitions."""
    try:
        told = question.told()
    except KafkaException as error:
        return _NOTHING, dict.fromkeys(question.keys, error.args[0])
    if not any(told.errors) and OFFSET_END not in told.offsets:
        return told, {}
    rows = list(zip(*told, strict=True))
    errors = {key: KafkaError(code) for key, *_, code in rows if code}
    good = [row for row in rows if not row[-1] and row[1] != OFFSET_END]  # it has none so late
    return (OffsetAnswers(*map(list, zip(*good, strict=True))) if good else _NOTHING), errors


def _wait(asked: OffsetRequests, before: Collection[TopicAndPartition]) -> None:
    """Wait for answers: ANSWER_SECONDS if no leader answers, shortly for those silent `before`."""
    if all(question.future.done() for question in asked):
        return
    first = [each for each in asked if each.keys[0] not in before]
    ones = {each.future: each for each in first}
    answered, late = wait(ones, 0.0)
    while late and all(ones[future].is_refused() for future in answered):
        answered, late = wait(late, return_when=FIRST_COMPLETED)
    _wait_for_each(first, LATE_SECONDS)
    _wait_for_each([each for each in asked if each.future not in ones], SILENT_SECONDS)


def _wait_for_each(questions: Iterable[OffsetQuestion], seconds: float) -> None:
    """Wait until none comes for so many seconds: a busy leader answers one after another."""
    until = time.monotonic() + seconds
    for future in (question.future for question in questions):
        if not future.done() and wait((future,), max(0.0, until - time.monotonic())).done:
            until = time.monotonic() + seconds


def _heard(connection: AdminConnection, question: OffsetQuestion, _: object) -> None:
    """Give a leader that answers late the whole time again; called by librdkafka."""
    told, _errors = _sorted_out(question)
    connection.silent = connection.silent.difference(told.keys)


def _learn_leaders(connection: AdminConnection) -> None:
    """Let the next question go to the present leaders. librdkafka 2 keeps a dead leader, and goes
    on to find none, until a client requests metadata: 90 seconds were seen."""
    try:
        connection.current.client.learn_leaders(_METADATA_SECONDS)
    except KafkaException as error:
        why = reason_of(error.args[0])
        logger.warning("cluster %s does not say who leads: %s", connection.alias, why)


def required(asked: OffsetRequests) -> dict[TopicAndPartition, int]:
    """The offsets of all partitions that have one. Raises KafkaException if a leader is silent."""
    offsets: dict[TopicAndPartition, int] = {}
    for question in asked:
        told, errors = _sorted_out(question)
        for error in errors.values():
            raise KafkaException(error)
        offsets |= offsets_of(told)
    return offsets
