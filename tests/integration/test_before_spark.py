"""What a run mirrors while its session starts, which takes a JVM's time: what there is by then, if
it is little."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.spark.java import find_java
from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake
from tests.support.kafka import create_topic, numbered, write
from tests.support.replication import assert_same, finish, lake_of, start_run, write_topology
from tests.support.topologies import ends
from tests.support.waiting import until

FEW, MORE = 500, 300


@dataclass(frozen=True)
class LateJava:
    """A Java that begins once it may, or ends where it may not."""

    home: Path

    def may(self, begin: bool = True) -> None:
        (self.home / ("begin" if begin else "end")).touch()


@pytest.fixture
def java(tmp_path: Path) -> Iterator[LateJava]:
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    command = home / "bin" / "java"
    command.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -version ] && exec {find_java()} "$@"\n'
        f"until [ -e {home}/begin ]; do [ -e {home}/end ] && exit 3; sleep 0.1; done\n"
        f'exec {find_java()} "$@"\n',
        encoding="utf-8",
    )
    command.chmod(0o755)
    made = LateJava(home)
    yield made
    made.may(begin=False)  # one that still waits ends


@pytest.fixture
def topology(clusters: ClusterPair, topic_name: str, tmp_path: Path) -> Path:
    create_topic(clusters.east, topic_name, 2)
    write(clusters.east, topic_name, numbered(FEW, 2))
    return write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})


def test_what_there_is_comes_first_and_what_comes_later_follows(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, topology: Path, java: LateJava
) -> None:
    mirror, log = f"east.{topic_name}", topology.parent / "run.log"
    run = start_run(topology, JAVA_HOME=str(java.home))
    try:
        until(lambda: ends(clusters.west, [mirror]) >= FEW, "what there was at the start")
        assert mirrorlake(topology, "status")["flows"]
        write(clusters.east, topic_name, numbered(MORE, 2, FEW))
        java.may()
        until(lambda: ends(clusters.west, [mirror]) >= FEW + MORE, "what came meanwhile")
        run.send_signal(signal.SIGTERM)
        assert finish(run, 60) == 0, log.read_text(encoding="utf-8")
    finally:
        run.kill()
    lake, names = lake_of(spark, topology), {topic_name: mirror}
    assert_same(lake, clusters.east, clusters.west, names, FEW + MORE)


def test_a_stop_does_not_wait_for_spark(
    clusters: ClusterPair, topic_name: str, topology: Path, java: LateJava
) -> None:
    run = start_run(topology, JAVA_HOME=str(java.home))
    try:
        until(lambda: ends(clusters.west, [f"east.{topic_name}"]) >= FEW, "the first records")
        run.send_signal(signal.SIGTERM)
        assert finish(run, 60) == 0
    finally:
        run.kill()


def test_a_spark_that_cannot_start_ends_the_run(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, topology: Path, java: LateJava
) -> None:
    """Not silently, and what was mirrored by then is mirrored once."""
    mirror, log = f"east.{topic_name}", topology.parent / "run.log"
    run = start_run(topology, JAVA_HOME=str(java.home))
    try:
        until(lambda: ends(clusters.west, [mirror]) >= FEW, "the first records")
        java.may(begin=False)
        assert finish(run, 60) != 0
    finally:
        run.kill()
    assert "Java" in log.read_text(encoding="utf-8")
    write(clusters.east, topic_name, numbered(MORE, 2, FEW))
    assert finish(start_run(topology, "--once")) == 0, log.read_text(encoding="utf-8")
    lake, names = lake_of(spark, topology), {topic_name: mirror}
    assert_same(lake, clusters.east, clusters.west, names, FEW + MORE)
