"""Whatever Kafka takes arrives as it is, or stops alone: a record never stops its neighbours."""

import random
import subprocess
import uuid
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.errors import ReplicationError
from mirrorlake.landing import stage_rows
from mirrorlake.native.exact import FIRST_MS, LAST_MS, headers_of
from mirrorlake.native.reader import NativeReader
from mirrorlake.spark.java import find_java
from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake as command
from tests.support.kafka import NewRecord, create_topic, numbered, read_topic, write
from tests.support.lake_rows import now_of
from tests.support.lanes import LANES
from tests.support.mirror_client import client_jars
from tests.support.odd_records import ANY_TIME, HEADERS, NOW, TIMES, odd_rows, send_rows
from tests.support.replication import (
    assert_topic_same,
    both_sides,
    in_catalog,
    replicate_once,
    write_topology,
)


@pytest.mark.wide("integration/test_fidelity.py::test_arrives_as_it_was_sent")
@pytest.mark.parametrize("lane", LANES, indirect=True)
def test_a_record_of_any_time_arrives_beside_its_neighbours(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str, lane: str
) -> None:
    """`timestamp` has what is a date, `timestamp_ms` what is none; `verify` compares both."""
    times = list(TIMES)
    odd, fine = f"{topic_name}-odd", f"{topic_name}-fine"
    create_topic(clusters.east, odd, **ANY_TIME)
    create_topic(clusters.east, fine)
    write(clusters.east, odd, [NewRecord(b"%d" % at, b"k", 0, None, at) for at in times])
    write(clusters.east, fine, numbered(100))
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [odd, fine]})
    lake = replicate_once(spark, topology).lake
    sides = both_sides(
        lake, clusters.east, clusters.west, {odd: f"east.{odd}", fine: f"east.{fine}"}
    )
    assert (assert_topic_same(sides, odd), assert_topic_same(sides, fine)) == (len(times), 100)
    assert [record.timestamp for record in sides.target[f"east.{odd}"][0]] == times
    asked = (
        "SELECT offset, timestamp IS NULL AS odd, timestamp_ms FROM records WHERE topic = "
        f"'{odd}' ORDER BY offset"
    )
    staged = [(row["odd"], row["timestamp_ms"]) for row in now_of(lake).rows(asked)]
    assert staged == [
        (True, at) if at > LAST_MS or at < FIRST_MS else (False, None) for at in times
    ]
    opened = mirrorlake.open(topology)
    proven = opened.verify()
    assert (proven.differences, proven.excused, proven.proven) == ([], {}, 100 + len(times))
    assert opened.flows["east->west"].trace(odd, 0, 0).stages[0]["at"] is None  # no date
    assert opened.status().healthy


@pytest.mark.slow
@pytest.mark.parametrize("lane", ["native"], indirect=True)
def test_a_catalog_takes_records_of_any_time_too(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str, lane: str
) -> None:
    """Rows that Spark writes are those that a file has, and say where logs ended."""
    create_topic(clusters.east, topic_name, **ANY_TIME)
    write(clusters.east, topic_name, [NewRecord(b"%d" % at, b"k", 0, None, at) for at in TIMES])
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    in_catalog(topology)
    lake = replicate_once(spark, topology).lake
    sides = both_sides(lake, clusters.east, clusters.west, {topic_name: f"east.{topic_name}"})
    assert assert_topic_same(sides, topic_name) == len(TIMES)
    rows = now_of(lake).rows("SELECT * FROM records ORDER BY offset")
    assert [(row["timestamp"] is None, row["timestamp_ms"]) for row in rows] == [
        (True, at) if at > LAST_MS or at < FIRST_MS else (False, None) for at in TIMES
    ]
    assert {(row["batch_end"], row["open_ends"], row["source_cluster"]) for row in rows} == {
        (len(TIMES), "[]", "east")
    }
    apart = [row["landed_at"].timestamp() * 1_000 - row["batch_id"] for row in rows]
    assert all(abs(milliseconds) < 60_000 for milliseconds in apart)


@pytest.mark.wide("integration/test_fidelity.py::test_arrives_as_it_was_sent")
@pytest.mark.parametrize("lane", LANES, indirect=True)
def test_a_time_of_0_is_sent_as_1_and_told(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str, lane: str
) -> None:
    """librdkafka takes 0 for now."""
    create_topic(clusters.east, topic_name)
    write_with_times(clusters.east, topic_name, 0, 1, NOW, 0)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    replicate_once(spark, topology)
    there = [
        (record.value, record.timestamp)
        for record in read_topic(clusters.west, f"east.{topic_name}")[0]
    ]
    assert there == [(b"0", 1), (b"1", 1), (b"%d" % NOW, NOW), (b"0", 1)]
    opened = mirrorlake.open(topology)
    proven = opened.verify()
    assert (proven.differences, proven.excused, proven.proven) == ([], {"altered_timestamp": 2}, 4)
    told = {
        offset: opened.flows["east->west"].trace(topic_name, 0, offset).stages[2]["said"]
        for offset in (0, 1)
    }
    assert {offset: "1 ms for its 0" in said for offset, said in told.items()} == {
        0: True,
        1: False,
    }


@pytest.mark.slow
@pytest.mark.parametrize("lane", LANES, indirect=True)
def test_a_record_of_100_mib_arrives(
    clusters: ClusterPair, tmp_path: Path, topic_name: str, lane: str
) -> None:
    """Our own clients take it: how much is too much is the matter of brokers, which compare it
    compressed."""
    create_topic(clusters.east, topic_name, max_message_bytes="60000000")
    size, half = 100 << 20, random.Random(7).randbytes(50 << 20)
    write(
        clusters.east,
        topic_name,
        [NewRecord(half.ljust(size, b"\0"))],
        **{**LARGE, "compression_type": "lz4"},
    )
    write(clusters.east, topic_name, numbered(10))
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    command(topology, "run", "--once")
    there = read_topic(clusters.west, f"east.{topic_name}")[0]
    assert [len(record.value or b"") for record in there[:1]] == [size] and len(there) == 11
    proven = mirrorlake.open(topology).verify()
    assert (proven.differences, proven.proven) == ([], 11)


#: A producer of records that are larger than librdkafka takes by default.
LARGE = {"message_max_bytes": 1_000_000_000, "queue_buffering_max_kbytes": 1 << 20}


@pytest.mark.wide("integration/test_fidelity.py::test_arrives_as_it_was_sent")
@pytest.mark.parametrize("lane", LANES, indirect=True)
@settings(
    max_examples=2,
    phases=[Phase.generate],
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(data=st.data())
def test_odd_records_arrive_byte_by_byte(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, lane: str, data: st.DataObject
) -> None:
    """In a topic with a name as long as Kafka takes one."""
    rows = data.draw(odd_rows(lane))
    topic = f"odd-{uuid.uuid4().hex}".ljust(249, "x")
    create_topic(clusters.east, topic, **ANY_TIME, max_message_bytes="10000000")
    send_rows(clusters.east, topic, rows)
    topology = write_topology(
        tmp_path / topic[:20],
        clusters.east,
        clusters.west,
        {"topics": [topic], "policy": "identity"},
    )
    replicate_once(spark, topology)
    assert rows_of(clusters.east, topic) == rows
    assert rows_of(clusters.west, topic) == rows
    proven = mirrorlake.open(topology).verify()
    assert (proven.differences, proven.excused, proven.proven) == ([], {}, len(rows))


def rows_of(bootstrap: str, topic: str) -> list[dict[str, object]]:
    """The records of a topic, as rows."""
    reader, found = NativeReader({"bootstrap.servers": bootstrap}), []
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)
    consumer.close()
    for _, batch in reader.read({(topic, 0): (0, end)}):
        names = (
            batch.column("timestamp").view(pa.int64()),
            batch.column("key"),
            batch.column("value"),
        )
        columns = [*names, headers_of(batch).cast(HEADERS)]
        found += pa.RecordBatch.from_arrays(
            columns, ["timestamp_ms", "key", "value", "headers"]
        ).to_pylist()
    reader.close()
    return found


@pytest.mark.wide(
    "integration/test_refused.py::test_refused_records_are_parked_and_the_rest_goes_on"
)
def test_a_record_that_cannot_be_staged_stops_its_partition_alone(
    spark: SparkSession,
    clusters: ClusterPair,
    tmp_path: Path,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the reason is that nobody foresees: here a time that Arrow does not cast, as if
    nothing stood beside."""
    monkeypatch.setattr(stage_rows, "split_times", lambda times: (times, None))
    odd, fine = f"{topic_name}-odd", f"{topic_name}-fine"
    create_topic(clusters.east, odd, 2, **ANY_TIME)
    create_topic(clusters.east, fine)
    times = [NOW * 1_000_000 if number == 5 else NOW for number in range(8)]
    write(
        clusters.east,
        odd,
        [NewRecord(b"%d" % n, b"k", n % 2, None, at) for n, at in enumerate(times)],
    )
    write(clusters.east, fine, numbered(100))
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [odd, fine]})
    with pytest.raises(ReplicationError, match=f"{odd}-1 cannot be staged from offset 2"):
        replicate_once(spark, topology)
    assert [len(part) for part in read_topic(clusters.west, f"east.{fine}")] == [100]
    assert [len(part) for part in read_topic(clusters.west, f"east.{odd}")] == [4, 0]
    (incident,) = mirrorlake.open(topology).incidents()
    assert (incident["kind"], incident["topic"], incident["partition"]) == (
        "source_refused",
        odd,
        1,
    )
    assert "from offset 2" in incident["detail"]


@pytest.mark.wide(
    "integration/test_refused.py::test_refused_records_are_parked_and_the_rest_goes_on"
)
@pytest.mark.parametrize("lane", ["python"], indirect=True)
def test_a_record_whose_headers_cannot_be_read_stops_its_partition(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str, lane: str
) -> None:
    """Without the compiled part: staged without its headers it would be another record."""
    create_topic(clusters.east, topic_name)
    row: dict[str, object] = {"timestamp_ms": NOW, "key": b"k", "value": b"v"}
    odd = {**row, "headers": [{"key": b"\xff", "value": b"1"}]}
    send_rows(clusters.east, topic_name, [{**row, "headers": None}, odd, {**row, "headers": None}])
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    with pytest.raises(ReplicationError, match="cannot be staged from offset 1.*no UTF-8"):
        replicate_once(spark, topology)
    assert not mirrorlake.open(topology).status().healthy


@pytest.mark.wide(
    "integration/test_plan_of_unseen.py::test_a_mirror_that_its_target_would_refuse_for_its_name"
)
def test_a_name_that_gets_too_long_stops_its_topic_alone(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    """249 letters, and `east.` in front of them: Kafka has no such topic."""
    long, fine = topic_name.ljust(249, "x"), f"{topic_name}-fine"
    for topic in (long, fine):
        create_topic(clusters.east, topic)
        write(clusters.east, topic, numbered(10))
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [long, fine]})
    with suppress(ReplicationError):
        replicate_once(spark, topology)
    assert len(read_topic(clusters.west, f"east.{fine}")[0]) == 10
    opened = mirrorlake.open(topology)
    assert not opened.status().healthy
    assert [
        incident["topic"]
        for incident in opened.incidents()
        if incident["topic"] in (long, f"east.{long}")
    ]


def write_with_times(bootstrap: str, topic: str, *times: int) -> None:
    """Write a record of each time by Java's client."""
    source = Path(__file__).parents[1] / "support" / "java" / "TimedRecords.java"
    command = [
        str(find_java()),
        "-cp",
        client_jars(),
        str(source),
        bootstrap,
        topic,
        *map(str, times),
    ]
    subprocess.run(command, check=True, timeout=180)
