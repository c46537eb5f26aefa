"""Topics are described without their partitions as confluent-kafka describes them, and so are
their configs."""

import ctypes as C
import gc
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, KafkaError, KafkaException, TopicCollection, cimpl

from mirrorlake.kafka.access import described
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_configs import Described, describe_topic_configs
from mirrorlake.kafka.admin_connection import AdminConnection
from mirrorlake.kafka.quick_admin import FEW_QUESTIONS, MANY_TOPICS, QuickAdmin
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.kafka.values import ConfigValue
from mirrorlake.native.describer import Describer, Description
from mirrorlake.native.offset_asker import OffsetAsker
from tests.support.clusters import ClusterPair
from tests.support.control import set_configs
from tests.support.kafka import (
    create_topic,
    delete_topic,
    numbered,
    transactional_producer,
    truncate,
    write,
)
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


def is_described(answer: Any) -> bool:
    return isinstance(answer, tuple)


def test_both_ways_say_the_same(clusters: ClusterPair) -> None:
    run = uuid.uuid4().hex[:8]
    names = [f"described-{run}-{number}" for number in range(3)]
    for number, name in enumerate(names):
        create_topic(clusters.east, name, number + 1)
    client = QuickAdmin({**SETTINGS, "bootstrap.servers": clusters.east})
    until(lambda: all(map(is_described, asked(client, names).values())), "all are known")
    names += [f"described-{run}-gone-{number}" for number in range(MANY_TOPICS)]
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
    until(lambda: is_described(asked(client, names)[names[0]]), "brokers know the new one")
    was, again = answers[-1][names[0]], asked(client, names)[names[0]]
    assert again[0] != was[0], "the topic was made again"
    assert described(client, names)[names[0]].topic_id == again[0]


def test_configs_are_told_as_confluent_kafka_tells_them(clusters: ClusterPair) -> None:
    """Those that are what they were as the same objects, also of two topics that are alike."""
    run = uuid.uuid4().hex[:8]
    plain, twin, other = (f"configs-{run}-{name}" for name in ("plain", "twin", "other"))
    create_topic(clusters.east, plain), create_topic(clusters.east, twin)
    create_topic(clusters.east, other, **{"retention.ms": "7", "cleanup.policy": "compact,delete"})
    names = [plain, twin, other]
    names += [f"configs-{run}-gone-{number}" for number in range(MANY_TOPICS)]
    admin = ClusterAdmin("east", {**SETTINGS, "bootstrap.servers": clusters.east})
    until(lambda: describe_topic_configs(admin, [other]).configs, "all brokers know it")
    answers = [describe_topic_configs(admin, names) for _ in range(FEW_QUESTIONS + 2)]
    first, last = answers[0], answers[-1]
    assert admin.client._describer is not None
    assert first.configs.keys() == {plain, twin, other} and not first.refused
    assert first == answers[FEW_QUESTIONS] == last
    assert first.configs[other]["retention.ms"] == ConfigValue("7", "topic")
    assert last.configs[plain] is last.configs[twin] is answers[-2].configs[plain]
    set_configs(clusters.east, twin, {"retention.ms": "8"})

    def by(client: ClusterAdmin) -> Described:
        return describe_topic_configs(client, names)

    until(lambda: by(admin).configs[twin]["retention.ms"].value == "8", "the change is told")
    fresh = ClusterAdmin("east", {**SETTINGS, "bootstrap.servers": clusters.east})
    assert by(admin) == by(fresh) and fresh.client._describer is None
    assert by(admin).configs[plain] is last.configs[plain]


def test_metadata_says_as_much_as_confluent_kafka_makes_of_it(clusters: ClusterPair) -> None:
    """The same object as long as nothing moves."""
    run = uuid.uuid4().hex[:8]
    names = [f"layout-{run}-{number}" for number in range(MANY_TOPICS)]
    for number, name in enumerate(names):
        create_topic(clusters.east, name, 1 + number % 3)
    settings = {**SETTINGS, "bootstrap.servers": clusters.east}
    admin = ClusterAdmin("east", settings)
    until(lambda: names_of(admin) >= set(names), "all are shown")
    for _ in range(FEW_QUESTIONS + 1):
        admin.topics()
    assert admin.client._describer is not None, "it was asked more than twice"
    python = AdminConnection("east", LiveSettings(lambda: settings))
    assert admin._connection.metadata() == python.metadata()
    fresh = ClusterAdmin("east", settings)
    assert admin.cluster_id() == fresh.cluster_id()
    assert admin.topics() == fresh.topics() and admin.topics() is admin.topics()
    assert admin.addresses() == fresh.addresses()
    assert admin.known_brokers() == fresh.known_brokers()
    delete_topic(clusters.east, names[0])
    create_topic(clusters.east, f"{names[0]}-new", 2)
    until(lambda: f"{names[0]}-new" in names_of(admin), "it is shown")
    until(lambda: names[0] not in names_of(admin), "the other one is gone")
    assert admin.topics() == ClusterAdmin("east", settings).topics()


def names_of(admin: ClusterAdmin) -> set[str]:
    return {*admin.topics()}


def test_offsets_are_told_as_confluent_kafka_tells_them(clusters: ClusterPair) -> None:
    """Starts, ends, stable ends, times, epochs, and of partitions that are not there."""
    topic = f"offsets-{uuid.uuid4().hex[:8]}"
    create_topic(clusters.east, topic, MANY_TOPICS)
    write(clusters.east, topic, numbered(90, MANY_TOPICS - 1))
    truncate(clusters.east, topic, 2, 3)
    producer = transactional_producer(clusters.east)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=5)
    producer.flush(30)
    keys = [(topic, number) for number in reversed(range(MANY_TOPICS + 2))]  # two are not there
    settings = {**SETTINGS, "bootstrap.servers": clusters.east}
    admin, fresh = ClusterAdmin("east", settings), ClusterAdmin("east", settings)
    for _ in range(FEW_QUESTIONS + 1):
        admin.end_offsets(keys, skip_silent=True)
    assert admin.client._describer is not None

    def told(by: ClusterAdmin, keys: list[tuple[str, int]]) -> list[Any]:
        return [
            by.start_offsets(keys, skip_silent=True),
            by.end_offsets(keys, skip_silent=True),
            by.end_offsets(keys, committed=False, skip_silent=True),
            by.log_ends(keys),
            by.high_watermarks(keys),
            by.written_since(keys, 1_600_000_000_000),
            by.offsets_at(keys[2:], 1_600_000_000_000),
            by.offsets_at(keys[2:], 3_000_000_000_000),
        ]

    answers = told(admin, keys)
    # fewer than many are asked for in confluent-kafka's way
    parts = [told(fresh, keys[start : start + 4]) for start in (0, 2, 6, 10, 14, 18)]
    for kind, answer in enumerate(answers[:6]):
        assert answer == {key: at for part in parts for key, at in part[kind].items()}
    assert fresh.client._describer is None
    starts, stable, ends = answers[0], answers[1], answers[2]
    assert starts[topic, 3] == 2 and len(starts) == MANY_TOPICS
    assert stable[topic, 5] < ends[topic, 5]
    assert answers[-1] == {}
    with pytest.raises(KafkaException):
        admin.end_offsets(keys)
    producer.abort_transaction(30)


def test_where_no_broker_answers_it_is_an_error_in_time() -> None:
    describer = Describer({**SETTINGS, "bootstrap.servers": "127.0.0.1:1"})
    began = time.monotonic()
    with pytest.raises(KafkaException):
        describer.describe(["orders"], True, 1.0)
    with pytest.raises(KafkaException):
        describer.configs(["orders"], 1.0)
    with pytest.raises(KafkaException):
        describer.layout(1.0)
    with pytest.raises(KafkaException):
        describer.offsets([("orders", 0)], -1, 0, 1.0).result(10)
    assert time.monotonic() - began < 12.0


def test_its_client_ends_with_it(clusters: ClusterPair) -> None:
    """And who waits for an answer hears of it."""
    describer = Describer({**SETTINGS, "bootstrap.servers": clusters.east})
    answer = describer.describe(["no-such-topic"], False, 15.0)["no-such-topic"]
    assert not isinstance(answer, Description)
    thread, threads = describer._offsets.thread, C.CDLL(cimpl.__file__).rd_kafka_thread_cnt
    during = threads()
    waits = Describer({**SETTINGS, "bootstrap.servers": "127.0.0.1:1"})
    asked, other = waits.offsets([("orders", 0)], -1, 0, 60.0), waits._offsets.thread
    del describer, waits
    gc.collect()
    with pytest.raises(KafkaException, match="DESTROY"):
        asked.result(30)
    for ending in (thread, other):
        ending.join(30)
        assert not ending.is_alive()
    assert threads() < during


def test_what_no_thread_takes_is_not_waited_for(
    clusters: ClusterPair, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither an answer that ends the thread that takes them, nor what is asked behind it."""

    def fail(*_: object) -> None:
        raise SystemExit  # of which threads make no noise

    create_topic(clusters.east, topic_name)
    describer = Describer({**SETTINGS, "bootstrap.servers": clusters.east})
    monkeypatch.setattr(OffsetAsker, "_take", fail)
    for _ in range(2):
        future = describer.offsets([(topic_name, 0)], OFFSET_END, 0, 10.0)
        with pytest.raises(KafkaException) as raised:
            future.result(30)
        assert raised.value.args[0].code() == KafkaError._DESTROY
    assert describer.over
    client = QuickAdmin({**SETTINGS, "bootstrap.servers": clusters.east})
    client._describer = describer
    assert client.of_many("offsets", 1) is None, "another one is made, once many are asked for"
    described_still = describer.describe([topic_name], False, 10.0)[topic_name]
    assert isinstance(described_still, Description)
