"""Heartbeats take the way of every record: how old the newest one is at the target measures the
whole path."""

import math
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.lake import Lake
from mirrorlake.mm2.formats import Heartbeat, decode_heartbeat
from tests.support.clusters import ClusterPair, own_topics
from tests.support.control import own_configs
from tests.support.kafka import NewRecord, create_topic, read_topic, topics_of, write
from tests.support.mirror_client import ask_mirror_client
from tests.support.replication import replicate_once, replicating, write_topology
from tests.support.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def own(clusters: ClusterPair) -> Iterator[ClusterPair]:
    """The clusters; heartbeats topics are gone behind the test, since flows of other tests would
    mirror them."""
    with own_topics(clusters):
        yield clusters


def heartbeats(bootstrap: str, topic: str) -> list[Heartbeat]:
    """The heartbeats of a topic; none if it is not there."""
    if topic not in topics_of(bootstrap):
        return []
    (records,) = read_topic(bootstrap, topic)
    return [decode_heartbeat(record.key, record.value) for record in records]


def status(lake: Lake) -> dict[str, object]:
    """The flow's row of `flow_status`."""
    rows = lake.ask_table("flow_status")
    return rows[0] if rows else {}


def age_of(lake: Lake) -> float:
    """Seconds since its newest heartbeat was sent; none yet is older than any."""
    age = status(lake).get("heartbeat_age_seconds")
    return math.inf if age is None else float(str(age))


def test_heartbeats_are_mirrored_and_their_age_is_told(
    spark: SparkSession, own: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(own.east, topic_name)
    write(own.east, topic_name, [NewRecord(b"x")])
    settings = {
        "topics": [topic_name],
        "emit_heartbeats_enabled": True,
        "refresh_topics_interval_seconds": 1,
    }
    topology = write_topology(tmp_path, own.east, own.west, settings)
    with replicating(spark, topology) as run:
        until(
            lambda: len(heartbeats(own.west, "east.heartbeats")) >= 5,
            "five heartbeats came through",
            240,
        )
        until(lambda: 0 <= age_of(run.lake) < 30, "what came through is young", 240)
        assert ask_mirror_client(own.west, "east")["replicationHops"]["east"] == 1
    arrived, sent = heartbeats(own.west, "east.heartbeats"), heartbeats(own.east, "heartbeats")
    assert arrived == sent[: len(arrived)]
    assert {(beat.source, beat.target) for beat in sent} == {("east", "west")}
    assert heartbeats(own.west, "heartbeats") == sent, "MirrorMaker 2 writes them to the target"
    assert {
        own_configs(address, "heartbeats")["cleanup.policy"] for address in (own.east, own.west)
    } == {"compact"}
    rows = [row for row in run.lake.ask_table("changes") if row["kind"] == "topic"]
    assert {"heartbeats", "heartbeats on cluster east", "east.heartbeats"} <= {
        row["resource"] for row in rows
    }

    before, told, after = time.time(), age_of(run.lake), time.time()
    newest = arrived[-1].timestamp / 1000
    assert before - newest - 10 < told < after - newest + 1, (
        "the time from the record to its row may be missing"
    )
    until(lambda: age_of(run.lake) > told, "it grows while nothing comes through")

    replicate_once(spark, topology)
    again = heartbeats(own.west, "east.heartbeats")
    assert again == heartbeats(own.east, "heartbeats"), (
        "a run with an end sends one, and mirrors it"
    )
    assert len(again) == len(sent) + 1
    answer = status(run.lake)
    assert answer["lag_records"] == 0 and answer["open_incidents"] == 0


def test_an_idle_flow_commits_as_often_as_it_is_sampled(
    spark: SparkSession, own: ClusterPair, tmp_path: Path
) -> None:
    """Ten heartbeats are one batch: an hour is 360 commits of what changes, and none of what does
    not."""
    settings = {"topics": ["heartbeats"], "emit_heartbeats_enabled": True}
    topology = write_topology(tmp_path, own.east, own.west, settings)

    def versions() -> dict[str, int]:
        return {table: DeltaTable(str(tmp_path / "lake" / table)).version() for table in TABLES}

    with replicating(spark, topology) as run:
        until(lambda: age_of(run.lake) < 30, "a heartbeat came through", 240)
        first = versions()
        until(
            lambda: versions()["positions"] >= first["positions"] + 4,
            "it was sampled four times",
            240,
        )
        commits = {table: version - first[table] for table, version in versions().items()}
    sampled = commits.pop("positions")
    for table in ("records", "offset_map", "latency"):
        assert 2 <= commits.pop(table) <= sampled + 1, table
    assert not any(commits.values()), commits
