"""Retention deletes what a disabled flow has not produced: when it comes back, it stops before the
hole and says so."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import InputError, StageTrimmed
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.run.resolve import Wanted, resolve
from tests.support.clusters import ClusterPair
from tests.support.kafka import numbered, read_topic, truncate, write
from tests.support.lanes import BOTH_LANES
from tests.support.replication import FLOW, lake_of, replicate_once
from tests.support.topologies import assert_mapped, incidents
from tests.support.trimmed_stage import delete_all_but_the_newest, trimmed

pytestmark = [pytest.mark.slow, *BOTH_LANES]


@pytest.mark.law("nothing silently")
def test_a_flow_that_lacks_deleted_records_stops_until_somebody_decides(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    file = trimmed(spark, clusters, topic_name, tmp_path)
    for _ in range(2):  # it is told once
        with pytest.raises(StageTrimmed, match=f"offsets 30 to 48 of {topic_name}-0"):
            replicate_once(spark, file)
    assert arrived(clusters, topic_name) == list(range(30)), "nothing is written behind the hole"
    lake = lake_of(spark, file)
    (found,) = incidents(lake)
    assert (found["kind"], found["topic"], found["partition"]) == ("stage_trimmed", topic_name, 0)
    assert (found["first_offset"], found["last_offset"]) == (30, 48)

    resolve(
        Deployment.opened(lake, Connections(load_topology(file))),
        Wanted(flow=FLOW, topic=topic_name),
        "continue",
    )
    write(clusters.east, topic_name, numbered(5, start=50))
    replicate_once(spark, file)
    assert arrived(clusters, topic_name) == [*range(30), *range(49, 55)]
    replicate_once(spark, file)
    assert incidents(lake) == []


@pytest.mark.matrix
@pytest.mark.parametrize("place", ["path", "catalog"])
def test_deleted_records_are_read_from_the_source_again_once_however_often_it_is_asked(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path, place: str
) -> None:
    file, lake, connections = stopped(spark, clusters, topic_name, tmp_path, place)
    with pytest.MonkeyPatch.context() as patch:
        # whoever resolves dies between staging and noting it
        patch.setattr("mirrorlake.lake.incidents.Incidents.settle_all", die)
        with pytest.raises(KeyboardInterrupt):
            resolve(
                Deployment.opened(lake, connections),
                Wanted(flow=FLOW, topic=topic_name),
                "read-again",
            )
    resolve(Deployment.opened(lake, connections), Wanted(flow=FLOW, topic=topic_name), "read-again")
    replicate_once(spark, file)
    assert arrived(clusters, topic_name) == list(range(50))
    there = read_topic(clusters.west, f"east.{topic_name}")
    assert assert_mapped(lake, FLOW, read_topic(clusters.east, topic_name), topic_name, there) == 50
    assert incidents(lake) == []


@pytest.mark.law("nothing silently")
def test_what_is_deleted_again_before_the_flow_had_it_stops_it_again(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    file, lake, connections = stopped(spark, clusters, topic_name, tmp_path)
    wanted = Wanted(flow=FLOW, topic=topic_name)
    resolve(Deployment.opened(lake, connections), wanted, "read-again")
    delete_all_but_the_newest(spark, file)
    with pytest.raises(StageTrimmed, match=f"offsets 30 to 48 of {topic_name}-0"):
        replicate_once(spark, file)
    resolve(Deployment.opened(lake, connections), wanted, "read-again")
    replicate_once(spark, file)
    assert arrived(clusters, topic_name) == list(range(50))


def test_what_the_source_has_trimmed_too_is_asked_for_again(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    file, lake, connections = stopped(spark, clusters, topic_name, tmp_path)
    wanted = Wanted(flow=FLOW, topic=topic_name)
    truncate(clusters.east, topic_name, 40)
    resolve(Deployment.opened(lake, connections), wanted, "read-again")
    with pytest.raises(StageTrimmed, match=f"offsets 30 to 39 of {topic_name}-0"):
        replicate_once(spark, file)
    with pytest.raises(InputError, match="its log begins at 40"):
        resolve(Deployment.opened(lake, connections), wanted, "read-again")
    resolve(Deployment.opened(lake, connections), wanted, "continue")
    replicate_once(spark, file)
    assert arrived(clusters, topic_name) == [*range(30), *range(40, 50)]


def stopped(
    spark: SparkSession, clusters: ClusterPair, topic: str, tmp_path: Path, place: str = "path"
) -> tuple[Path, Lake, Connections]:
    """A flow that has stopped before the hole."""
    file = trimmed(spark, clusters, topic, tmp_path, place)
    with pytest.raises(StageTrimmed):
        replicate_once(spark, file)
    return file, lake_of(spark, file), Connections(load_topology(file))


def die(*_args: object) -> None:
    raise KeyboardInterrupt


def arrived(clusters: ClusterPair, topic: str) -> list[int]:
    """The numbers that the target has, in order."""
    return [
        int((record.value or b"").split(b"|")[0])
        for record in read_topic(clusters.west, f"east.{topic}")[0]
    ]
