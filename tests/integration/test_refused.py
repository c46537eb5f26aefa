"""A refused record stops its partition, and its incident stays open for as long as that is so."""

import os
import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.errors import TargetRefused
from mirrorlake.lake.lake import Lake
from tests.support.clusters import ClusterPair
from tests.support.kafka import NewRecord, create_topic, numbered, read_topic, write
from tests.support.lanes import BOTH_LANES
from tests.support.replication import FLOW, lake_of, land_only, replicate_once, write_topology

pytestmark = BOTH_LANES


def optimize(lake: Lake) -> int:
    """Compact the stage; returns how many files became fewer."""
    return int(lake.sql("OPTIMIZE records").collect()[0]["metrics"]["numFilesRemoved"])


def test_a_refused_record_in_a_backlog_stays_an_incident(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    """All is staged, and compacted, before the flow produces anything, as for a flow that is new to an old stage."""
    topic = f"refused-{uuid.uuid4().hex[:8]}"
    create_topic(clusters.east, topic, 2)
    create_topic(clusters.west, f"east.{topic}", 2, max_message_bytes="5000")
    topology = write_topology(
        tmp_path,
        clusters.east,
        clusters.west,
        {"topics": [topic], "sync_topic_configs_enabled": False},
        {"max_records_per_batch": 100},
    )
    write(clusters.east, topic, numbered(100, 2))
    write(clusters.east, topic, [NewRecord(os.urandom(20_000), None, 0)])
    write(clusters.east, topic, numbered(100, 2, 100))
    land_only(spark, topology)
    assert optimize(lake_of(spark, topology)) > 1, "there was something to compact"
    told = "flow, kind, topic, partition, first_offset, last_offset, resolution"
    for _ in range(2):
        with pytest.raises(TargetRefused):
            replicate_once(spark, topology)
        rows = lake_of(spark, topology).sql(f"SELECT {told} FROM incidents").collect()
        assert [tuple(row) for row in rows] == [(FLOW, "target_refused", topic, 0, 50, 50, None)]
    assert [len(records) for records in read_topic(clusters.west, f"east.{topic}")] == [50, 100]
