"""A scheduled `run --once` whose control work fails says so, and the next one closes the incident
of a process that is gone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.errors import ReplicationError
from mirrorlake.lake.lake import Lake
from tests.support.clusters import ClusterPair, own_topics
from tests.support.control import set_configs
from tests.support.groups import commit_all
from tests.support.kafka import NewRecord, create_topic, write
from tests.support.lake_rows import now_of
from tests.support.replication import lake_of, replicate_once, write_topology

pytestmark = pytest.mark.slow
CONTROL = {"emit_heartbeats_enabled": True, "emit_checkpoints_enabled": True}


@pytest.fixture
def own(clusters: ClusterPair) -> Iterator[ClusterPair]:
    """The clusters; what MirrorMaker 2's topics hold is gone behind the test."""
    with own_topics(clusters):
        yield clusters


def test_a_run_once_that_could_not_do_its_control_work_fails_until_it_can(
    spark: SparkSession, own: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(own.east, topic_name)
    write(own.east, topic_name, [NewRecord(b"x")])
    commit_all(own.east, topic_name, [f"{topic_name}-group"], 1, partitions=1)
    for topic in (broken := ("heartbeats", "east.checkpoints.internal")):
        create_topic(own.west, topic)
        set_configs(own.west, topic, {"max.message.bytes": "1"})
    settings = {"topics": [topic_name], "groups": [f"{topic_name}-group"], **CONTROL}
    topology = write_topology(tmp_path, own.east, own.west, settings)

    with pytest.raises(ReplicationError, match="control of heartbeats of flow east->west fails"):
        replicate_once(spark, topology)
    lake = lake_of(spark, topology)
    assert mapped(lake, topic_name) == 1, "records are mirrored all the same"
    assert open_kinds(lake) == ["control_checkpoints", "control_heartbeats"]

    set_configs(own.west, "heartbeats", {"max.message.bytes": None})
    with pytest.raises(ReplicationError, match="control of checkpoints of flow east->west fails"):
        replicate_once(spark, topology)
    assert open_kinds(lake) == ["control_checkpoints"]

    set_configs(own.west, broken[1], {"max.message.bytes": None})
    replicate_once(spark, topology)
    assert open_kinds(lake) == []


def mapped(lake: Lake, topic: str) -> int:
    """How many records of a topic have a target offset."""
    rows = now_of(lake).rows(f"SELECT record_count FROM offset_map WHERE topic = '{topic}'")
    return sum(row["record_count"] for row in rows)


def open_kinds(lake: Lake) -> list[str]:
    """Kinds of open incidents."""
    return sorted(row["kind"] for row in now_of(lake).table_rows("open_incidents"))
