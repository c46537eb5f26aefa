"""Retention deletes what a disabled flow has not produced: when it comes back, it stops before the hole and says so."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.core.maintenance import Maintenance
from mirrorlake.core.topology import load_topology
from mirrorlake.engine.connections import Connections
from mirrorlake.engine.maintain import maintain
from mirrorlake.engine.resolve import Wanted, resolve
from mirrorlake.errors import StageTrimmed
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, read_topic, write
from tests.support.lake_rows import ago
from tests.support.replication import FLOW, lake_of, land_only, replicate_once, write_topology
from tests.support.topologies import incidents

pytestmark = pytest.mark.slow


def test_a_flow_that_lacks_deleted_records_stops_until_somebody_decides(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(30))
    flow = {"topics": [topic_name]}
    replicate_once(spark, write_topology(tmp_path, clusters.east, clusters.west, flow))
    write(clusters.east, topic_name, numbered(20, start=30))
    file = write_topology(tmp_path, clusters.east, clusters.west, flow)
    land_only(spark, file)
    write_topology(tmp_path, clusters.east, clusters.west, {**flow, "enabled": False})
    lake, kept = lake_of(spark, file), Maintenance(retention_days=1, disabled_hold_days=1)
    with pytest.MonkeyPatch.context() as patch:  # as if what is there had landed long ago
        patch.setattr("mirrorlake.engine.maintain._days_ago", lambda _days: ago(0))
        assert maintain(lake, load_topology(file), kept)["records"]["removed"] == 49, "the newest one stays"

    write_topology(tmp_path, clusters.east, clusters.west, flow)
    for _ in range(2):  # it is told once
        with pytest.raises(StageTrimmed, match=f"offsets 30 to 48 of {topic_name}-0"):
            replicate_once(spark, file)
    assert arrived(clusters, topic_name) == list(range(30)), "nothing is written behind the hole"
    (found,) = incidents(lake)
    assert (found["kind"], found["topic"], found["partition"]) == ("stage_trimmed", topic_name, 0)
    assert (found["first_offset"], found["last_offset"]) == (30, 48)

    topology = load_topology(file)
    resolve(lake, Connections(topology), Wanted(flow=FLOW, topic=topic_name), "continue")
    write(clusters.east, topic_name, numbered(5, start=50))
    replicate_once(spark, file)
    assert arrived(clusters, topic_name) == [*range(30), *range(49, 55)]
    replicate_once(spark, file)
    assert incidents(lake) == []


def arrived(clusters: ClusterPair, topic: str) -> list[int]:
    """The numbers that the target has, in order."""
    return [int((record.value or b"").split(b"|")[0]) for record in read_topic(clusters.west, f"east.{topic}")[0]]
