"""What arrives is what was sent: byte for byte, partition for partition, to the millisecond, and
mapped exactly."""

import random
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.native import SWITCH
from tests.support.clusters import ClusterPair
from tests.support.kafka import (
    NewRecord,
    Record,
    create_topic,
    numbered,
    read_topic,
    send,
    transactional_producer,
    write,
    write_transactions,
)
from tests.support.lake_rows import now_of
from tests.support.lanes import LANES
from tests.support.odd_records import odd_records
from tests.support.replication import (
    Run,
    Sides,
    assert_topic_same,
    both_sides,
    replicate_once,
    write_topology,
)

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS = (
    "bytes",
    "large",
    "times",
    "appended",
    "partitions",
    "empty",
    "single",
    "mixed",
    "compacted",
)
PREFIX = f"fidelity-{uuid.uuid4().hex[:8]}"
SINGLE = 1_200


def name(topic: str) -> str:
    return f"{PREFIX}-{topic}"


def produce_all(east: str) -> None:
    create_topic(east, name("bytes"))
    write(east, name("bytes"), odd_records())
    create_topic(east, name("large"))
    dice = random.Random(1)
    write(east, name("large"), [NewRecord(dice.randbytes(900_000), b"big") for _ in range(6)])
    create_topic(east, name("times"))
    now = int(time.time() * 1000)
    write(
        east,
        name("times"),
        [
            NewRecord(b"t", None, 0, None, at)
            for at in (now, 1, 999, 978_307_200_123, now - 1, now + 60_000, 2, now)
        ],
    )
    create_topic(east, name("appended"), message_timestamp_type="LogAppendTime")
    write(
        east,
        name("appended"),
        [NewRecord(b"t", None, 0, None, 978_307_200_123 + i) for i in range(50)],
    )
    create_topic(east, name("partitions"), partitions=5)
    write(east, name("partitions"), [NewRecord(b"%d" % i, None, (0, 3)[i % 2]) for i in range(500)])
    create_topic(east, name("empty"), partitions=3)
    for codec in CODECS:
        create_topic(east, name(codec), partitions=2)
        write(east, name(codec), numbered(400, 2, size=20), compression_type=codec)


def produce_transactions(east: str) -> None:
    """`single`: a marker behind every record. `mixed`: transactions of several sizes and topics,
    some aborted."""
    create_topic(east, name("single"))
    create_topic(east, name("mixed"), partitions=2)
    producer = transactional_producer(east)
    for number in range(SINGLE):
        producer.begin_transaction()
        send(producer, name("single"), NewRecord(b"%d" % number))
        producer.commit_transaction(30)
    write_transactions(producer, name("mixed"), 40, 7)


def compact(east: str) -> None:
    """A compacted topic with holes and a tombstone, cleaned for good."""
    topic = name("compacted")
    create_topic(
        east,
        topic,
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.01",
        min_compaction_lag_ms="0",
        delete_retention_ms="86400000",
    )
    keys = [b"%d" % (i % 40 if i % 3 else 1_000 + i) for i in range(400)]
    write(east, topic, [NewRecord(b"%d" % i, key) for i, key in enumerate(keys)])
    write(east, topic, [NewRecord(None, b"1"), NewRecord(None, b"5")])
    deadline = time.monotonic() + 40
    while len(read_topic(east, topic)[0]) > 250:
        assert time.monotonic() < deadline, "the broker does not compact"
        time.sleep(0.3)
        write(east, topic, [NewRecord(b"last", b"last")])
    resource = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("retention.ms", "-1", incremental_operation=AlterConfigOpType.SET),
        ],
    )
    admin = AdminClient({"bootstrap.servers": east})
    admin.incremental_alter_configs([resource])[resource].result(20)
    time.sleep(1.0)


@dataclass(frozen=True)
class Replicated:
    """One run over all topics of this file."""

    topology: Path
    run: Run
    sides: Sides
    before: Mapping[str, list[list[Record]]]


@pytest.fixture(scope="module")
def produced(clusters: ClusterPair) -> Mapping[str, list[list[Record]]]:
    """The source topics, written once for the whole file, and what they hold."""
    with ThreadPoolExecutor() as side_by_side:  # each waits for the broker most of its time
        for done in [
            side_by_side.submit(work, clusters.east)
            for work in (produce_all, produce_transactions, compact)
        ]:
            done.result()
    return {topic: read_topic(clusters.east, name(topic)) for topic in (*TOPICS, *CODECS)}


@pytest.fixture(scope="module", params=LANES)
def replicated(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    clusters: ClusterPair,
    produced: Mapping[str, list[list[Record]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Replicated:
    # So that the topics of the two lanes are two. Not `_`: Kafka refuses names that differ by `_`
    # for `.` alone.
    separator = {"native": ".", "python": "-"}[request.param]
    flow = {"topics": [f"{PREFIX}-.*"], "replication_policy_separator": separator}
    topology = write_topology(
        tmp_path_factory.mktemp("fidelity"), clusters.east, clusters.west, flow
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(SWITCH, "off" if request.param == "python" else "")
        run = replicate_once(spark, topology)
    names = {name(topic): f"east{separator}{name(topic)}" for topic in produced}
    return Replicated(
        topology, run, both_sides(run.lake, clusters.east, clusters.west, names), produced
    )


@pytest.mark.law("exactly once", "exact map")
@pytest.mark.parametrize("topic", [*TOPICS, *CODECS])
def test_arrives_as_it_was_sent(replicated: Replicated, topic: str) -> None:
    count = assert_topic_same(replicated.sides, name(topic), replicated.before[topic])
    assert (count == 0) is (topic == "empty")


def test_source_topics_hold_what_these_tests_are_about(
    produced: Mapping[str, list[list[Record]]],
) -> None:
    assert len(produced["bytes"][0]) == len(odd_records())
    assert len(produced["single"][0]) == SINGLE
    assert [len(part) for part in produced["partitions"]] == [250, 0, 0, 250, 0]
    assert min(record.timestamp for record in produced["appended"][0]) > 1_600_000_000_000
    assert {record.timestamp for record in produced["times"][0]} >= {1, 2, 999, 978_307_200_123}
    compacted = [record.offset for record in produced["compacted"][0]]
    assert compacted[-1] - compacted[0] > len(compacted) + 100
    assert any(record.value is None for record in produced["compacted"][0])
    mixed = [record.offset for part in produced["mixed"] for record in part]
    assert len(mixed) == sum(number % 7 + 1 for number in range(40) if number % 3 != 1)


def test_a_marker_behind_every_record_costs_one_map_row_per_thousand(
    replicated: Replicated,
) -> None:
    assert replicated.sides.rows[name("single"), 0] <= -(-SINGLE // 1_000)


@pytest.mark.law("never more than was seen")
def test_verify_proves_all_of_it(replicated: Replicated) -> None:
    answer = mirrorlake.open(replicated.topology).verify()
    assert answer.differences == [] and answer.excused == {}
    assert (
        answer.records
        == answer.proven
        == sum(len(part) for found in replicated.before.values() for part in found)
    )


def test_workers_read_the_files_themselves(replicated: Replicated) -> None:
    assert replicated.run.readers == {"files"}


def test_stage_keeps_timestamp_types(replicated: Replicated) -> None:
    types = {
        row["topic"]: row["types"]
        for row in now_of(replicated.run.lake).rows(
            "SELECT topic, collect_set(timestamp_type) AS types FROM records GROUP BY topic"
        )
    }
    assert types[name("appended")] == [1]
    assert types[name("times")] == [0]


@pytest.mark.wide(
    "test_arrives_as_it_was_sent", "integration/test_producer_lanes.py::test_what_is_staged_arrives"
)
def test_identity_names_and_at_least_once(
    spark: SparkSession,
    clusters: ClusterPair,
    produced: Mapping[str, list[list[Record]]],
    tmp_path: Path,
) -> None:
    chosen = ("bytes", "partitions", "mixed", "lz4")
    flow = {
        "topics": [name(topic) for topic in chosen],
        "policy": "identity",
        "delivery": "at_least_once",
    }
    run = replicate_once(spark, write_topology(tmp_path, clusters.east, clusters.west, flow))
    sides = both_sides(
        run.lake, clusters.east, clusters.west, {name(topic): name(topic) for topic in chosen}
    )
    for topic in chosen:
        assert assert_topic_same(sides, name(topic), produced[topic]) > 0
