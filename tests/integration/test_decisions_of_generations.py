"""Decisions are of a generation: what was decided about offsets of a topic says nothing about the
topic that took its name, nor about another target topic."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import ReplicationError, TargetLost
from mirrorlake.lake.incidents import Incident, Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.path_tables import PathTables
from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake, open_incidents
from tests.support.kafka import NewRecord, create_topic, delete_topic, read_topic, topics_of, write
from tests.support.lake_rows import now_of
from tests.support.replication import FLOW, write_topology
from tests.support.topologies import fill, texts, values
from tests.support.waiting import until

#: What a target takes, bytes of a batch, and a record that is larger however it is compressed.
LIMIT, TOO_LARGE = 5_000, 6_000
#: What can be decided about offsets of a partition, by kind.
DECISIONS = [
    *(("target_refused", choice) for choice in ("skip", "stop", "park")),
    *(("target_lost", choice) for choice in ("accept", "stop", "produce-again")),
    *(("position_lost", choice) for choice in ("continue", "stop")),
    *(("stage_trimmed", choice) for choice in ("continue", "stop", "read-again")),
    *(("source_truncated", choice) for choice in ("continue", "stop")),
    ("source_rewound", "stop"),
]


def no_session() -> Any:
    raise AssertionError("a session was asked for")


@dataclass
class Scene:
    """Topics of one partition, mirrored by runs that open no session."""

    clusters: ClusterPair
    prefix: str
    topology: Path

    @property
    def lake(self) -> Lake:
        return open_lake(no_session, load_topology(self.topology).lake, self.topology.parent)

    def names(self) -> list[str]:
        return [f"{self.prefix}-{kind}-{choice}" for kind, choice in DECISIONS]

    def create(self, *topics: str, tag: str, count: int) -> None:
        for topic in topics:
            create_topic(self.clusters.east, topic)
            fill(self.clusters.east, topic, tag, count, 1)

    def make_again(self, *topics: str, tag: str, count: int) -> None:
        """The topics are deleted and made again at the source, and go on as an operator says."""
        for topic in topics:
            delete_topic(self.clusters.east, topic)
        until(lambda: not set(topics) & topics_of(self.clusters.east), "the topics are gone")
        self.create(*topics, tag=tag, count=count)
        mirrorlake(self.topology, "run", "--once", code=1)
        self.decide("new-generation")
        mirrorlake(self.topology, "run", "--once")

    def decide(self, choice: str, code: int = 0) -> None:
        mirrorlake(self.topology, "resolve", "--choice", choice, code=code)

    def seen(self, topic: str) -> list[str]:
        return values(read_topic(self.clusters.west, f"east.{topic}")[0])

    def proven(self, records: int, code: int = 0) -> dict[str, Any]:
        """What `verify` says; it proves so many records, what is excused among them."""
        said: dict[str, Any] = mirrorlake(self.topology, "verify", code=code)
        assert (said["proven"], said["differences"]) == (records, []), said
        return said


@pytest.fixture
def scene(clusters: ClusterPair, topic_name: str, tmp_path: Path) -> Scene:
    settings = {"topics": [f"{topic_name}.*"], "sync_topic_configs_enabled": False}
    return Scene(
        clusters, topic_name, write_topology(tmp_path, clusters.east, clusters.west, settings)
    )


@pytest.mark.wide("test_what_was_given_up_of_one_generation_excuses_no_hole_in_the_next_one")
@pytest.mark.law("kept by generation", "nothing silently", session="without")
def test_a_record_that_was_given_up_says_nothing_of_the_new_topic(scene: Scene) -> None:
    """One of the old topic is refused and given up; the new one has all of its own."""
    topic = scene.prefix
    create_topic(scene.clusters.west, f"east.{topic}", max_message_bytes=str(LIMIT))
    scene.create(topic, tag="a", count=7)
    write(scene.clusters.east, topic, [NewRecord(os.urandom(TOO_LARGE))])
    fill(scene.clusters.east, topic, "a", 3, 1, start=8)
    mirrorlake(scene.topology, "run", "--once", code=1)
    scene.decide("skip")
    mirrorlake(scene.topology, "run", "--once")
    assert scene.proven(11)["excused"] == {"given_up": 1}
    scene.make_again(topic, tag="b", count=20)
    assert scene.seen(topic) == texts("a", 7, 1) + texts("a", 3, 1, start=8) + texts("b", 20, 1)
    assert open_incidents(scene.topology, code=0) == []
    assert scene.proven(20)["excused"] == {}


@pytest.mark.law("kept by generation", "nothing silently", session="without")
def test_what_was_given_up_of_one_generation_excuses_no_hole_in_the_next_one(scene: Scene) -> None:
    """A record of the new topic is missing, at an offset at which one of the old topic was given
    up."""
    topic, place = (
        scene.prefix,
        {"partition": 0, "first_offset": 7, "last_offset": 7, "target_generation": 0},
    )
    scene.create(topic, tag="a", count=20)
    mirrorlake(scene.topology, "run", "--once")
    error = ReplicationError("planted", topic=topic, generation=1, **place)  # type: ignore[arg-type]
    Incidents(scene.lake).note([Incident(FLOW, "target_refused", error)], "skip")
    scene.make_again(topic, tag="b", count=20)
    assert scene.seen(topic) == [
        text for text in texts("a", 20, 1) + texts("b", 20, 1) if text != "b:7"
    ]
    PathTables(scene.topology.parent / "lake").rewrite("incidents", of_the_first_generation)
    answer = mirrorlake(scene.topology, "verify", code=1)
    told = [(row["first_offset"], row["last_offset"], row["kind"]) for row in answer["differences"]]
    assert (told, answer["excused"]) == ([(7, 7, "not_mapped")], {})
    alerts = mirrorlake(scene.topology, "status", code=1)["alerts"]
    assert [(row["topic"], row["value"]) for row in alerts if row["alert"] == "map_gap"] == [
        (topic, 1)
    ]


def of_the_first_generation(rows: pa.Table) -> pa.Table:
    """What the table `incidents` holds, as if all of it had been about the first generation of its
    topic."""
    return pa.Table.from_pylist([{**row, "generation": 0} for row in rows.to_pylist()], rows.schema)


@pytest.mark.wide("test_what_was_given_up_of_one_generation_excuses_no_hole_in_the_next_one")
@pytest.mark.law("kept by generation", session="without")
def test_each_decision_about_one_generation_leaves_the_next_one_whole(scene: Scene) -> None:
    """What the tables hold as decided about offsets 5 to 9 of each topic, and which generation that
    was of."""
    topics = scene.names()
    scene.create(*topics, tag="a", count=20)
    mirrorlake(scene.topology, "run", "--once")
    lake = scene.lake
    for topic, (kind, choice) in zip(topics, DECISIONS, strict=True):
        place = {
            "topic": topic,
            "partition": 0,
            "first_offset": 5,
            "last_offset": 9,
            "generation": 0,
        }
        at_target = {} if kind.startswith("s") else {"target_generation": 0}
        lost = TargetLost("planted", target_offset=5, **place, **at_target)  # type: ignore[arg-type]
        error = lost if kind == "target_lost" else ReplicationError("planted", **place, **at_target)  # type: ignore[arg-type]
        Incidents(lake).note([Incident(FLOW, kind, error)], choice)
    scene.make_again(*topics, tag="b", count=20)
    there = {topic: scene.seen(topic)[20:] for topic in topics}
    assert there == dict.fromkeys(topics, texts("b", 20, 1))
    assert open_incidents(scene.topology, code=0) == []
    assert scene.proven(20 * len(topics))["excused"] == {}


@pytest.mark.wide("test_what_was_given_up_of_one_generation_excuses_no_hole_in_the_next_one")
@pytest.mark.law("kept by generation", session="without")
def test_what_is_parked_of_one_generation_stops_the_next_one(scene: Scene) -> None:
    """An operator lets one record be parked. One that the target refuses of the new topic is for an
    operator again."""
    topic = scene.prefix
    create_topic(scene.clusters.west, f"east.{topic}", max_message_bytes=str(LIMIT))
    scene.create(topic, tag="a", count=3)
    write(scene.clusters.east, topic, [NewRecord(os.urandom(TOO_LARGE))])
    mirrorlake(scene.topology, "run", "--once", code=1)
    scene.decide("park")
    mirrorlake(scene.topology, "run", "--once")
    scene.make_again(topic, tag="b", count=3)
    write(scene.clusters.east, topic, [NewRecord(os.urandom(TOO_LARGE))])
    mirrorlake(scene.topology, "run", "--once", code=1)
    assert open_incidents(scene.topology, code=1) == [("target_refused", topic, 0, 3, 3)]
    rows = now_of(scene.lake).rows(
        "SELECT kind, generation, resolution FROM incidents WHERE kind = 'target_refused'"
    )
    assert sorted(tuple(row.values()) for row in rows) == [
        ("target_refused", 0, "park"),
        ("target_refused", 1, None),
    ]


@pytest.mark.wide(
    "simulation/test_found.py::test_what_was_given_up_of_a_topic_is_not_given_up_of_the_one_that_took_its_name"
)
@pytest.mark.law("kept by generation", session="without")
def test_a_partition_that_is_stopped_goes_on_with_a_new_topic(scene: Scene) -> None:
    """The rest of the old topic, which an operator stopped, stays in the stage."""
    topic = scene.prefix
    create_topic(scene.clusters.west, f"east.{topic}", max_message_bytes=str(LIMIT))
    scene.create(topic, tag="a", count=3)
    write(scene.clusters.east, topic, [NewRecord(os.urandom(TOO_LARGE))])
    fill(scene.clusters.east, topic, "a", 3, 1, start=4)
    mirrorlake(scene.topology, "run", "--once", code=1)
    scene.decide("stop")
    mirrorlake(scene.topology, "run", "--once")
    scene.make_again(topic, tag="b", count=20)
    assert scene.seen(topic) == texts("a", 3, 1) + texts("b", 20, 1)
    (row,) = now_of(scene.lake).rows(
        f"SELECT state, topic FROM partition_status WHERE topic = '{topic}'"
    )
    assert row["state"] != "stopped"
