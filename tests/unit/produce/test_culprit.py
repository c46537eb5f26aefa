"""What a failed transaction is said to be refused for: the record or the topic that is, whatever
only came after it."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import TargetRefused
from mirrorlake.kafka.error_classes import CLASSES, ErrorClass
from mirrorlake.produce.culprit import TopicDenied, check_refused, is_reason_known
from mirrorlake.produce.delivery import Chunk, Delivery
from mirrorlake.produce.patience import Patience
from mirrorlake.produce.record_producer import OffsetsUnknown
from mirrorlake.produce.report import Ended
from mirrorlake.produce.writer import ABORT_SECONDS, ShardWriter

PURGED, STATE, OTHER = (
    KafkaError._PURGE_QUEUE,
    KafkaError._STATE,
    KafkaError._INVALID_DIFFERENT_RECORD,
)
TOO_LARGE, OLD = KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_TIMESTAMP


def result(partition: int, codes: Sequence[int], topic: str = "t", exact: bool = True) -> Delivery:
    """A chunk whose rows, of offsets 100, 102, ..., became this: codes of errors, 0 for what was
    taken."""
    plan: Any = SimpleNamespace(topic=topic, target_topic=f"east.{topic}", partition=partition)
    rows = pa.record_batch({"offset": pa.array(range(len(codes)))})
    refused = np.array(codes) if any(codes) else None
    shipment: Any = SimpleNamespace(refused=lambda: refused, exact=exact, taken=len(codes))
    chunk = Chunk(plan, rows, np.arange(100, 100 + 2 * len(codes), 2))
    return Delivery(chunk, shipment, Patience())


def raised(results: Sequence[Delivery], failure: int | None = None) -> Any:
    """What is said of a transaction."""
    with pytest.raises((TargetRefused, TopicDenied, KafkaException, OffsetsUnknown)) as error:
        check_refused(results, lambda: None if failure is None else KafkaError(failure))
    return error.value


@pytest.mark.parametrize("order", [1, -1])
def test_what_other_partitions_were_purged_for_is_no_reason(order: int) -> None:
    others = [result(0, [0, PURGED]), result(1, [PURGED] * 3), result(3, [STATE])]
    refusal = raised([*others, result(2, [0, 0, TOO_LARGE, PURGED])][::order])
    assert (refusal.topic_partition, refusal.first_offset, refusal.last_offset) == (
        ("t", 2),
        104,
        104,
    )
    assert refusal.reason == "MSG_SIZE_TOO_LARGE" and is_reason_known(others) is False


def test_a_record_is_told_from_the_others_of_its_batch() -> None:
    refusal = raised([result(0, [OTHER, OTHER, OLD, OTHER, PURGED])])
    assert (refusal.first_offset, refusal.last_offset, refusal.reason) == (
        104,
        104,
        "INVALID_TIMESTAMP",
    )


def test_a_batch_that_is_refused_as_a_whole_is_named_as_far_as_it_goes() -> None:
    refusal = raised([result(0, [0, TOO_LARGE, TOO_LARGE, TOO_LARGE, PURGED])])
    assert (refusal.first_offset, refusal.last_offset) == (102, 106)


def test_a_topic_that_is_refused_is_named_where_it_is_known() -> None:
    denied = raised([result(0, [PURGED]), result(0, [KafkaError.TOPIC_AUTHORIZATION_FAILED], "u")])
    assert denied.names == {"u": "east.u"} and denied.right == "WRITE"
    denied = raised(
        [result(0, [PURGED]), result(0, [PURGED], "u")], KafkaError.TOPIC_AUTHORIZATION_FAILED
    )
    assert denied.names == {}


def test_what_is_not_seen_row_by_row_is_sent_once_more_to_know_the_record() -> None:
    assert raised([result(0, [0, 0, PURGED], exact=False)], TOO_LARGE).refused
    assert raised([result(0, [TOO_LARGE, 0, PURGED], exact=False)], TOO_LARGE).refused
    assert isinstance(
        raised([result(0, [0, 0, PURGED], exact=False)], KafkaError._TIMED_OUT), KafkaException
    )


@pytest.mark.parametrize(
    "code", [code for code, kind in CLASSES.items() if code and kind is not ErrorClass.RECORD]
)
def test_what_is_not_about_a_record_is_never_blamed_on_one(code: int) -> None:
    """Each code of librdkafka's, in a delivery report, and as what failed the transaction."""
    topic = CLASSES[code] is ErrorClass.TOPIC
    for error in (raised([result(0, [0, code])]), raised([result(0, [PURGED])], code)):
        assert isinstance(error, TopicDenied if topic else KafkaException), error
        assert topic or error.args[0].code() == code


def test_what_was_taken_is_not_refused() -> None:
    check_refused([result(0, [0, 0])], lambda: KafkaError(TOO_LARGE))
    assert (
        is_reason_known([result(0, [0])]) is None
        and is_reason_known([result(0, [0]), result(1, [OLD])]) is True
    )


def test_an_abort_that_waits_for_what_nobody_sends_is_called_again() -> None:
    calls: list[float] = []
    answers = [
        KafkaError(KafkaError._TIMED_OUT, "", False, True, False),
        None,
        KafkaError(KafkaError._FENCED),
    ]

    def abort(seconds: float) -> None:
        calls.append(seconds)
        if error := answers[len(calls) - 1]:
            raise KafkaException(error)

    writer = ShardWriter.__new__(ShardWriter)
    writer._ended = Ended()
    writer._patience, made = Patience(), SimpleNamespace(abort_transaction=abort)
    writer._producer = made  # type: ignore[assignment]
    writer._abort()
    assert calls == [ABORT_SECONDS] * 2
    assert writer.take_ended() == Ended(aborts=1) and writer.take_ended() == Ended()
    with pytest.raises(KafkaException):
        writer._abort()
