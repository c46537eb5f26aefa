"""What is refused stops alone, whatever else was in its transaction: other partitions, and records
of its own batch."""

import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.config.topology import load_topology
from mirrorlake.devtools.local.clusters import start_clusters, stop_clusters
from mirrorlake.errors import TargetRefused
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.run.resolve import Wanted, resolve
from tests.support.clusters import ClusterPair
from tests.support.kafka import NewRecord, create_topic, read_topic, record_count, write
from tests.support.lanes import BOTH_LANES
from tests.support.replication import (
    FLOW,
    both_sides,
    lake_of,
    land_only,
    replicate_once,
    replicating,
    write_topology,
)
from tests.support.waiting import until

pytestmark = BOTH_LANES
PARTITIONS, REFUSED_IN, REFUSED_AT = 4, 2, 500
TOLD = "flow, kind, topic, partition, first_offset, last_offset"


def one_shard(clusters: ClusterPair, folder: Path, topic: str, **flow: object) -> Path:
    """A flow that brings all partitions of a topic by one producer, and leaves the target's limits
    as they are."""
    settings = {"topics": [topic], "sync_topic_configs_enabled": False, "produce_tasks": 1, **flow}
    return write_topology(folder, clusters.east, clusters.west, settings)


def told(topology: Path) -> list[tuple[object, ...]]:
    """The open incidents."""
    rows = mirrorlake.open(topology).rows(
        f"SELECT {TOLD} FROM open_incidents ORDER BY topic, partition"
    )
    return [tuple(row.values()) for row in rows]


@pytest.mark.wide(
    "integration/test_producer_lanes.py::test_a_refused_record_stops_its_partition_at_its_offset"
)
@pytest.mark.parametrize("records", [3_000, pytest.param(60_000, marks=pytest.mark.slow)])
def test_one_record_that_is_too_large_stops_its_partition_there(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, records: int
) -> None:
    """Of four partitions in one transaction; `skip` then takes that record, and no other."""
    topic = f"refused-{uuid.uuid4().hex[:8]}"
    create_topic(clusters.east, topic, PARTITIONS, max_message_bytes="10000000")
    create_topic(clusters.west, f"east.{topic}", PARTITIONS, max_message_bytes="1000000")
    small, large = os.urandom(1_000), os.urandom(2_000_000)
    for partition in range(PARTITIONS):
        refused = REFUSED_AT if partition == REFUSED_IN else -1
        written = (
            NewRecord(large if at == refused else small, b"%d" % at, partition)
            for at in range(records)
        )
        write(
            clusters.east,
            topic,
            written,
            message_max_bytes=10_000_000,
            queue_buffering_max_kbytes=1_000_000,
        )
    topology = one_shard(clusters, tmp_path, topic)
    land_only(spark, topology)
    began = time.monotonic()
    with pytest.raises(TargetRefused, match=f"between offsets {REFUSED_AT} and {REFUSED_AT} "):
        replicate_once(spark, topology)
    print(f"{PARTITIONS} * {records} records, one refused: {time.monotonic() - began:.1f} s")  # noqa: T201
    assert told(topology) == [(FLOW, "target_refused", topic, REFUSED_IN, REFUSED_AT, REFUSED_AT)]
    counts = [records] * PARTITIONS
    counts[REFUSED_IN] = REFUSED_AT
    assert [len(found) for found in read_topic(clusters.west, f"east.{topic}")] == counts
    lake = lake_of(spark, topology)
    resolve(
        Deployment.opened(lake, Connections(load_topology(topology))), Wanted(topic=topic), "skip"
    )
    replicate_once(spark, topology)
    counts[REFUSED_IN] = records - 1
    sides = both_sides(lake, clusters.east, clusters.west, {topic: f"east.{topic}"})
    assert [len(found) for found in sides.target[f"east.{topic}"]] == counts
    assert REFUSED_AT not in {offset for offset, _ in sides.mapped[topic, REFUSED_IN]}
    assert len(sides.mapped[topic, REFUSED_IN]) == records - 1 and told(topology) == []


#: Topics that refuse single records by Kafka's name, and for what: (configs of the target, the odd
#: record).
ODD: Mapping[str, tuple[dict[str, str], NewRecord]] = {
    "INVALID_TIMESTAMP": (
        {"message_timestamp_before_max_ms": "3600000"},
        NewRecord(b"old", b"k", 0, None, 1_000),
    ),
    "INVALID_RECORD": ({"cleanup_policy": "compact"}, NewRecord(b"keyless", None, 0)),
}


@pytest.mark.wide(
    "integration/test_refused.py::test_refused_records_are_parked_and_the_rest_goes_on"
)
@pytest.mark.parametrize(
    "reason", ["INVALID_TIMESTAMP", pytest.param("INVALID_RECORD", marks=pytest.mark.slow)]
)
def test_odd_records_among_good_ones_of_their_batch_are_parked_alone(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, reason: str
) -> None:
    """The broker refuses a batch of hundreds for some records of it, and says which (KIP-467)."""
    topic, (configs, odd) = f"odd-{uuid.uuid4().hex[:8]}", ODD[reason]
    create_topic(clusters.east, topic, 2)
    create_topic(clusters.west, f"east.{topic}", 2, **configs)
    good = [NewRecord(b"%d" % at, b"k%d" % at, at % 2) for at in range(1_000)]
    write(clusters.east, topic, [*good[:500], odd, *good[500:600], odd, odd, *good[600:]])
    topology = one_shard(clusters, tmp_path, topic)
    with pytest.raises(TargetRefused):
        replicate_once(spark, topology)
    assert told(topology) == [(FLOW, "target_refused", topic, 0, 250, 250)]
    assert [len(found) for found in read_topic(clusters.west, f"east.{topic}")] == [250, 500]
    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    document["flows"][FLOW]["on_refused"] = "park"
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    replicate_once(spark, topology)
    parked = mirrorlake.open(topology).rows(
        "SELECT partition, offset, reason FROM parked ORDER BY offset"
    )
    assert [tuple(row.values()) for row in parked] == [(0, at, reason) for at in (250, 301, 302)]
    assert told(topology) == []
    assert [len(found) for found in read_topic(clusters.west, f"east.{topic}")] == [500, 500]


@pytest.mark.wide("simulation/test_simulation.py::test_no_schedule_breaks_a_law")
def test_a_producer_that_the_target_forgot_is_replaced(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    """Idle for longer than the target keeps transactional ids (seven days by default): that refuses
    no record."""
    expiring = {"transactional.id.expiration.ms": "1000"} | {
        f"transaction.{name}.transaction.cleanup.interval.ms": "500"
        for name in ("remove.expired", "abort.timed.out")
    }
    topic, target = (
        f"idle-{uuid.uuid4().hex[:8]}",
        start_clusters(["west"], tmp_path / "kafka", properties=expiring),
    )
    west = target["west"].bootstrap_servers
    try:
        create_topic(clusters.east, topic)
        topology = one_shard(ClusterPair(clusters.east, west, None), tmp_path, topic)
        with replicating(spark, topology) as run:
            for count in (10, 20, 30):
                write(
                    clusters.east, topic, [NewRecord(b"%d" % at) for at in range(count - 10, count)]
                )
                until(lambda count=count: record_count(west, f"east.{topic}") == count)
                until(lambda: forgotten(west))
        sides = both_sides(run.lake, clusters.east, west, {topic: f"east.{topic}"})
        assert [value for _, _, value, *_ in sides.target[f"east.{topic}"][0]] == [
            b"%d" % at for at in range(30)
        ]
        assert (
            mirrorlake.open(topology).rows("SELECT kind FROM incidents WHERE kind LIKE '%refused%'")
            == []
        )
    finally:
        stop_clusters(target)


def forgotten(bootstrap: str) -> bool:
    """Whether a cluster has forgotten all transactional ids of flows: the newest of each is a
    tombstone."""
    newest = {}
    for partition in read_topic(bootstrap, "__transaction_state"):
        newest |= {
            record.key: record.value
            for record in partition
            if b"mirrorlake-" in (record.key or b"")
        }
    return bool(newest) and not any(newest.values())
