"""A process that stood still while another one took over hears of it when it goes on: it ends, and
tells operators."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, record_count, write
from tests.support.lake_rows import now_of
from tests.support.replication import assert_same, finish, replicate_once, start_run, write_topology
from tests.support.waiting import until


@pytest.mark.wide(
    "simulation/test_two_processes.py::test_no_schedule_of_two_processes_breaks_a_law"
)
def test_it_ends_with_an_incident_and_takes_nothing_back(
    clusters: ClusterPair, spark: SparkSession, topic_name: str, tmp_path: Path
) -> None:
    """As on a host that was cut off: the two have no locks in common."""
    east, west = clusters.east, clusters.west
    topology = write_topology(tmp_path / "lake1", east, west, {"topics": [topic_name]})
    names = {topic_name: f"east.{topic_name}"}
    create_topic(east, topic_name, 2)
    write(east, topic_name, numbered(40))
    run = start_run(topology)
    try:
        until(lambda: _count(west, names[topic_name]), gives=40, seconds=120)
        os.kill(run.pid, signal.SIGSTOP)
        shutil.rmtree(topology.parent / "lake" / "_checkpoints" / "leases")
        write(east, topic_name, numbered(40))
        lake = replicate_once(spark, topology).lake
        write(east, topic_name, numbered(40))
        os.kill(run.pid, signal.SIGCONT)
        assert finish(run, 120) == 1
    finally:
        run.kill()
    told = now_of(lake).rows("SELECT kind, detail FROM open_incidents")
    assert {row["kind"] for row in told} >= {"fenced"}, told
    assert all("another process has taken over" in row["detail"] for row in told), told
    replicate_once(spark, topology)
    assert_same(lake, east, west, names, at_least=120)
    assert now_of(lake).rows("SELECT kind, detail FROM open_incidents") == []


def _count(cluster: str, topic: str) -> int:
    return record_count(cluster, topic)
