"""`failover` beside a process that runs the flow on another host: it waits for that one and
produces nothing itself."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.config.topology import load_topology
from mirrorlake.failover.drain import drain
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.place import FolderPlace, Place
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic
from tests.support.replication import FLOW, lake_of, write_topology
from tests.support.topologies import ends, fill, live
from tests.support.waiting import until

pytestmark = pytest.mark.slow


def test_a_drain_waits_for_a_process_whose_locks_it_does_not_see(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_topic(clusters.east, topic_name)
    file = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    fill(clusters.east, topic_name, "a", 10, 1)
    here = lake_of(spark, file)
    known = PathLake.leases.fget
    assert known is not None

    def leases(lake: Lake) -> Place:
        """As of a mount of this host: what others have locked is not seen."""
        return FolderPlace(tmp_path / "locks of this host") if lake is here else known(lake)

    def beside(*_: object, **__: object) -> None:
        raise AssertionError("a second replicator beside the one that runs")

    monkeypatch.setattr(PathLake, "leases", property(leases))
    monkeypatch.setattr("mirrorlake.failover.drain.Replicator", beside)
    with live(spark, file) as run:
        until(lambda: ends(clusters.west, [f"east.{topic_name}"]) >= 10, "the flow runs")
        until(lambda: run.lake.ask_table("positions"), "it was sampled")
        fill(clusters.east, topic_name, "b", 10, 1)
        topology = load_topology(file)
        drained = drain(Deployment.opened(here, Connections(topology)), topology.flow(FLOW))
        assert drained.complete and drained.records == 0, drained
        assert not run.incidents()
