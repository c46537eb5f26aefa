"""Topics written to and read back, record by record, as any other client of the clusters would."""

import time
import uuid
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorlake.offsets.positions import TopicAndPartition

#: How long a transaction may be open until what is behind its beginning is left out, seconds: a
#: broker writes markers some time after it has answered a commit.
MARKERS_SECONDS = 1.0

Headers = list[tuple[str, bytes | None]] | None


class Record(NamedTuple):
    """A record as a consumer gets it; `timestamp` in ms."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int


class NewRecord(NamedTuple):
    """A record to be written; timestamp 0 is now."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    headers: Headers = None
    timestamp: int = 0


def create_topic(bootstrap: str, topic: str, partitions: int = 1, **config: str) -> None:
    """Make a topic; `config` keys have `_` for `.`."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)], operation_timeout=20)[
        topic
    ].result(30)


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic and wait until the broker has."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic], operation_timeout=20)[topic].result(30)


def truncate(bootstrap: str, topic: str, offset: int, partition_number: int = 0) -> None:
    """What retention and `delete-records` do: everything of a partition below an offset is gone."""
    partition, admin = (
        TopicPartition(topic, partition_number, offset),
        AdminClient({"bootstrap.servers": bootstrap}),
    )
    admin.delete_records([partition])[partition].result(30)


def write(bootstrap: str, topic: str, records: Iterable[NewRecord], **settings: str | int) -> None:
    """Write records and wait for every acknowledgement; `settings` keys have `_` for `.`. Each is
    there once, also where a broker that was just started, or is under load, answers too late and
    the client sends again."""
    failed: list[object] = []
    extra = {key.replace("_", "."): value for key, value in settings.items()}
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, **extra}
    )
    for record in records:
        send(producer, topic, record, failed)
    assert producer.flush(60) == 0
    assert not failed, failed


def send(
    producer: Producer, topic: str, record: NewRecord, failed: list[object] | None = None
) -> None:
    """Hand one record to a producer, when its queue has room."""

    def told(error: object, _message: object) -> None:
        if error is not None and failed is not None:
            failed.append(error)

    extra = {} if record.headers is None else {"headers": record.headers}
    place = {"partition": record.partition, "timestamp": record.timestamp}
    while True:
        try:
            producer.produce(topic, record.value, record.key, on_delivery=told, **place, **extra)
            break
        except BufferError:  # records leave it within their timeout
            producer.poll(0.1)
    producer.poll(0)


def numbered(count: int, partitions: int = 1, start: int = 0, size: int = 1) -> list[NewRecord]:
    """Records that can be told apart: the value is its number, `size` times."""
    return [
        NewRecord(f"{number}|".encode() * size, f"k{number % 17}".encode(), number % partitions)
        for number in range(start, start + count)
    ]


def transactional_producer(bootstrap: str, **settings: str | int) -> Producer:
    """A producer with a transactional id of its own, initialised; `settings` keys have `_` for
    `.`."""
    extra = {key.replace("_", "."): value for key, value in settings.items()}
    name = f"test-{uuid.uuid4().hex}"
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0, **extra}
    )
    # one that knows no broker yet asks for its coordinator half a second on
    producer.list_topics(timeout=20)
    producer.init_transactions(30)
    return producer


def write_transactions(producer: Producer, topic: str, count: int, longest: int) -> None:
    """So many transactions in two partitions, of 1 to `longest` records; of three one is
    aborted."""
    for number in range(count):
        producer.begin_transaction()
        for index in range(number % longest + 1):
            send(producer, topic, NewRecord(b"%d.%d" % (number, index), b"k", index % 2))
        if number % 3 == 1:
            producer.flush(30)
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


def partition_count(bootstrap: str, topic: str) -> int:
    """How many partitions a topic has; 0 when there is none."""
    found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).topics.get(topic)
    return 0 if found is None or found.error is not None else len(found.partitions)


def topics_of(bootstrap: str) -> set[str]:
    """All topics of a cluster."""
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).topics)


def read_topic(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[list[Record]]:
    """All of a topic, per partition, in order, up to the end."""
    return read_topics(bootstrap, [topic], isolation)[topic]


def record_count(bootstrap: str, topic: str, isolation: str = "read_committed") -> int:
    """How many records a topic has."""
    return sum(map(len, read_topic(bootstrap, topic, isolation)))


def assign(consumer: Consumer, places: Iterable[TopicPartition]) -> None:
    """Have a consumer read from some places: one that does not know leaders asks for them half a
    second on."""
    consumer.list_topics(timeout=20)
    consumer.assign(list(places))


def taken(consumer: Consumer, seconds: float, most: int = 10_000) -> list[Message]:
    """What a consumer has; if nothing yet, what comes within so many seconds: `consume` would wait
    for all of them."""
    return consumer.consume(1, timeout=seconds) + consumer.consume(most, timeout=0)


def read_topics(
    bootstrap: str, topics: Iterable[str], isolation: str = "read_committed"
) -> Mapping[str, list[list[Record]]]:
    """All of some topics: a list per partition of its records in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"read-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # so long it takes to hear of an end
        }
    )
    try:
        there = consumer.list_topics(
            timeout=20
        ).topics  # one that does not know leaders asks for them half a second on
        found = {
            topic: [[] for _ in (there[topic].partitions if topic in there else ())]
            for topic in topics
        }
        waiting = {
            (topic, partition) for topic, held in found.items() for partition in range(len(held))
        }
        consumer.assign(
            [TopicPartition(topic, partition, OFFSET_BEGINNING) for topic, partition in waiting]
        )
        heard = time.monotonic()
        opened: dict[TopicAndPartition, float] = {}
        while waiting:
            messages = taken(consumer, 0.1)
            now = time.monotonic()
            heard = now if messages else heard
            assert now - heard < 30, f"no answer for {sorted(waiting)}"
            for message in messages:
                key = (message.topic(), message.partition())
                if message.error() is None:
                    value = (
                        message.key(),
                        message.value(),
                        message.headers(),
                        message.timestamp()[1],
                    )
                    found[key[0]][key[1]].append(Record(message.offset(), *value))
                elif (
                    message.offset()
                    < consumer.get_watermark_offsets(TopicPartition(*key), cached=True)[1]
                ):
                    # behind it is a transaction whose marker may be on its way
                    opened.setdefault(key, now)
                else:
                    waiting.discard(key)
            waiting -= {key for key, since in opened.items() if now - since > MARKERS_SECONDS}
    finally:
        consumer.close()
    return found
