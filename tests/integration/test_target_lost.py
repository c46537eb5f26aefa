"""A target that lost records which it had acknowledged, as by an unclean leader election or a
restored disk, while the topic is the same one: found, told until it is decided, and mirrored again
from the stage, or given up."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import MirrorlakeError
from mirrorlake.groups.checkpoint_table import newest_checkpoints
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.translate import translate, translate_all
from mirrorlake.run.resolve import Wanted, resolve
from tests.support.clusters import ClusterPair
from tests.support.groups import commit_all
from tests.support.kafka import create_topic, read_topic
from tests.support.lake_rows import now_of
from tests.support.replication import FLOW, lake_of, replicate_once, write_topology
from tests.support.rewind import rewind
from tests.support.topologies import fill, incidents, map_pairs, texts, values

#: Records of each partition, in transactions of 5 with a marker behind each; the target keeps two
#: of these. A group has read all but the last ones.
STAGED, KEPT, READ = 20, 10, 15


def scene(
    spark: SparkSession, clusters: ClusterPair, topic: str, directory: Path, *, proven: bool = False
) -> tuple[Path, Lake]:
    """Four runs of 5 records in each of two partitions, and a group that has read three of them;
    the target has lost what the last two brought to one, once all was `proven`."""
    if clusters.embedded is None:
        pytest.skip("the brokers' disks are not ours to change")
    group = f"{topic}-billing"
    settings = {"topics": [topic], "groups": [group], "emit_checkpoints_enabled": True}
    topology = write_topology(directory, clusters.east, clusters.west, settings)
    create_topic(clusters.east, topic, 2)
    for number in range(4):
        fill(clusters.east, topic, "a", 10, start=10 * number)
        if number == 3:
            commit_all(clusters.east, topic, [group], READ, 2)
        replicate_once(spark, topology)
    if proven:
        assert mirrorlake.open(topology).verify().proven == 2 * STAGED
    rewind(clusters.embedded["west"], f"east.{topic}-0", 12)
    return topology, lake_of(spark, topology)


def stands(spark: SparkSession, topology: Path, lake: Lake, topic: str) -> None:
    """Each run says so and ends with it."""
    for _ in range(2):
        with pytest.raises(MirrorlakeError, match=f"east.{topic}-0 has lost records"):
            replicate_once(spark, topology)
        told = [
            (row["kind"], row["topic"], row["partition"], row["first_offset"], row["last_offset"])
            for row in incidents(lake)
        ]
        assert told == [("target_lost", topic, 0, KEPT, STAGED - 1)]


def exact(lake: Lake, topic: str, partition: int, pairs: list[tuple[int, int]]) -> None:
    """Each of these pairs of offsets, both ways, and no other."""
    assert map_pairs(lake, FLOW, topic, partition) == pairs
    there = {(topic, partition, source): target for source, target in pairs}
    positions = translate_all(now_of(lake), FLOW, there)
    assert {key: (item.offset, item.exact) for key, item in positions.items()} == {
        key: (target, True) for key, target in there.items()
    }
    back = {(f"east.{topic}", partition, target): source for source, target in pairs}
    positions = translate_all(now_of(lake), FLOW, back, reverse=True)
    assert {key: (item.offset, item.exact) for key, item in positions.items()} == {
        key: (source, True) for key, source in back.items()
    }


@pytest.mark.wide(
    "simulation/test_found.py::test_what_a_target_lost_is_out_of_the_map_until_it_is_produced_again",
    "integration/test_status_laws.py::test_a_target_that_lacks_what_the_map_has_is_told",
)
@pytest.mark.parametrize(
    "grown", [pytest.param(0, marks=pytest.mark.slow, id="idle"), pytest.param(100, id="grown")]
)
def test_they_are_produced_from_the_stage_again(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path, grown: int
) -> None:
    topology, lake = scene(spark, clusters, topic_name, tmp_path)
    if grown:
        fill(clusters.east, topic_name, "b", grown)
    stands(spark, topology, lake, topic_name)
    target = read_topic(clusters.west, f"east.{topic_name}")
    assert values(target[0]) == texts("a", 2 * KEPT), "nothing goes on before it is decided"
    assert values(target[1])[STAGED:] == (texts("b", grown, partition=1) if grown else []), (
        "the others go on"
    )
    exact(lake, topic_name, 0, [(number, record.offset) for number, record in enumerate(target[0])])
    resolve(
        Deployment.opened(lake, Connections(load_topology(topology))),
        Wanted(topic=topic_name),
        "produce-again",
    )
    replicate_once(spark, topology)
    assert not incidents(lake)
    target = read_topic(clusters.west, f"east.{topic_name}")
    assert values(target[0]) == texts("a", 2 * STAGED) + (texts("b", grown) if grown else [])
    for partition, records in enumerate(target):
        exact(
            lake,
            topic_name,
            partition,
            [(number, record.offset) for number, record in enumerate(records)],
        )
    for partition, records in enumerate(target):
        checkpoint, _ = newest_checkpoints(now_of(lake), FLOW)[
            f"{topic_name}-billing", topic_name, partition
        ]
        assert checkpoint.target_position == records[READ].offset, "a group misses none of them"
    verified = mirrorlake.open(topology).verify()
    assert verified.differences == [] and verified.proven == verified.records


@pytest.mark.slow
def test_they_are_given_up(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    topology, lake = scene(spark, clusters, topic_name, tmp_path)
    stands(spark, topology, lake, topic_name)
    resolve(
        Deployment.opened(lake, Connections(load_topology(topology))),
        Wanted(topic=topic_name),
        "accept",
    )
    fill(clusters.east, topic_name, "b", 100)
    replicate_once(spark, topology)
    assert not incidents(lake)
    target = read_topic(clusters.west, f"east.{topic_name}")
    assert values(target[0]) == texts("a", 2 * KEPT) + texts("b", 100)
    there = [*range(KEPT), *range(STAGED, STAGED + 50)]
    exact(
        lake, topic_name, 0, list(zip(there, [record.offset for record in target[0]], strict=True))
    )
    lost = translate(now_of(lake), FLOW, topic_name, 0, STAGED - 1)
    assert lost.offset == target[0][KEPT].offset, (
        "the next record that the target has, as behind a gap"
    )
    verified = mirrorlake.open(topology).verify()
    assert verified.differences == []
    assert verified.excused == {"given_up": STAGED - KEPT}


@pytest.mark.slow
def test_verify_finds_what_it_had_proven_before_any_run_does(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    topology, _ = scene(spark, clusters, topic_name, tmp_path, proven=True)
    verified = mirrorlake.open(topology).verify()
    lost = [(row["partition"], row["kind"], row["last_offset"]) for row in verified.differences]
    assert lost == [(0, "missing_at_target", STAGED - 1)] and not verified.complete
    assert verified.proven_before == STAGED
