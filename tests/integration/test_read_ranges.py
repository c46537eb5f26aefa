"""Each log gives what any consumer gets, record by record, knows when a range is over, and gives
the same Arrow as the other one."""

import ctypes as C
import random
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition, cimpl
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mirrorlake.kafka.log import Log
from mirrorlake.kafka.python_log import PythonLog
from mirrorlake.native import PATIENCE_SECONDS
from mirrorlake.native.columns import SCHEMA
from mirrorlake.native.reader import FETCHED_AGAIN, NativeReader
from tests.support.clusters import ClusterPair
from tests.support.kafka import (
    NewRecord,
    assign,
    create_topic,
    delete_topic,
    numbered,
    taken,
    transactional_producer,
    truncate,
    write,
)
from tests.support.odd_records import ANY_TIME, ODD_TIMES, odd_rows, send_rows
from tests.support.waiting import until

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BYTES = st.none() | st.binary(max_size=40)
HEADERS = st.none() | st.lists(st.tuples(st.text("aß🔑b", max_size=3), BYTES), max_size=4)
RECORDS = st.lists(
    st.builds(
        NewRecord, BYTES, BYTES, st.integers(0, 2), HEADERS, st.integers(0, 1_700_000_000_000)
    ),
    min_size=1,
    max_size=30,
)


Ranges = Mapping[tuple[str, int], tuple[int, int]]
LOGS: dict[str, Callable[..., Log]] = {"native": NativeReader, "in Python": PythonLog}
KINDS = pytest.mark.parametrize(
    "kind",
    [
        "native",
        # what both give is compared by the tests of any topic
        pytest.param(
            "in Python", marks=pytest.mark.wide("test_any_topic_is_read_as_a_consumer_reads_it")
        ),
    ],
)


def opened(
    kind: str, bootstrap: str, keep: bool = False, patience_seconds: float = PATIENCE_SECONDS
) -> Log:
    settings = {"bootstrap.servers": bootstrap, "log_level": 2}
    return LOGS[kind](settings, keep, patience_seconds)


def rows(log: Log, ranges: Ranges) -> dict[tuple[str, int], list[tuple]]:
    """What a log gives of each partition: (offset, timestamp type, timestamp, key, value,
    headers)."""
    found: dict[tuple[str, int], list[tuple]] = {}
    for key, batch in log.read(ranges):
        batch.validate(full=True)
        assert set(batch.column("partition").to_pylist()) == {key[1]}
        found.setdefault(key, []).extend(rows_of(batch))
    return found


def read(kind: str, bootstrap: str, ranges: Ranges) -> dict[tuple[str, int], list[tuple]]:
    """The same by a log that is opened for it."""
    with closing(opened(kind, bootstrap)) as log:
        return rows(log, ranges)


@pytest.fixture
def impatient(clusters: ClusterPair, kind: str) -> Iterator[Log]:
    """For what never comes."""
    with closing(opened(kind, clusters.east, patience_seconds=1.0)) as log:
        yield log


def rows_of(batch: pa.RecordBatch) -> list[tuple]:
    names = ("offset", "timestamp_type", "timestamp", "key", "value")
    columns = [batch.column(name) for name in names]
    columns[2] = columns[2].cast(pa.int64())
    headers = [
        None if row is None else [(item["key"], item["value"]) for item in row]
        for row in batch.column("headers").to_pylist()
    ]
    return list(zip(*(column.to_pylist() for column in columns), headers, strict=True))


def consumed(bootstrap: str, ranges: Ranges) -> dict[tuple[str, int], list[tuple]]:
    """The same by confluent-kafka's consumer."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid.uuid4().hex,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,
        }
    )
    assign(consumer, [TopicPartition(*key, first) for key, (first, _) in ranges.items()])
    found: dict[tuple[str, int], list[tuple]] = {}
    ended: set[tuple[str, int]] = set()
    while len(ended) < len(ranges):
        for message in taken(consumer, 1.0):
            key = (message.topic(), message.partition())
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF
                ended.add(key)
            elif message.offset() < ranges[key][1]:
                kind, at = message.timestamp()
                row = (
                    message.offset(),
                    kind - 1,
                    at,
                    message.key(),
                    message.value(),
                    message.headers(),
                )
                found.setdefault(key, []).append(row)
    consumer.close()
    return found


def log_ends(bootstrap: str, topic: str, partitions: int) -> dict[tuple[str, int], tuple[int, int]]:
    """From the start to the last stable offset of each partition."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "ends", "isolation.level": "read_committed"}
    )
    found = {}
    for partition in range(partitions):
        while (topic, partition) not in found:
            with suppress(KafkaException):  # a leader may be new to it
                found[topic, partition] = consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), 10
                )
    consumer.close()
    return found


@settings(
    max_examples=settings.default.max_examples // 25,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    rounds=st.lists(
        st.tuples(RECORDS, st.sampled_from(CODECS), st.sampled_from(["plain", "commit", "abort"])),
        max_size=4,
    ),
    appended=st.booleans(),
    dice=st.randoms(use_true_random=False),
)
def test_any_topic_is_read_as_a_consumer_reads_it(
    clusters: ClusterPair, rounds: list, appended: bool, dice: random.Random
) -> None:
    """Null and empty keys, values and headers, codecs, transactions and aborts, both kinds of
    timestamps; whole, and cut into ranges at random offsets."""
    topic = f"native-{uuid.uuid4().hex[:10]}"
    create_topic(
        clusters.east,
        topic,
        3,
        message_timestamp_type="LogAppendTime" if appended else "CreateTime",
    )
    for records, codec, how in rounds:
        if how == "plain":
            write(clusters.east, topic, records, compression_type=codec)
        else:
            producer = transactional_producer(clusters.east)
            producer.begin_transaction()
            for record in records:
                producer.produce(
                    topic, record.value, record.key, record.partition, headers=record.headers
                )
            producer.flush(30)
            producer.commit_transaction() if how == "commit" else producer.abort_transaction()
    ranges = log_ends(clusters.east, topic, 3)
    expected = consumed(clusters.east, ranges)
    cuts = {key: sorted(dice.randint(*bounds) for _ in range(3)) for key, bounds in ranges.items()}
    for kind in LOGS:
        assert read(kind, clusters.east, ranges) == expected
        pieces: dict[tuple[str, int], list[tuple]] = {}
        with closing(opened(kind, clusters.east, keep=True)) as log:
            for number in range(4):
                part = {}
                for key, (first, end) in ranges.items():
                    places = [first, *cuts[key], end]
                    part[key] = (places[number], places[number + 1])
                for key, more in rows(log, part).items():
                    pieces.setdefault(key, []).extend(more)
        assert pieces == expected


@settings(
    max_examples=3,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, *HealthCheck],
)
@given(sent=odd_rows("python", times=ODD_TIMES))
def test_both_logs_give_the_same_arrow(clusters: ClusterPair, sent: list[dict[str, Any]]) -> None:
    """Of records with times that are none, empty and null keys, values and headers, and thousands
    of headers; in answers of either size."""
    topic = f"logs-{uuid.uuid4().hex[:10]}"
    create_topic(clusters.east, topic, **ANY_TIME, max_message_bytes="10000000")
    send_rows(clusters.east, topic, sent)
    (ranges,) = [log_ends(clusters.east, topic, 1)]
    server = {"bootstrap.servers": clusters.east, "log_level": 2}
    native, python, small = (
        table_of(make, ranges)
        for make in (
            partial(NativeReader, server),
            partial(PythonLog, server),
            partial(PythonLog, server, small_answers=True),
        )
    )
    assert native.num_rows == len(sent) and native.equals(python) and native.equals(small)


def table_of(make: Callable[[], Log], ranges: Ranges) -> pa.Table:
    with closing(make()) as log:
        batches = [batch for _, batch in log.read(ranges)]
    assert all(batch.schema == SCHEMA for batch in batches)
    return pa.Table.from_batches(batches).combine_chunks()


def test_names_that_are_no_text_are_given_natively_and_never_guessed(
    clusters: ClusterPair, topic_name: str
) -> None:
    """confluent-kafka has no headers of such a record: who reads by it sees that it is none of
    those that the stage can hold."""
    create_topic(clusters.east, topic_name)
    header = {"key": b"\xff", "value": b"1"}
    plain = {"timestamp_ms": 1, "key": b"k", "value": b"v", "headers": None}
    send_rows(clusters.east, topic_name, [plain, *[{**plain, "headers": [header]}] * 100, plain])
    server, ranges = {"bootstrap.servers": clusters.east}, {(topic_name, 0): (0, 102)}
    with closing(NativeReader(server)) as log:
        ((_, batch),) = log.read(ranges)
    assert batch.column("header_names").to_pylist() == [None, *[[b"\xff"]] * 100, None]
    python = table_of(partial(PythonLog, server), ranges)
    none = [{"key": None, "value": None}]
    assert python.column("headers").to_pylist() == [None, *[none] * 100, None]


@KINDS
def test_a_reader_goes_on_and_back(clusters: ClusterPair, kind: str, topic_name: str) -> None:
    """Ranges that follow each other, one that lies before, and one of records that came since."""
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(1_000, 1))
    key = (topic_name, 0)
    with closing(opened(kind, clusters.east, keep=True)) as log:
        for first, end in ((0, 10), (10, 500), (200, 300), (300, 300), (300, 1_000)):
            offsets = [row[0] for row in rows(log, {key: (first, end)}).get(key, [])]
            assert offsets == list(range(first, end))
        next(log.read({key: (0, 1_000)}))  # its user stops in the middle
        write(clusters.east, topic_name, numbered(50, 1))
        offsets = [row[0] for row in rows(log, {key: (1_000, 1_050)})[key]]
        assert offsets == list(range(1_000, 1_050))


def test_what_nobody_will_read_is_let_go_of(clusters: ClusterPair, topic_name: str) -> None:
    """A reader that is far from the ends of logs fetches ahead: a burst that others read would fill
    its memory."""
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(FETCHED_AGAIN + 1_000, 1))
    key = (topic_name, 0)
    reader = NativeReader({"bootstrap.servers": clusters.east, "log_level": 2}, keep=True)
    rows(reader, {key: (0, 10)})
    until(lambda: _waiting(reader) > FETCHED_AGAIN, "records were fetched ahead")
    rows(reader, {key: (10, 20)})
    reader.pause()
    assert _waiting(reader) + reader._kept > FETCHED_AGAIN, "they are not fetched again"
    reader.keep_prefetched(())
    assert _waiting(reader) == 0
    write(clusters.east, topic_name, numbered(50, 1))
    assert [row[0] for row in rows(reader, {key: (900, 3_050)})[key]] == list(range(900, 3_050))
    reader.close()


@pytest.mark.wide("test_what_nobody_will_read_is_let_go_of")
@pytest.mark.parametrize("paused", [True, False])
def test_at_the_ends_of_logs_nothing_is_fetched_until_it_is_read(
    clusters: ClusterPair, topic_name: str, paused: bool
) -> None:
    """A broker would answer at each record, about all partitions."""
    create_topic(clusters.east, topic_name, 3)
    write(clusters.east, topic_name, numbered(30, 3))
    keys = [(topic_name, partition) for partition in range(3)]
    settings = {"bootstrap.servers": clusters.east, "log_level": 2}
    reader = NativeReader(settings, keep=True, small_answers=True)
    for first in range(0, 100, 10):
        there = rows(reader, dict.fromkeys(keys, (first, first + 10)))
        assert [len(there[key]) for key in keys] == [10] * 3
        if paused:
            reader.pause()
        write(clusters.east, topic_name, numbered(30, 3))
        threading.Event().wait(0.1)
        assert (_waiting(reader) >= 30) is not paused, "beside reports of ends"
    rows(reader, {keys[1]: (100, 110)})  # others stay as they are, and go on later
    there = rows(reader, dict.fromkeys((keys[0], keys[2]), (100, 110)))
    assert [[row[0] for row in there[key]] for key in there] == [list(range(100, 110))] * 2
    reader.close()


def _waiting(reader: NativeReader) -> int:
    """How many messages wait in librdkafka for whoever takes them."""
    length = C.CDLL(cimpl.__file__).rd_kafka_queue_length
    length.restype, length.argtypes = C.c_size_t, [C.c_void_p]
    return int(length(reader._consumer.queue))


@KINDS
def test_a_range_that_was_trimmed_is_an_error(
    clusters: ClusterPair, kind: str, topic_name: str
) -> None:
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(100, 1))
    truncate(clusters.east, topic_name, 40)
    assert len(read(kind, clusters.east, {(topic_name, 0): (40, 100)})[topic_name, 0]) == 60
    with pytest.raises(
        KafkaException, match=f"{topic_name}-0 cannot be read from offset 10"
    ) as raised:
        read(kind, clusters.east, {(topic_name, 0): (10, 100)})
    assert raised.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET


@KINDS
def test_a_topic_that_is_gone_is_an_error(
    clusters: ClusterPair, impatient: Log, topic_name: str
) -> None:
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(10, 1))
    delete_topic(clusters.east, topic_name)
    with pytest.raises(KafkaException, match=f"{topic_name}-0"):
        rows(impatient, {(topic_name, 0): (0, 10)})


@KINDS
def test_offsets_that_are_not_there_yet_are_waited_for_and_then_an_error(
    clusters: ClusterPair, impatient: Log, topic_name: str
) -> None:
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(10, 1))
    with pytest.raises(KafkaException, match=f"{topic_name}-0 gave no record"):
        rows(impatient, {(topic_name, 0): (0, 11)})
