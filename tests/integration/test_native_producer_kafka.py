"""What the native producer is given arrives as it is, at the offsets that it tells."""

import itertools
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirrorlake.native.exact import NO_TIMESTAMP
from mirrorlake.native.producer import Producer
from tests.support.clusters import ClusterPair
from tests.support.kafka import Headers, NewRecord, create_topic, read_topic, taken, write

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
LARGE_HEADERS = pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())]))
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Row = tuple[bytes | None, bytes | None, Headers, int | None]


@dataclass(frozen=True)
class Batch:
    """Rows as they are given: cut out of more, in columns of some type, with a header added or
    taken away."""

    rows: list[Row]
    skipped: int
    binary: Any
    headers: Any
    added: tuple[str, bytes] | None
    removed: str | None
    foreign: bool

    def arrow(self) -> pa.RecordBatch:
        """The batch: a slice that has other rows in front of itself and behind."""
        other: list[Row] = [(b"other", None, [("other", b"1")], 1)] * self.skipped
        keys, values, headers, times = zip(
            *other, *self.rows, *other[:1], ("?", "?", None, 1), strict=True
        )
        listed = [
            None if row is None else [{"key": key, "value": value} for key, value in row]
            for row in headers
        ]
        columns = {
            "key": pa.array([None if key == "?" else key for key in keys], pa.binary()).cast(
                self.binary
            ),
            "value": pa.array(
                [None if value == "?" else value for value in values], pa.binary()
            ).cast(self.binary),
            "headers": pa.array(listed, self.headers),
            "timestamp": pa.array(
                [None if at is None else at * 1_000 for at in times], pa.timestamp("us", "UTC")
            ),
        }
        return pa.record_batch(columns).slice(self.skipped, len(self.rows))

    def sent(self) -> list[tuple[bytes | None, bytes | None, Headers, int | None]]:
        """The rows as they have to arrive."""
        found = []
        for key, value, headers, at in self.rows:
            kept = [header for header in headers or [] if header[0] != self.removed]
            found.append((key, value, [*kept, *([self.added] if self.added else [])] or None, at))
        return found


_bytes = st.none() | st.binary(max_size=40) | st.builds(bytes, st.integers(0, 3_000))
_name = st.sampled_from(["", "a", "gone", "mirrorlake-provenance"]) | st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=8
)
_headers = st.none() | st.lists(st.tuples(_name, st.none() | st.binary(max_size=20)), max_size=5)
_row = st.tuples(_bytes, _bytes, _headers, st.none() | st.integers(1, 1_700_000_000_000))
_plain = st.tuples(st.none(), _bytes, st.none(), st.integers(1, 1_700_000_000_000))
_batch = st.builds(
    Batch,
    st.lists(_row, max_size=30) | st.lists(_plain, max_size=30),
    st.integers(0, 20),
    st.sampled_from(
        [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())]
    ),
    st.sampled_from([HEADERS, LARGE_HEADERS]),
    st.none() | st.tuples(_name, st.binary(max_size=9)),
    st.none() | st.sampled_from(["gone", "", "a"]),
    st.booleans(),
)


@dataclass
class Place:
    """A topic, how far it was read, and producers that write to it."""

    bootstrap: str
    topic: str
    reader: Consumer
    position: int
    producers: dict[str, Producer]
    foreign: Iterator[int]

    def read(self, end: int) -> list[Any]:
        """The committed records up to `end`, exclusive."""
        found: list[Any] = []
        while self.position < end:
            for message in taken(self.reader, 0.05):
                assert message.error() is None or message.error().name() == "_PARTITION_EOF", (
                    message.error()
                )
                if message.error() is None:
                    found.append(message)
                    self.position = message.offset() + 1
                elif self.position < end:
                    self.position = message.offset()
        return found


@pytest.fixture(scope="module")
def place(clusters: ClusterPair) -> Iterator[Place]:
    topic = f"native-{uuid.uuid4().hex[:8]}"
    create_topic(clusters.west, topic, retention_ms="-1")
    reader = Consumer(
        {
            "bootstrap.servers": clusters.west,
            "group.id": topic,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,  # so long it takes to hear of an end
        }
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    yield Place(clusters.west, topic, reader, 0, {}, itertools.count())
    reader.close()


def producer_of(place: Place, codec: str) -> Producer:
    """A transactional producer with a compression, kept."""
    if codec not in place.producers:
        name = {"bootstrap.servers": place.bootstrap, "transactional.id": f"{place.topic}-{codec}"}
        made = Producer({**name, "compression.type": codec, "linger.ms": 1})
        made.init_transactions(30)
        place.producers[codec] = made
    return place.producers[codec]


@pytest.mark.wide("integration/test_producer_lanes.py::test_what_is_staged_arrives")
@settings(
    max_examples=settings.default.max_examples // 5,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(_batch, min_size=1, max_size=4), st.sampled_from(CODECS))
def test_what_is_given_is_what_is_read_back(place: Place, batches: list[Batch], codec: str) -> None:
    producer = producer_of(place, codec)
    producer.begin_transaction()
    shipments = []
    for batch in batches:
        shipments.append(
            producer.shipment(place.topic, 0, batch.arrow(), batch.added, batch.removed)
        )
        shipments[-1].send()
        if batch.foreign:  # another one writes between
            assert producer.flush(20) == 0
            write(place.bootstrap, place.topic, [NewRecord(b"foreign %d" % next(place.foreign))])
    producer.send_offsets_to_transaction({(place.topic, 0): (7, "é" * 40)}, place.topic, 20)
    producer.commit_transaction(20)
    offsets = [int(offset) for shipment in shipments for offset in shipment.offsets()]
    found = {
        message.offset(): (
            message.key(),
            message.value(),
            message.headers(),
            message.timestamp()[1],
        )
        for message in place.read(max(offsets, default=-1) + 1)
        if not (message.value() or b"").startswith(b"foreign ")
    }
    expected = [row for batch in batches for row in batch.sent()]
    assert [place for place in found if place not in offsets] == []
    for offset, (key, value, headers, at) in zip(offsets, expected, strict=True):
        assert found[offset][:3] == (key, value, headers)
        assert found[offset][3] == (NO_TIMESTAMP if at is None else at)
    committed = place.reader.committed([TopicPartition(place.topic, 0)], 20)[0]
    assert (committed.offset, committed.metadata) == (7, "é" * 40)


def rows(values: Sequence[bytes | None]) -> pa.RecordBatch:
    """Rows of these values."""
    count = len(values)
    columns = {
        "key": pa.nulls(count),
        "value": pa.array(values, pa.binary()),
        "timestamp": pa.nulls(count, pa.timestamp("ms")),
        "headers": pa.nulls(count, HEADERS),
    }
    return pa.record_batch(columns)


def transactional(bootstrap: str, topic: str, **more: Any) -> Producer:
    """A producer that has begun a transaction."""
    extra = {key.replace("_", "."): value for key, value in more.items()}
    made = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": topic,
            "message.max.bytes": 10_000_000,
            **extra,
        }
    )
    made.init_transactions(30)
    made.begin_transaction()
    return made


def test_a_refused_record_in_the_middle(clusters: ClusterPair, topic_name: str) -> None:
    """The one that is too large says so; nothing of the transaction is seen, and the next one is as
    ever."""
    create_topic(clusters.west, topic_name, max_message_bytes="5000")
    producer = transactional(clusters.west, topic_name, batch_num_messages=1)
    shipment = producer.shipment(topic_name, 0, rows([b"a", b"b", b"x" * 20_000, b"c"]))
    shipment.send()
    # librdkafka sends nothing more in a transaction that failed: the last one waits, or was refused
    # on its way.
    assert producer.flush(2) <= 1
    refused = shipment.refused()
    assert refused is not None and refused[:3].tolist() == [0, 0, KafkaError.MSG_SIZE_TOO_LARGE]
    failure = producer.failure()
    assert failure is not None and failure.name() == "MSG_SIZE_TOO_LARGE", "the first error is kept"
    assert (shipment.offsets() < 0).tolist() == [False, False, True, True]
    producer.abort_transaction(20)
    for attempt in range(2):  # librdkafka takes a new epoch at the first (produce/writer.py)
        producer.begin_transaction()
        shipment = producer.shipment(topic_name, 0, rows([b"d", b"e"]))
        shipment.send()
        producer.flush(20)
        try:
            producer.commit_transaction(20)
            break
        except KafkaException:
            assert attempt == 0
            producer.abort_transaction(20)
    read = read_topic(clusters.west, topic_name)[0]
    assert [record.value for record in read] == [b"d", b"e"]
    assert [record.offset for record in read] == shipment.offsets().tolist()


def test_an_aborted_transaction_is_not_seen(clusters: ClusterPair, topic_name: str) -> None:
    create_topic(clusters.west, topic_name)
    producer = transactional(clusters.west, topic_name)
    producer.shipment(topic_name, 0, rows([b"gone"] * 1_000)).send()
    producer.abort_transaction(20)
    assert len(producer) == 0
    producer.begin_transaction()
    shipment = producer.shipment(topic_name, 0, rows([b"there"]))
    shipment.send()
    producer.commit_transaction(20)
    (read,) = read_topic(clusters.west, topic_name)[0]
    assert (read.value, read.offset) == (b"there", shipment.offsets()[0])


def test_a_partition_that_was_added_a_moment_ago(clusters: ClusterPair, topic_name: str) -> None:
    create_topic(clusters.west, topic_name)
    producer = transactional(clusters.west, topic_name)
    producer.shipment(topic_name, 0, rows([b"a"])).send()
    assert producer.flush(20) == 0
    admin = AdminClient({"bootstrap.servers": clusters.west})
    admin.create_partitions([NewPartitions(topic_name, 2)])[topic_name].result(20)
    shipment, end = producer.shipment(topic_name, 1, rows([b"b"])), time.monotonic() + 20
    while True:
        try:
            shipment.send()
            break
        except KafkaException as error:
            assert error.args[0].name() == "_UNKNOWN_PARTITION" and time.monotonic() < end
            producer.refresh(topic_name, 5)
            producer.poll(0.05)
    producer.commit_transaction(20)
    assert [
        [record.value for record in part] for part in read_topic(clusters.west, topic_name)
    ] == [[b"a"], [b"b"]]


def test_who_is_fenced_may_not_write(clusters: ClusterPair, topic_name: str) -> None:
    create_topic(clusters.west, topic_name)
    old = transactional(clusters.west, topic_name)
    new = transactional(clusters.west, topic_name)
    with pytest.raises(KafkaException) as fenced:
        old.shipment(topic_name, 0, rows([b"old"])).send()
        old.commit_transaction(20)
    assert fenced.value.args[0].fatal()
    with pytest.raises(KafkaException) as fenced:
        old.shipment(topic_name, 0, rows([b"old"])).send()
    assert fenced.value.args[0].fatal(), "no refusal of a record"
    shipment = new.shipment(topic_name, 0, rows([b"new"]))
    shipment.send()
    new.commit_transaction(20)
    assert [record.value for record in read_topic(clusters.west, topic_name)[0]] == [b"new"]
