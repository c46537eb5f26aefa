"""A run without a session, and how it gets one: it lands and produces what is little by itself, and
Spark takes over once there is more."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.lake import small_batches
from mirrorlake.spark.java import find_java
from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake
from tests.support.jars import nowhere
from tests.support.kafka import create_topic, numbered, record_count, write
from tests.support.replication import assert_same, finish, lake_of, start_run, write_topology
from tests.support.topologies import ends
from tests.support.waiting import until

#: For which it takes some small batches, and so many that a session is worth its start.
SMALL, FEW, MANY = 10, 30, 10 * (small_batches.MANY + 2)


@dataclass(frozen=True)
class LateJava:
    """A Java that begins once it may, or ends where it may not."""

    home: Path

    @property
    def was_started(self) -> bool:
        return (self.home / "started").exists()

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
        f"touch {home}/started\n"
        f"until [ -e {home}/begin ]; do\n"
        f"  [ -d {home} ] && [ ! -e {home}/end ] || exit 3\n"  # the folder goes with the test
        "  sleep 0.1\n"
        "done\n"
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
    return write_topology(
        tmp_path,
        clusters.east,
        clusters.west,
        {"topics": [topic_name]},
        landing={"small_batch_records": SMALL},
    )


def wait_for(clusters: ClusterPair, topic_name: str, count: int) -> None:
    mirror = f"east.{topic_name}"
    until(lambda: ends(clusters.west, [mirror]) >= count, "the mirror")  # markers count there
    until(lambda: record_count(clusters.west, mirror) >= count, f"{count} records")


@contextmanager
def running(
    topology: Path, java: LateJava, **environment: str
) -> Iterator["subprocess.Popen[bytes]"]:
    run = start_run(topology, JAVA_HOME=str(java.home), **environment)
    try:
        yield run
    finally:
        run.kill()
        run.wait()


@pytest.mark.wide(
    "integration/test_laws_on_each_way.py::test_tables_and_target_are_enough_to_go_on"
)
def test_few_records_need_no_java(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, topology: Path, java: LateJava
) -> None:
    """Whenever they come, and after a restart."""
    mirror, count = f"east.{topic_name}", 0
    for _ in range(2):
        with running(topology, java) as run:
            for _ in range(2):
                write(clusters.east, topic_name, numbered(FEW, 2, count))
                count += FEW
                wait_for(clusters, topic_name, count)
            assert mirrorlake(topology, "status")["flows"]
            run.send_signal(signal.SIGTERM)
            assert finish(run, 60) == 0
    assert not java.was_started
    lake, names = lake_of(spark, topology), {topic_name: mirror}
    assert_same(lake, clusters.east, clusters.west, names, count)


@pytest.mark.wide(
    "simulation/test_before_the_session.py::test_no_schedule_breaks_a_law_while_a_session_starts"
)
def test_many_are_landed_while_spark_starts_and_its_query_takes_over(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, topology: Path, java: LateJava
) -> None:
    """Where no jar but pyspark's own can be had: a lake in a folder needs none."""
    mirror, log = f"east.{topic_name}", topology.parent / "run.log"
    jars = topology.parent / "jars"
    write(clusters.east, topic_name, numbered(MANY, 2))
    with running(topology, java, **nowhere(jars)) as run:
        wait_for(clusters, topic_name, MANY)
        until(lambda: java.was_started, "a Java")
        java.may()
        count, queries = MANY, topology.parent / "lake" / "_checkpoints" / "land" / "east"
        # Each of them is more than this process lands by itself, once a session is there.
        while not list(queries.glob("*/offsets/*")):
            write(clusters.east, topic_name, numbered(MANY, 2, count))
            count += MANY
            wait_for(clusters, topic_name, count)
        write(clusters.east, topic_name, numbered(FEW, 2, count))
        count += FEW
        wait_for(clusters, topic_name, count)
        run.send_signal(signal.SIGTERM)
        assert finish(run, 60) == 0, log.read_text(encoding="utf-8")
    assert not jars.exists()
    lake, names = lake_of(spark, topology), {topic_name: mirror}
    assert_same(lake, clusters.east, clusters.west, names, count)


def test_a_stop_does_not_wait_for_spark(
    clusters: ClusterPair, topic_name: str, topology: Path, java: LateJava
) -> None:
    write(clusters.east, topic_name, numbered(MANY, 2))
    with running(topology, java) as run:
        wait_for(clusters, topic_name, SMALL)
        until(lambda: java.was_started, "a Java")
        run.send_signal(signal.SIGTERM)
        assert finish(run, 60) == 0


@pytest.mark.wide("test_a_java_that_is_missing_is_missed_at_the_start")
def test_a_spark_that_cannot_start_ends_the_run(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, topology: Path, java: LateJava
) -> None:
    """Not silently, and what was mirrored by then is mirrored once."""
    mirror, log = f"east.{topic_name}", topology.parent / "run.log"
    write(clusters.east, topic_name, numbered(MANY, 2))
    with running(topology, java) as run:
        until(lambda: java.was_started, "a Java")
        java.may(begin=False)
        assert finish(run, 60) != 0
    assert "Java" in log.read_text(encoding="utf-8")
    write(clusters.east, topic_name, numbered(FEW, 2, MANY))
    assert finish(start_run(topology, "--once")) == 0, log.read_text(encoding="utf-8")
    lake, names = lake_of(spark, topology), {topic_name: mirror}
    assert_same(lake, clusters.east, clusters.west, names, MANY + FEW)


def test_a_java_that_is_missing_is_missed_at_the_start(
    clusters: ClusterPair, topology: Path, tmp_path: Path
) -> None:
    """And not when many records come, some night."""
    log = topology.parent / "run.log"
    assert finish(start_run(topology, JAVA_HOME=str(tmp_path), PATH="/nowhere"), 60) == 2
    assert "Java" in log.read_text(encoding="utf-8")
