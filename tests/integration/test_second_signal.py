"""The first SIGTERM has `run` finish what is in hand, the second one ends it at once; the next run
goes on exactly."""

import signal
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from tests.support.clusters import ClusterPair
from tests.support.frozen import frozen
from tests.support.kafka import create_topic
from tests.support.load import load
from tests.support.replication import (
    assert_same,
    finish,
    lake_of,
    replicate_once,
    start_run,
    write_topology,
)
from tests.support.topologies import ends
from tests.support.waiting import until

#: How long a target that answers nothing keeps a run that was asked to end, at least, seconds.
WAITS_SECONDS = 4.0


@pytest.mark.slow
def test_a_run_that_waits_for_its_target_ends_by_the_second_signal(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(clusters.east, topic_name, 2)
    with EmbeddedCluster("west", tmp_path / "west") as west:
        address = west.bootstrap_servers
        topology = write_topology(tmp_path, clusters.east, address, {"topics": [topic_name]})
        run = start_run(topology)
        try:
            with load(clusters.east, topic_name, 2) as records:
                until(lambda: ends(address, [f"east.{topic_name}"]) > 0, "the first records")
                with frozen(west.pids):
                    before = records.written
                    until(lambda: records.written > before + 500, "something is in hand")
                    run.send_signal(signal.SIGTERM)
                    with pytest.raises(subprocess.TimeoutExpired):
                        run.wait(WAITS_SECONDS)
                    run.send_signal(signal.SIGTERM)
                    # the target still answers nothing: a run that waited for it would not end
                    assert run.wait(60) == -signal.SIGTERM
        finally:
            finish(run, 0.1)
        replicate_once(spark, topology)
        names = {topic_name: f"east.{topic_name}"}
        assert_same(lake_of(spark, topology), clusters.east, address, names, records.written)
