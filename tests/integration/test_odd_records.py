"""Whatever Kafka takes arrives as it is, or stops alone: a record never stops its neighbours."""

import subprocess
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.errors import ReplicationError
from mirrorlake.landing.spark_times import SPARK_FIRST_MS, SPARK_LAST_MS
from mirrorlake.native.exact import FIRST_MS, LAST_MS
from mirrorlake.spark.java import find_java
from tests.support.clusters import ClusterPair
from tests.support.kafka import NewRecord, create_topic, numbered, read_topic, write
from tests.support.lake_rows import now_of
from tests.support.lanes import LANES
from tests.support.mirror_client import client_jars
from tests.support.replication import assert_topic_same, both_sides, replicate_once, write_topology

#: What a broker before 4.0 takes by default, and one of today where the topic says so.
ANY_TIME = {"message_timestamp_after_max_ms": str(2**63 - 1), "message_timestamp_before_max_ms": str(2**63 - 1)}
NOW = int(time.time() * 1_000)
#: Nanoseconds and microseconds, by mistake; both ends of 64 bits; no time; the ends of what `timestamp` holds.
TIMES = (NOW * 1_000_000, NOW * 1_000, 2**63 - 1, -(2**63), -1, -2, 1, -62_135_596_800_000, 253_402_300_799_999, NOW)


@pytest.mark.parametrize("lane", LANES, indirect=True)
def test_a_record_of_any_time_arrives_beside_its_neighbours(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str, lane: str
) -> None:
    """`timestamp` has what is a date, `timestamp_ms` what is none; `verify` compares both."""
    times = [at for at in TIMES if lane == "native" or SPARK_FIRST_MS <= at <= SPARK_LAST_MS]
    odd, fine = f"{topic_name}-odd", f"{topic_name}-fine"
    create_topic(clusters.east, odd, **ANY_TIME)
    create_topic(clusters.east, fine)
    write(clusters.east, odd, [NewRecord(b"%d" % at, b"k", 0, None, at) for at in times])
    write(clusters.east, fine, numbered(100))
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [odd, fine]})
    lake = replicate_once(spark, topology).lake
    sides = both_sides(lake, clusters.east, clusters.west, {odd: f"east.{odd}", fine: f"east.{fine}"})
    assert (assert_topic_same(sides, odd), assert_topic_same(sides, fine)) == (len(times), 100)
    assert [record.timestamp for record in sides.target[f"east.{odd}"][0]] == times
    asked = f"SELECT offset, timestamp IS NULL AS odd, timestamp_ms FROM records WHERE topic = '{odd}' ORDER BY offset"
    staged = [(row["odd"], row["timestamp_ms"]) for row in now_of(lake).rows(asked)]
    assert staged == [(True, at) if at > LAST_MS or at < FIRST_MS else (False, None) for at in times]
    opened = mirrorlake.open(topology)
    proven = opened.verify()
    assert (proven.differences, proven.excused, proven.proven) == ([], {}, 100 + len(times))
    assert opened.flows["east->west"].trace(odd, 0, 0).stages[0]["at"] is None  # no date
    assert opened.status().healthy


@pytest.mark.parametrize("lane", LANES, indirect=True)
def test_a_time_of_0_is_sent_as_1_and_told(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str, lane: str
) -> None:
    """librdkafka takes 0 for now."""
    create_topic(clusters.east, topic_name)
    write_with_times(clusters.east, topic_name, 0, 1, NOW, 0)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    replicate_once(spark, topology)
    there = [(record.value, record.timestamp) for record in read_topic(clusters.west, f"east.{topic_name}")[0]]
    assert there == [(b"0", 1), (b"1", 1), (b"%d" % NOW, NOW), (b"0", 1)]
    opened = mirrorlake.open(topology)
    proven = opened.verify()
    assert (proven.differences, proven.excused, proven.proven) == ([], {"altered_timestamp": 2}, 4)
    told = {offset: opened.flows["east->west"].trace(topic_name, 0, offset).stages[2]["said"] for offset in (0, 1)}
    assert {offset: "1 ms for its 0" in said for offset, said in told.items()} == {0: True, 1: False}


def write_with_times(bootstrap: str, topic: str, *times: int) -> None:
    """Write a record of each time by Java's client."""
    source = Path(__file__).parents[1] / "support" / "java" / "TimedRecords.java"
    command = [str(find_java()), "-cp", client_jars(), str(source), bootstrap, topic, *map(str, times)]
    subprocess.run(command, check=True, timeout=180)


@pytest.mark.slow
@pytest.mark.parametrize("lane", ["python"], indirect=True)
@pytest.mark.parametrize("at", [NOW * 1_000_000, -(2**63), SPARK_FIRST_MS - 1])
def test_a_time_that_spark_cannot_read_stops_its_partition_alone(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str, lane: str, at: int
) -> None:
    odd, fine = f"{topic_name}-odd", f"{topic_name}-fine"
    create_topic(clusters.east, odd, 2, **ANY_TIME)
    create_topic(clusters.east, fine)
    write(clusters.east, odd, [NewRecord(b"%d" % n, b"k", n % 2, None, at if n == 5 else NOW) for n in range(8)])
    write(clusters.east, fine, numbered(100))
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [odd, fine]})
    with pytest.raises(ReplicationError, match=f"{odd}-1 .*from offset 2"):
        replicate_once(spark, topology)
    assert len(read_topic(clusters.west, f"east.{fine}")[0]) == 100
    assert [len(part) for part in read_topic(clusters.west, f"east.{odd}")] == [4, 0]
    (incident,) = mirrorlake.open(topology).incidents()
    assert (incident["kind"], incident["topic"], incident["partition"]) == ("source_refused", odd, 1)
    assert "offset 2" in incident["detail"]
