"""A flow that is new to an old stage: it begins with what the stage has, though the source has
trimmed it long ago, and goes over into what comes meanwhile, in one process, without a gap or a
double. Groups are translated over all of it."""

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

import mirrorlake
from tests.support.clusters import ClusterPair
from tests.support.groups import commit_all
from tests.support.kafka import Record, create_topic, numbered, read_topic, truncate, write
from tests.support.replication import (
    FLOW,
    assert_topic_same,
    both_sides,
    land_only,
    replicate_once,
    replicating,
    write_topology,
)

PARTITIONS = 2
SECONDS = 300


@pytest.mark.wide("simulation/test_simulation.py::test_no_schedule_breaks_a_law")
@pytest.mark.parametrize("count", [10_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_late_target_gets_all_that_the_stage_has(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str, count: int
) -> None:
    settings = {
        "topics": [topic_name],
        "emit_checkpoints_enabled": True,
        "emit_checkpoints_interval_seconds": 1,
    }
    topology = write_topology(tmp_path, clusters.east, clusters.west, settings)
    create_topic(clusters.east, topic_name, PARTITIONS)
    write(clusters.east, topic_name, numbered(count, PARTITIONS, size=20))
    # records of each partition at which groups stand: the first, one in the middle of what is
    # trimmed, its end
    stand = (0, count // PARTITIONS // 3, count // PARTITIONS)
    groups = {f"{topic_name}-{position}": position for position in stand}
    for group, position in groups.items():
        commit_all(clusters.east, topic_name, [group], position, PARTITIONS)
    land_only(spark, topology)
    staged = read_topic(clusters.east, topic_name)
    assert [len(records) for records in staged] == [count // PARTITIONS] * PARTITIONS
    for partition in range(PARTITIONS):
        truncate(clusters.east, topic_name, count // PARTITIONS, partition)
    written = count
    with replicating(spark, topology) as run:
        end = time.monotonic() + SECONDS
        while sum(report.record_count for report in run.reports) < written or written == count:
            assert time.monotonic() < end, f"{len(run.reports)} batches, and it is not through"
            if written < count + 5_000:
                write(clusters.east, topic_name, numbered(500, PARTITIONS, written, size=20))
                written += 500
    lake = replicate_once(spark, topology).lake
    sides = both_sides(lake, clusters.east, clusters.west, {topic_name: f"east.{topic_name}"})
    came: list[list[Record]] = [
        before + after for before, after in zip(staged, sides.source[topic_name], strict=True)
    ]
    assert assert_topic_same(sides, topic_name, came) == written
    verified = mirrorlake.open(str(topology)).verify()
    assert verified.differences == [] and verified.proven == written
    assert verified.excused == {"source_trimmed": count}
    for group, position in groups.items():
        for partition, at in enumerate(committed(clusters.west, group, f"east.{topic_name}")):
            # Between the end of the stage at that time and the next record lie markers of
            # transactions.
            after = translated(topology, topic_name, partition, position - 1) + 1 if position else 0
            assert after <= at <= translated(topology, topic_name, partition, position), (
                f"{group}, {partition}"
            )


def committed(bootstrap: str, group: str, topic: str) -> list[int]:
    """Where a group stands in each partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    found = consumer.committed([TopicPartition(topic, number) for number in range(PARTITIONS)], 20)
    consumer.close()
    return [item.offset for item in found]


def translated(topology: Path, topic: str, partition: int, position: int) -> int:
    """The target position of a source position, by the map."""
    found = mirrorlake.open(str(topology)).translate(FLOW, topic, partition, position)
    assert found.exact
    return found.offset
