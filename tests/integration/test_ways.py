"""Small batches go the short way, larger ones the long way, and a flow may go both in turn."""

import json
import re
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import DataFrame, SparkSession

from mirrorlake.lake.lake import Lake
from mirrorlake.naming.at_target import name_at_target
from tests.support.clusters import ClusterPair
from tests.support.groups import commit_all
from tests.support.kafka import NewRecord, create_topic, numbered, read_topic, write
from tests.support.lanes import BOTH_LANES
from tests.support.replication import (
    FLOW,
    assert_same,
    in_catalog,
    replicate_once,
    replicating,
    write_topology,
)
from tests.support.waiting import until

LIMIT, PARTITIONS = 300, 2


pytestmark = BOTH_LANES


def _writers(records: Path) -> list[str]:
    """Who wrote the files of the commits with records of a table, in order."""
    found = []
    for commit in sorted((records / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
        added = [action["add"]["path"] for action in actions if "add" in action]
        if added:
            by_tasks = all(path.startswith("task-") for path in added)
            found.append("tasks" if by_tasks else "driver")
    return found


@pytest.mark.wide(
    "integration/test_crash.py::test_driver_killed_at_point_after_point",
    "simulation/test_simulation.py::test_no_schedule_breaks_a_law",
)
def test_a_flow_goes_both_ways_in_turn(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    """At the limit the short way, one record above it the long one; a batch of the other way finds
    what was there."""
    landing = {"small_batch_records": LIMIT}
    settings = {"topics": [topic_name], "emit_heartbeats_enabled": False}
    topology = write_topology(tmp_path, clusters.east, clusters.west, settings, landing)
    create_topic(clusters.east, topic_name, PARTITIONS)
    written, ways = 0, []
    for count in (LIMIT, LIMIT + 1, 1, LIMIT + 1, LIMIT):
        write(clusters.east, topic_name, numbered(count, PARTITIONS, written, size=10))
        written += count
        run = replicate_once(spark, topology)
        ways += [report.way for report in run.reports if report.record_count]
    expected = ["short", "long", "short", "long", "short"]
    assert ways == expected
    assert _writers(tmp_path / "lake" / "records") == [
        {"short": "driver", "long": "tasks"}[way] for way in expected
    ]
    assert_same(run.lake, clusters.east, clusters.west, {topic_name: f"east.{topic_name}"}, written)
    (status,) = run.lake.reader.table_rows("flow_status")
    assert (status["short_batches"], status["long_batches"]) == (3, 2)


@pytest.mark.wide("integration/test_crash.py::test_driver_killed_at_point_after_point")
def test_records_too_large_for_the_driver_go_the_long_way(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    """Eighty records of 300 KB are few, and more than the driver takes once it has seen how large
    they are."""
    settings = {"topics": [topic_name], "emit_heartbeats_enabled": False}
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, settings, {"max_records_per_batch": 80}
    )
    create_topic(clusters.east, topic_name, 1)
    write(clusters.east, topic_name, numbered(240, 1, size=100_000))
    run = replicate_once(spark, topology)
    assert _writers(tmp_path / "lake" / "records") == ["driver", "tasks", "tasks"]
    assert_same(run.lake, clusters.east, clusters.west, {topic_name: f"east.{topic_name}"}, 240)


@pytest.mark.wide(
    "integration/test_crash.py::test_driver_killed_at_point_after_point",
    "simulation/test_simulation.py::test_no_schedule_breaks_a_law",
)
@pytest.mark.law("exactly once", "exact map")
@pytest.mark.parametrize("place", ["path", pytest.param("catalog", marks=pytest.mark.slow)])
def test_rows_that_spark_reads_go_both_ways_too(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str, place: str
) -> None:
    """In a catalog, where this process may not be able to open files, Spark hands a small batch
    over."""
    settings = {"topics": [topic_name], "emit_heartbeats_enabled": False}
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, settings, {"small_batch_records": LIMIT}
    )
    if place == "catalog":
        in_catalog(topology)
    create_topic(clusters.east, topic_name, PARTITIONS)
    written, ways = 0, []
    for count in (LIMIT, LIMIT + 1, 1):
        write(clusters.east, topic_name, numbered(count, PARTITIONS, written, size=10))
        written += count
        run = replicate_once(spark, topology, "rows")
        ways += [(report.reader, report.way) for report in run.reports if report.record_count]
    assert ways == [("rows", "short"), ("rows", "long"), ("rows", "short")]
    assert_same(run.lake, clusters.east, clusters.west, {topic_name: f"east.{topic_name}"}, written)


@pytest.mark.wide("simulation/test_simulation.py::test_no_schedule_breaks_a_law")
@pytest.mark.parametrize(
    ("way", "limit"), [("short", LIMIT), pytest.param("long", 0, marks=pytest.mark.slow)]
)
def test_a_flow_that_was_fenced_begins_anew(
    spark: SparkSession,
    clusters: ClusterPair,
    tmp_path: Path,
    topic_name: str,
    way: str,
    limit: int,
) -> None:
    """Another process noted a newer token, and is gone: what was planned before writes nothing,
    what is planned then does. The task's error comes to the driver as itself on the short way, and
    as a text of Spark's on the long one."""
    settings = {"topics": [topic_name], "produce_tasks": 1}
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, settings, {"small_batch_records": limit}
    )
    create_topic(clusters.east, topic_name, PARTITIONS)
    write(clusters.east, topic_name, [NewRecord(b"0", b"0", 0)])
    mirror = f"east.{topic_name}"

    def counts() -> list[int]:
        return [len(records) for records in read_topic(clusters.west, mirror)]

    with replicating(spark, topology) as run:
        until(lambda: counts() == [1, 0], "the first record")
        group = f"{name_at_target(run.lake.lake_id, FLOW)}-fencing"
        token = TopicPartition(mirror, 0, 7)
        with closing(Consumer({"bootstrap.servers": clusters.west, "group.id": group})) as consumer:
            consumer.commit(offsets=[token], asynchronous=False)
        write(clusters.east, topic_name, [NewRecord(b"1", b"1", 1)])
        until(lambda: counts() == [1, 1], "the record behind the token")
    assert {report.way for report in run.reports if report.record_count} == {way}
    assert_same(run.lake, clusters.east, clusters.west, {topic_name: mirror}, 2)


@pytest.mark.wide("integration/test_crash.py::test_driver_killed_at_point_after_point")
def test_a_run_asks_spark_for_nothing_of_a_small_table(
    spark: SparkSession,
    clusters: ClusterPair,
    tmp_path: Path,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its first query takes Spark ten seconds of CPU, which a backlog then lacks. Groups are
    translated on the way."""
    asked: list[str] = []
    original = Lake.sql

    def spied(lake: Lake, text: str, *args: Mapping[str, object]) -> DataFrame:
        if re.search(r"\b(FROM|JOIN|INTO|UPDATE)\b", text, re.IGNORECASE) and "CREATE" not in text:
            asked.append(text)
        return original(lake, text, *args)

    monkeypatch.setattr(Lake, "sql", spied)
    create_topic(clusters.east, topic_name, PARTITIONS)
    write(clusters.east, topic_name, numbered(LIMIT, PARTITIONS))
    commit_all(clusters.east, topic_name, [topic_name], 1, PARTITIONS)
    settings = {"topics": [topic_name], "groups": [topic_name], "emit_checkpoints_enabled": True}
    topology = write_topology(tmp_path, clusters.east, clusters.west, settings)
    for _ in range(2):
        lake = replicate_once(spark, topology).lake
    assert lake.reader.rows("SELECT count(*) AS count FROM checkpoints")[0]["count"] >= 1
    assert asked == []
