"""librdkafka's own stand-in for a cluster, in this process: partitions that can be written and
fetched, and no more of Kafka."""

import ctypes as C
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer, cimpl

_P = C.c_void_p
_FUNCTIONS: Mapping[str, tuple[object, list[object]]] = {
    "conf_new": (_P, []),
    "conf_set": (C.c_int, [_P, C.c_char_p, C.c_char_p, _P, C.c_size_t]),
    "new": (_P, [C.c_int, _P, _P, C.c_size_t]),
    "destroy": (None, [_P]),
    "mock_cluster_new": (_P, [_P, C.c_int]),
    "mock_cluster_destroy": (None, [_P]),
    "mock_cluster_bootstraps": (C.c_char_p, [_P]),
    "mock_topic_create": (C.c_int, [_P, C.c_char_p, C.c_int, C.c_int]),
    "mock_partition_set_leader": (C.c_int, [_P, C.c_char_p, C.c_int32, C.c_int32]),
    "mock_broker_set_rtt": (C.c_int, [_P, C.c_int32, C.c_int]),
    "mock_broker_set_down": (C.c_int, [_P, C.c_int32]),
    "mock_broker_set_up": (C.c_int, [_P, C.c_int32]),
}


@dataclass(frozen=True)
class MockKafka:
    """Such a cluster, at an address. Its brokers count from 1."""

    address: str
    library: Any
    cluster: Any

    def lead(self, topic: str, partition: int, broker: int) -> None:
        """Have a broker lead a partition."""
        set_leader = self.library.rd_kafka_mock_partition_set_leader
        assert set_leader(self.cluster, topic.encode(), partition, broker) == 0

    def answer_after(self, broker: int, seconds: float) -> None:
        """Have a broker take so long for each answer."""
        set_time = self.library.rd_kafka_mock_broker_set_rtt
        assert set_time(self.cluster, broker, int(seconds * 1_000)) == 0

    def down(self, broker: int) -> None:
        """Have a broker take no connection, until it is `up` again."""
        assert self.library.rd_kafka_mock_broker_set_down(self.cluster, broker) == 0

    def up(self, broker: int) -> None:
        """Have a broker take connections again."""
        assert self.library.rd_kafka_mock_broker_set_up(self.cluster, broker) == 0


@contextmanager
def mock_kafka(topics: Mapping[str, int]) -> Iterator[str]:
    """A cluster of one broker with topics of so many partitions; gives its address."""
    with mock_brokers(topics, 1) as kafka:
        yield kafka.address


@contextmanager
def mock_brokers(topics: Mapping[str, int], brokers: int) -> Iterator[MockKafka]:
    """A cluster of some brokers with topics of so many partitions, each of one replica."""
    library = C.CDLL(cimpl.__file__)
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    settings = library.rd_kafka_conf_new()
    library.rd_kafka_conf_set(settings, b"log_level", b"0", None, 0)
    client = library.rd_kafka_new(0, settings, None, 0)
    cluster = library.rd_kafka_mock_cluster_new(client, brokers)
    try:
        for topic, partitions in topics.items():
            assert library.rd_kafka_mock_topic_create(cluster, topic.encode(), partitions, 1) == 0
        address = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()
        yield MockKafka(address, library, cluster)
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(client)


def write_to_mock(address: str, topic: str, partitions: list[int]) -> None:
    """Write a record into each of some partitions."""
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for partition in partitions:
        producer.produce(topic, b"x", partition=partition)
    assert producer.flush(20) == 0
