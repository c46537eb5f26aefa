"""Topics are described without their partitions as confluent-kafka describes them."""

import ctypes as C
import gc
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, cimpl

from mirrorlake.kafka.access import described
from mirrorlake.kafka.quick_admin import FEW_QUESTIONS, MANY_TOPICS, QuickAdmin
from mirrorlake.native.topic_describer import Description, TopicDescriber
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, delete_topic
from tests.support.waiting import until

SETTINGS: Mapping[str, str | int | bool] = {"log_level": 0}


def asked(client: QuickAdmin, names: list[str]) -> dict[str, Any]:
    """What a client answers now, by the names of topics: id, partitions and rights, or the code of
    an error."""

    def answer(future: "Future[Any]") -> Any:
        try:
            topic = future.result()
        except KafkaException as error:
            return error.args[0].code()
        rights = frozenset(each.name for each in topic.authorized_operations or ())
        return str(topic.topic_id), len(topic.partitions), rights

    futures = client.describe_topics(
        TopicCollection(names), include_authorized_operations=True, request_timeout=15.0
    )
    return {name: answer(future) for name, future in futures.items()}


def test_both_ways_say_the_same(clusters: ClusterPair) -> None:
    run = uuid.uuid4().hex[:8]
    names = [f"described-{run}-{number}" for number in range(3)]
    for number, name in enumerate(names):
        create_topic(clusters.east, name, number + 1)
    names += [f"described-{run}-gone-{number}" for number in range(MANY_TOPICS)]
    client = QuickAdmin({**SETTINGS, "bootstrap.servers": clusters.east})
    answers = [asked(client, names) for _ in range(FEW_QUESTIONS)]
    assert client._describer is None, "a command that asks once opens no second client"
    answers.append(asked(client, names))
    assert client._describer is not None
    assert answers[0] == answers[-1] and len(answers[0]) == len(names)
    topic_id, partitions, rights = answers[-1][names[2]]
    assert topic_id and partitions == 3 and "READ" in rights
    assert answers[-1][names[-1]] == KafkaError.UNKNOWN_TOPIC_OR_PART
    delete_topic(clusters.east, names[0])
    create_topic(clusters.east, names[0], 1)
    was, again = answers[-1][names[0]], asked(client, names)[names[0]]
    assert again[0] != was[0], "the topic was made again"
    assert described(client, names)[names[0]].topic_id == again[0]


def test_where_no_broker_answers_it_is_an_error_in_time() -> None:
    describer = TopicDescriber({**SETTINGS, "bootstrap.servers": "127.0.0.1:1"})
    began = time.monotonic()
    with pytest.raises(KafkaException):
        describer.describe(["orders"], True, 1.0)
    assert time.monotonic() - began < 5.0


def test_its_client_ends_with_it(clusters: ClusterPair) -> None:
    threads = C.CDLL(cimpl.__file__).rd_kafka_thread_cnt
    gc.collect()
    before = threads()
    describer = TopicDescriber({**SETTINGS, "bootstrap.servers": clusters.east})
    answer = describer.describe(["no-such-topic"], False, 15.0)["no-such-topic"]
    assert not isinstance(answer, Description) and threads() > before
    del describer
    gc.collect()
    until(lambda: threads() <= before, "the client's threads end")
