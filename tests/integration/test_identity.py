"""A lake's identity is in the lake: moved, or with other checkpoints, it goes on under the names it
has at targets."""

import shutil
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import LakeError, ReplicationError, TopologyError
from mirrorlake.failover.failover import MoveOptions, move_groups
from mirrorlake.groups.shared_topics import Direction
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.opening import reading_lake
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, record_count, write
from tests.support.replication import (
    FLOW,
    assert_same,
    finish,
    in_catalog,
    lake_of,
    replicate_once,
    start_run,
    write_topology,
)
from tests.support.topologies import ends

PARTITIONS = 2


@pytest.mark.slow
def test_a_lake_that_moves_after_a_kill_goes_on(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    """Killed between a transaction and its map rows: what is started next must know the
    transactions as its own."""
    scenes = [_waiting(clusters, tmp_path / name) for name in ("moved", "checkpoints")]
    changes: list[Callable[[Path], None]] = [_move_lake, _change_checkpoints]
    with ThreadPoolExecutor() as side_by_side:
        for result in [side_by_side.submit(_die, topology) for topology, _ in scenes]:
            result.result()
    for (topology, topic), change in zip(scenes, changes, strict=True):
        change(topology)
        write(clusters.east, topic, numbered(500, PARTITIONS, 2_000, size=10))
        run = replicate_once(spark, topology)
        assert_same(run.lake, clusters.east, clusters.west, {topic: f"east.{topic}"}, 2_500)


@pytest.mark.wide(
    "unit/lake/test_lake_alone.py::test_a_lake_that_is_read_refuses_what_writes_would_need"
)
@pytest.mark.parametrize("place", ["path", pytest.param("catalog", marks=pytest.mark.slow)])
def test_who_opened_a_lake_to_read_it_does_not_produce(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, place: str
) -> None:
    """A failover from a notebook would be a second producer beside the job, under a name that
    fences nobody."""
    topology, topic = _waiting(clusters, tmp_path)
    if place == "catalog":
        in_catalog(topology)
    writer = lake_of(spark, topology)
    loaded = load_topology(topology)
    reader = reading_lake(spark, loaded.lake, tmp_path)
    assert reader.stored_id == writer.lake_id
    with pytest.raises(
        LakeError, match="was opened read-only, so nothing can be landed or produced here"
    ):
        move_groups(
            Deployment.opened(reader, Connections(loaded)),
            Direction(loaded.flow(FLOW)),
            MoveOptions(),
        )
    assert len(reader.ask_table("offset_map")) == 0
    assert len(replicate_once(spark, topology).lake.ask_table("offset_map")) == PARTITIONS


@pytest.mark.wide(
    "unit/lake/test_lake_alone.py::test_a_lake_that_is_read_refuses_what_writes_would_need"
)
def test_a_lake_that_is_lost_is_not_begun_anew_in_silence(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    """Each record would be there twice."""
    topology, topic = _waiting(clusters, tmp_path)
    replicate_once(spark, topology)
    before = ends(clusters.west, [f"east.{topic}"])
    shutil.rmtree(tmp_path / "lake")
    problems = {problem["rule"] for problem in mirrorlake.open(topology).plan().problems}
    assert "other-lake" in problems
    with pytest.raises(TopologyError, match=f"another lake has brought flow .* east.{topic}"):
        replicate_once(spark, topology)
    assert ends(clusters.west, [f"east.{topic}"]) == before

    other = f"{topic}-other"
    create_topic(clusters.east, other)
    write(clusters.east, other, numbered(5))
    _edit(topology, {"path": "./lake"}, topics=[other])
    replicate_once(spark, topology)
    _edit(topology, {"path": "./lake"}, topics=[topic, other])
    write(clusters.east, other, numbered(5))
    with pytest.raises(ReplicationError, match=f"another lake has brought flow .* east.{topic}"):
        replicate_once(spark, topology)
    assert ends(clusters.west, [f"east.{topic}"]) == before
    assert record_count(clusters.west, f"east.{other}") == 10


def _waiting(clusters: ClusterPair, folder: Path) -> tuple[Path, str]:
    topic = f"identity-{uuid.uuid4().hex[:8]}"
    topology = write_topology(folder, clusters.east, clusters.west, {"topics": [topic]})
    create_topic(clusters.east, topic, PARTITIONS)
    write(clusters.east, topic, numbered(2_000, PARTITIONS, size=10))
    return topology, topic


def _die(topology: Path) -> None:
    once = topology.parent / "once"
    code = finish(
        start_run(
            topology,
            "--once",
            MIRRORLAKE_CRASH="kafka-committed:driver",
            MIRRORLAKE_CRASH_ONCE=str(once),
        )
    )
    assert (code, once.exists()) == (-9, True), (topology.parent / "run.log").read_text(
        encoding="utf-8"
    )


def _move_lake(topology: Path) -> None:
    (topology.parent / "lake").rename(topology.parent / "moved lake")
    _edit(topology, {"path": "./moved lake"})


def _change_checkpoints(topology: Path) -> None:
    _edit(topology, {"path": "./lake", "checkpoints": str(topology.parent / "checkpoints")})


def _edit(topology: Path, lake: dict[str, str], **flow: object) -> None:
    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    document["flows"][FLOW].update(flow)
    topology.write_text(yaml.safe_dump({**document, "lake": lake}), encoding="utf-8")
