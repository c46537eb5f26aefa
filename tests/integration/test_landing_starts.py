"""Where landing begins: asked of the tables and of the source, whatever a query before it had seen;
and around what one partition is refused, everything else goes on."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import MirrorlakeError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.run.resolve import Wanted, resolve
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, read_topic, truncate, write
from tests.support.lake_rows import now_of
from tests.support.replication import lake_of, land_only, replicate_once, write_topology
from tests.support.topologies import incidents, staged_count


def staged(lake: Lake, topic: str) -> list[int]:
    """The offsets of a topic's partition 0 in the stage, in order; one that is there twice stands
    twice."""
    rows = now_of(lake).rows(
        f"SELECT offset FROM records WHERE topic = '{topic}' AND partition = 0"
    )
    return sorted(row["offset"] for row in rows)


def forget_last_commit(topology: Path) -> None:
    """Leave the landing's checkpoint as a kill would between Delta's commit of the last batch and
    Spark's."""
    folders = topology.parent.glob("lake/_checkpoints/land/east/*/commits")
    commits = [
        int(path.name) for folder in folders for path in folder.iterdir() if path.name.isdigit()
    ]
    for folder in topology.parent.glob("lake/_checkpoints/land/east/*/commits"):
        (folder / str(max(commits))).unlink()
        (folder / f".{max(commits)}.crc").unlink(missing_ok=True)


@pytest.mark.slow
def test_a_batch_whose_stream_died_behind_its_commit_is_staged_once_when_the_plan_differs(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed between Delta's commit and Spark's, and other topics are wanted at the restart: where
    the new query begins is asked of the table."""
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    create_topic(clusters.east, topic_name)
    with monkeypatch.context() as patch:
        patch.setattr("mirrorlake.landing.worker.forget_query", lambda *_: None, raising=False)
        for start in (0, 100):
            write(clusters.east, topic_name, numbered(100, start=start))
            land_only(spark, topology)
    forget_last_commit(topology)
    create_topic(clusters.east, f"{topic_name}-more")
    write(clusters.east, f"{topic_name}-more", numbered(10))
    write_topology(tmp_path, clusters.east, clusters.west, {"topics": [f"{topic_name}.*"]})
    run = replicate_once(spark, topology)
    assert staged_count(run.lake, topic_name) == (200, 200)
    assert len(read_topic(clusters.west, f"east.{topic_name}")[0]) == 200


@pytest.mark.wide(
    "integration/test_laws_on_each_way.py::test_what_the_source_lost_stops_its_partition_and_is_told",
    "simulation/test_simulation.py::test_no_schedule_breaks_a_law",
)
def test_what_appeared_and_was_trimmed_while_nobody_ran_lands_from_its_start(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """And so does a topic whose start moves on between the plan and the first read."""
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [f"{topic_name}.*"]}
    )
    known, late = f"{topic_name}-known", f"{topic_name}-late"
    create_topic(clusters.east, known)
    write(clusters.east, known, numbered(10))
    land_only(spark, topology)
    create_topic(clusters.east, late)
    write(clusters.east, late, numbered(100))
    truncate(clusters.east, late, 60)
    write(clusters.east, known, numbered(10, start=10))
    run = replicate_once(spark, topology)
    assert staged(run.lake, late) == list(range(60, 100))
    assert len(read_topic(clusters.west, f"east.{late}")[0]) == 40
    assert staged_count(run.lake, known) == (20, 20)
    assert not incidents(run.lake)


@pytest.mark.wide(
    "integration/test_laws_on_each_way.py::test_what_the_source_lost_stops_its_partition_and_is_told"
)
def test_a_start_that_moves_on_behind_the_plan_is_planned_again(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new topic is read from where its start went; of one that was landed before, what was lost
    is told."""
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [f"{topic_name}.*"]}
    )
    known, late, beside = f"{topic_name}-known", f"{topic_name}-late", f"{topic_name}-beside"
    for topic in (known, beside):
        create_topic(clusters.east, topic)
        write(clusters.east, topic, numbered(10))
    land_only(spark, topology)
    create_topic(clusters.east, late)
    for topic in (known, late, beside):
        write(clusters.east, topic, numbered(100, start=10))
    before_next_start(
        monkeypatch, lambda: [truncate(clusters.east, topic, 60) for topic in (known, late)]
    )
    with pytest.raises(MirrorlakeError, match="offsets 10 to 59"):
        replicate_once(spark, topology)
    lake = lake_of(spark, topology)
    told = [
        (row["kind"], row["topic"], row["first_offset"], row["last_offset"])
        for row in incidents(lake)
    ]
    assert told == [("source_truncated", known, 10, 59)]
    assert staged(lake, late) == list(range(60, 100))
    assert staged_count(lake, beside) == (110, 110)


def before_next_start(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Do something behind the plan of landing and before its query begins, once."""
    from mirrorlake.landing import worker

    start, left = worker.start_landing, [work]

    def started(*arguments: object, **named: object) -> object:
        if left:
            left.pop()()
        return start(*arguments, **named)

    monkeypatch.setattr(worker, "start_landing", started)


@pytest.mark.wide(
    "integration/test_laws_on_each_way.py::test_what_the_source_lost_stops_its_partition_and_is_told"
)
def test_continue_goes_on_at_what_is_there_now_and_says_what_was_given_up(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Retention goes on trimming: between the incident and the decision, and behind the plan that
    follows it."""
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(50))
    land_only(spark, topology)
    write(clusters.east, topic_name, numbered(100, start=50))
    truncate(clusters.east, topic_name, 80)
    with pytest.raises(MirrorlakeError, match="offsets 50 to 79"):
        land_only(spark, topology)
    truncate(clusters.east, topic_name, 100)
    lake = lake_of(spark, topology)
    resolve(
        Deployment.opened(lake, Connections(load_topology(topology))),
        Wanted(topic=topic_name),
        "continue",
    )
    truncate(clusters.east, topic_name, 110)
    before_next_start(monkeypatch, lambda: truncate(clusters.east, topic_name, 120))
    replicate_once(spark, topology)
    assert staged(lake, topic_name) == [*range(50), *range(120, 150)]
    assert not incidents(lake)
    rows = now_of(lake).rows(
        f"SELECT * FROM incidents WHERE topic = '{topic_name}' AND resolution = 'continue'"
    )
    given_up = sorted((row["first_offset"], row["last_offset"]) for row in rows)
    assert given_up == [(50, 79), (80, 109), (110, 119)]
    truncate(clusters.east, topic_name, 150)
    write(clusters.east, topic_name, numbered(10, start=150))
    truncate(clusters.east, topic_name, 155)
    with pytest.raises(MirrorlakeError, match="offsets 150 to 154"):
        land_only(spark, topology)


@pytest.mark.wide(
    "integration/test_laws_on_each_way.py::test_what_the_source_lost_stops_its_partition_and_is_told"
)
def test_a_partition_that_cannot_be_read_stops_alone(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """A batch of one partition is damaged on the broker's disk: its checksum is wrong for every
    reader."""
    if clusters.embedded is None:
        pytest.skip("the brokers' disks are not ours to damage")
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [f"{topic_name}.*"]}
    )
    damaged, well = f"{topic_name}-damaged", f"{topic_name}-well"
    for topic in (damaged, well):
        create_topic(clusters.east, topic, 2)
        write(clusters.east, topic, numbered(100, 2))
    (segment,) = clusters.embedded["east"].directory.rglob(f"{damaged}-0/*0.log")
    with segment.open("r+b") as file:
        file.seek(200)
        file.write(b"\xff" * 20)
    with pytest.raises(MirrorlakeError, match=f"{damaged}"):
        replicate_once(spark, topology)
    lake = lake_of(spark, topology)
    assert staged_count(lake, well) == (100, 100)
    assert len(read_topic(clusters.west, f"east.{well}")[0]) == 50
    assert staged_count(lake, damaged) == (50, 50), "its other partition"
    assert [(row["kind"], row["topic"], row["partition"]) for row in incidents(lake)] == [
        ("source_refused", damaged, 0)
    ]
