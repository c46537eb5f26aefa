"""Failover of real consumers, of Kafka's Java client and of librdkafka's: each reads exactly what
it had not read.

The goal set by MirrorMaker 2 (docs/mm2.md, "Translation of positions"): over 1,000,000 records, a
group that lags by 100,000 reads 72,607 of them again after its failover, and one that lags by
400,000 reads 186,303 again. Here it is 0 again and 0 skipped.
"""

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from tests.support.clusters import ClusterPair
from tests.support.kafka import (
    NewRecord,
    create_topic,
    read_topic,
    record_count,
    transactional_producer,
    write,
)
from tests.support.readers import CLIENTS, Numbers, Reading, count, joined, number_ranges
from tests.support.replication import FLOW, write_topology

pytestmark = pytest.mark.slow

MILLION = 1_000_000
#: A transaction has one record in each of these partitions: a marker every second offset.
MARKED_PARTITIONS, TRANSACTIONS = 8, 2_500
COMPACTED = 35_000
LAGS = {
    "million": (0, 10, 1_000, 100_000, 400_000),
    "marked": (0, 10, 1_000, 10_000),
    "compacted": (0, 10, 1_000, 10_000),
}
CASES = [(client, kind, lag) for client in CLIENTS for kind, lags in LAGS.items() for lag in lags]


def fill_million(bootstrap: str, topic: str) -> None:
    """1,000,000 records of 20 bytes."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": MILLION}
    )
    for number in range(MILLION):
        producer.produce(topic, b"%020d" % number, partition=0)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


def fill_marked(bootstrap: str, topic: str) -> None:
    """Transactions of one record a partition."""
    producer = transactional_producer(bootstrap)
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for partition in range(MARKED_PARTITIONS):
            producer.produce(topic, b"%d" % number, partition=partition)
        producer.commit_transaction(30)


def fill_compacted(bootstrap: str, topic: str) -> None:
    """Records of which compaction leaves some 20,000, with holes of uneven size, cleaned for
    good."""
    keys = [
        b"%d" % (-(number % 50) if number % 7 in (2, 5, 6) else number)
        for number in range(COMPACTED)
    ]
    write(bootstrap, topic, [NewRecord(b"%d" % number, key) for number, key in enumerate(keys)])
    deadline, number = time.monotonic() + 90, COMPACTED
    while record_count(bootstrap, topic) > COMPACTED * 5 // 7:
        assert time.monotonic() < deadline, "the broker does not compact"
        time.sleep(0.5)  # the cleaner's own pace
        write(bootstrap, topic, [NewRecord(b"%d" % number, b"last")])
        number += 1
    keep = {"cleanup.policy": "delete", "retention.ms": "-1"}
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in keep.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap})  # must live until it has answered
    admin.incremental_alter_configs([resource])[resource].result(20)
    time.sleep(2)  # a cleaning that has begun ends


@dataclass(frozen=True)
class Moved:
    """What each group read at the source and, behind the failover, at the target; and all numbers
    of each topic."""

    before: Mapping[str, Numbers]
    after: Mapping[str, Numbers]
    whole: Mapping[str, Numbers]
    rows: Mapping[str, list[dict[str, object]]]


@pytest.fixture(scope="module")
def moved(
    spark: SparkSession, clusters: ClusterPair, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Moved]:
    name = f"far{uuid.uuid4().hex[:6]}"
    topics = {kind: f"{name}.{kind}" for kind in LAGS}
    create_topic(clusters.east, topics["million"])
    create_topic(clusters.east, topics["marked"], MARKED_PARTITIONS)
    cleaned = {
        "cleanup_policy": "compact",
        "segment_ms": "100",
        "min_cleanable_dirty_ratio": "0.01",
    }
    create_topic(clusters.east, topics["compacted"], **cleaned, min_compaction_lag_ms="0")
    fill_million(clusters.east, topics["million"])
    fill_marked(clusters.east, topics["marked"])
    fill_compacted(clusters.east, topics["compacted"])
    left = [
        int(record.value or b"") for record in read_topic(clusters.east, topics["compacted"])[0]
    ]
    whole: dict[str, Numbers] = {
        "million": {0: [[0, MILLION - 1]]},
        "marked": {partition: [[0, TRANSACTIONS - 1]] for partition in range(MARKED_PARTITIONS)},
        "compacted": {0: number_ranges(left)},
    }
    assert len(whole["compacted"][0]) > 5_000, "compaction left no holes"
    before, after = {}, {}
    for client, read in CLIENTS.items():
        readings = [
            Reading(f"{name}-{client}-{kind}-{lag}", topics[kind], count(whole[kind]) - lag)
            for its, kind, lag in CASES
            if its == client
        ]
        before.update(read(clusters.east, "earliest", readings))
    settings = {"topics": [f"{name}[.].*"], "groups": [f"{name}-.*"]}
    topology = write_topology(
        tmp_path_factory.mktemp("million"), clusters.east, clusters.west, settings
    )
    # Nothing was mirrored before: the command itself catches up.
    result = CliRunner().invoke(
        app, ["-c", str(topology), "failover", "--flow", FLOW, "--all-groups", "--json"]
    )
    document = json.loads(result.stdout)
    assert (result.exit_code, document["complete"]) == (0, True), document["left"]
    records = sum(map(count, whole.values()))
    assert [(item["complete"], item["records"]) for item in document["drained"]] == [
        (True, records)
    ]
    for client, read in CLIENTS.items():
        readings = [
            Reading(f"{name}-{client}-{kind}-{lag}", f"east.{topics[kind]}")
            for its, kind, lag in CASES
            if its == client
        ]
        after.update(read(clusters.west, "none", readings))
    rows: dict[str, list[dict[str, object]]] = {}
    for row in document["groups"]:
        rows.setdefault(row["group"].removeprefix(f"{name}-"), []).append(row)
    yield Moved(
        {group.removeprefix(f"{name}-"): numbers for group, numbers in before.items()},
        {group.removeprefix(f"{name}-"): numbers for group, numbers in after.items()},
        whole,
        rows,
    )


@pytest.mark.parametrize(("client", "kind", "lag"), CASES)
def test_a_group_reads_on_where_it_stopped(moved: Moved, client: str, kind: str, lag: int) -> None:
    """0 again, 0 skipped: both parts, one behind the other, are the topic."""
    group = f"{client}-{kind}-{lag}"
    before, after = moved.before[group], moved.after[group]
    assert (count(before), count(after)) == (count(moved.whole[kind]) - lag, lag)
    for partition, numbers in moved.whole[kind].items():
        assert joined(before.get(partition, []), after.get(partition, [])) == numbers, (
            f"partition {partition}"
        )
    assert {
        (row["done"], row["exact"], row["read_again_at_most"]) for row in moved.rows[group]
    } == {("moved", True, 0)}
