"""Clients that are replaced while records come, since they know partitions that their batches no
longer have, change nothing of what is mirrored or mapped."""

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.kafka import client_pool
from mirrorlake.landing.sinks import DriverLog
from mirrorlake.produce.writer import ShardWriter
from tests.support.calls import calls_of
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, record_count, topics_of, write
from tests.support.replication import assert_same, replicating, write_topology
from tests.support.waiting import until

PARTITIONS, ROUNDS = 6, 20


@pytest.mark.wide("simulation/test_simulation.py::test_no_schedule_breaks_a_law")
def test_records_go_on_by_the_next_ones(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"MANY": 0, "TIMES": 1, "BATCHES": 2}.items():
        monkeypatch.setattr(client_pool, name, value)
    logs = calls_of(DriverLog, "close", patch=monkeypatch.setattr)
    writers = calls_of(ShardWriter, "__init__", patch=monkeypatch.setattr)
    create_topic(clusters.east, topic_name, PARTITIONS)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    mirror, sent = f"east.{topic_name}", 0
    with replicating(spark, topology) as run:
        for number in range(ROUNDS):
            partitions = PARTITIONS if number % 10 == 0 else 1 + number % 2
            write(clusters.east, topic_name, numbered(60, partitions, start=sent))
            sent += 60
            until(partial(arrived, clusters.west, mirror, sent), "what was written")
    assert len(logs) > 3 and len(writers) > 3, "clients were replaced"
    assert_same(run.lake, clusters.east, clusters.west, {topic_name: mirror}, sent)


def arrived(bootstrap: str, mirror: str, count: int) -> bool:
    """Whether a mirror has so many records."""
    return mirror in topics_of(bootstrap) and record_count(bootstrap, mirror) == count
