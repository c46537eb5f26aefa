"""What a target lost is told by `status`, also where no process runs the flow."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mirrorlake.config.topology import load_topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.lake import Lake
from mirrorlake.run.status import read_status
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, delete_topic, numbered, write
from tests.support.lake_rows import now_of
from tests.support.replication import replicate_once, write_topology


@pytest.mark.law("never more than was seen")
def test_a_target_that_lacks_what_the_map_has_is_told(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    topic = f"lost-{uuid.uuid4().hex[:8]}"
    create_topic(clusters.east, topic)
    write(clusters.east, topic, numbered(110))
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic]})
    lake = replicate_once(spark, topology).lake
    assert told(lake, topology) == []
    delete_topic(clusters.west, f"east.{topic}")
    assert told(lake, topology) == [("target_behind", topic, 0, 110.0)]
    create_topic(clusters.west, f"east.{topic}")
    write(clusters.west, f"east.{topic}", numbered(11))
    assert told(lake, topology) == [
        ("target_behind", topic, 0, 99.0),
        ("target_recreated", topic, None, 1.0),
    ]
    write(clusters.west, f"east.{topic}", numbered(200))
    assert told(lake, topology) == [("target_recreated", topic, None, 1.0)], (
        "it is longer than the map says, and another"
    )


def told(lake: Lake, topology: Path) -> list[tuple[Any, ...]]:
    """The alerts of `status`, which asked every cluster."""
    status = read_status(now_of(lake), Connections(load_topology(topology)))
    assert status["unchecked"] == [] and status["healthy"] == (not status["alerts"])
    return [
        (row["alert"], row["topic"], row["partition"], row["value"]) for row in status["alerts"]
    ]
