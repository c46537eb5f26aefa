"""Every error of the installed librdkafka is about something that is known."""

from collections import Counter

import pytest
from confluent_kafka import KafkaError

from mirrorlake.kafka.error_classes import CLASSES, NAMES, ErrorClass, class_of

CODES = {
    name: value for name in dir(KafkaError) if isinstance(value := getattr(KafkaError, name), int)
}


def test_each_code_has_a_class() -> None:
    assert len(CODES) > 180
    assert {name for name, code in CODES.items() if code not in CLASSES} == set()


def test_each_name_has_one_class_and_is_one_of_librdkafkas() -> None:
    names = Counter(name for listed in NAMES.values() for name in listed)
    assert [name for name, count in names.items() if count > 1] == []
    assert names.keys() - CODES.keys() == set()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MSG_SIZE_TOO_LARGE", ErrorClass.RECORD),
        ("TOPIC_AUTHORIZATION_FAILED", ErrorClass.TOPIC),
        ("_PURGE_QUEUE", ErrorClass.PRODUCER),
        ("INVALID_PRODUCER_ID_MAPPING", ErrorClass.PRODUCER),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", ErrorClass.CLUSTER),
        ("INVALID_TRANSACTION_TIMEOUT", ErrorClass.OURSELVES),
    ],
)
def test_it_goes_by_the_code(name: str, kind: ErrorClass) -> None:
    assert class_of(CODES[name]) is class_of(KafkaError(CODES[name])) is kind


def test_what_ended_a_client_is_the_clients() -> None:
    assert class_of(KafkaError(KafkaError._STATE, "", True, False, False)) is ErrorClass.PRODUCER
    assert (
        class_of(KafkaError(KafkaError.INVALID_RECORD, "", True, False, False))
        is ErrorClass.PRODUCER
    )
    refused = KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED, "", True, False, False)
    assert class_of(refused) is ErrorClass.CLUSTER


def test_a_code_of_a_newer_version_is_tried_again() -> None:
    assert class_of(30_000) is ErrorClass.CLUSTER
