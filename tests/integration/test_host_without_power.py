"""The host of a lake loses its power, again and again: what the lake said that it has, it has."""

import shutil
from functools import partial
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from tests.support.clusters import ClusterPair
from tests.support.disks import power_disk
from tests.support.kafka import create_topic, numbered, record_count, write
from tests.support.replication import assert_same, finish, lake_of, start_run, write_topology
from tests.support.waiting import until

pytestmark = pytest.mark.slow

RECORDS, PARTITIONS = 1_000, 3


def _has(clusters: ClusterPair, topic: str, count: int) -> bool:
    return record_count(clusters.west, topic) >= count


def test_nothing_is_lost_or_twice_when_the_host_of_the_lake_loses_its_power(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """Many small batches, each synced for itself; the power goes at some moment of a run."""
    create_topic(clusters.east, topic_name, PARTITIONS)
    target, written = f"east.{topic_name}", 0
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    with power_disk(tmp_path / "disk") as disk:
        document = yaml.safe_load(topology.read_text(encoding="utf-8"))
        document["lake"] = {"path": str(disk.place / "lake")}
        topology.write_text(yaml.safe_dump(document), encoding="utf-8")
        for _ in range(4):
            run = start_run(topology)
            try:
                for _ in range(5):
                    write(clusters.east, topic_name, numbered(RECORDS, PARTITIONS, start=written))
                    written += RECORDS
                    until(partial(_has, clusters, target, written - RECORDS // 2), "it runs")
                    assert run.poll() is None
            finally:
                run.kill()
                run.wait()
            disk.lose_power()
        assert finish(start_run(topology, "--once")) == 0
        shutil.copytree(disk.place / "lake", tmp_path / "lake")
    document["lake"] = {"path": "./lake"}
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    lake = lake_of(spark, topology)
    assert_same(lake, clusters.east, clusters.west, {topic_name: target}, written)
