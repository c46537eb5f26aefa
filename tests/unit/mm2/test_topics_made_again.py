"""MirrorMaker 2's own topics that are deleted, and made again, while a process runs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaException

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import TargetRefused
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.changes import MemoryLog
from mirrorlake.mm2 import heartbeat_topics
from mirrorlake.mm2.formats import (
    Heartbeat,
    MirrorCheckpoint,
    OffsetSync,
    encode_checkpoint,
    encode_heartbeat,
)
from mirrorlake.mm2.heartbeat_topics import HeartbeatTopics, KeyAndValue
from mirrorlake.mm2.mirror_topics import CheckpointTopic, Heartbeats, OffsetSyncTopic
from mirrorlake.run.offset_syncs import OffsetSyncs
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.lake_rows import FLOW, write_file

ONE, OTHER = (MirrorCheckpoint(group, "east.t", 0, 5, 5) for group in ("a", "b"))
BOTH = [encode_checkpoint(checkpoint) for checkpoint in (ONE, OTHER)]


class Topic:
    """An internal topic that says that it was made when `gone`."""

    gone, fails, alias, name = True, False, "west", "t"

    def __init__(self) -> None:
        self.written: list[Any] = []

    def ensure(self) -> bool:
        made, self.gone = self.gone, False
        if made:
            self.written = []
        return made

    def replaced(self) -> bool:
        return False

    def write(self, records: list[tuple[bytes, bytes]]) -> None:
        if self.fails:
            self.fails = False
            raise TargetRefused("not now", topic=self.name)
        self.written += records

    def compact(self) -> None:
        """Nothing is to be done."""

    def publish(self, syncs: list[OffsetSync]) -> None:
        self.written += syncs


def connections_of(tmp_path: Path) -> Connections:
    topology = load_topology(write_file(tmp_path))
    clusters: Any = {alias: MemoryCluster(alias) for alias in ("east", "west")}
    return Connections(topology, clusters)


def test_checkpoints_are_there_again(tmp_path: Path) -> None:
    """A client of MirrorMaker 2 finds a group by them alone."""
    connections = connections_of(tmp_path)
    checkpoints = CheckpointTopic(connections.topology.flow(FLOW), connections, MemoryLog())
    topic: Any = Topic()
    checkpoints._topic = topic
    assert checkpoints.publish([ONE]) == 1 and checkpoints.publish([ONE]) == 0
    topic.gone = True
    assert checkpoints.publish([OTHER]) == 2
    assert topic.written == BOTH
    topic.gone = topic.fails = True
    with pytest.raises(TargetRefused):
        checkpoints.publish([])
    assert checkpoints.publish([]) == 2 and topic.written == BOTH


def test_offset_syncs_are_there_again() -> None:
    """Also where it was not known then which topic the target has, as while it was away."""
    row = {"topic": "t", "partition": 0, "generation": 0, "target_topic": "east.t"}
    row |= {"target_generation": 0, "source_first": 0, "target_first": 0, "source_last": 9}
    row |= {"target_last": 9, "batch_id": 7}

    class Mapped(MemoryLake):
        def ask(self, query: str, frames: Any = None, **args: Any) -> Any:
            return [row] if args["batch_id"] < 7 else []

    topic: Any = Topic()
    generations: list[int | None] = [0]
    syncs = OffsetSyncs(FLOW, Mapped(), topic, lambda _: "east.t", lambda _: generations[-1])
    assert (syncs.emit(), syncs.emit()) == (2, 0)
    topic.gone = True
    assert syncs.emit() == 2 == len(topic.written)
    generations.append(None)
    topic.gone = True
    assert syncs.emit() == 0
    generations.append(0)
    assert (syncs.emit(), syncs.emit()) == (2, 0)


def test_offset_syncs_of_a_topic_that_a_broker_made_again(tmp_path: Path) -> None:
    """It is there, and has none of those that were written to the one before."""
    connections = connections_of(tmp_path)
    topic = OffsetSyncTopic(connections.topology.flow(FLOW), connections, MemoryLog())
    assert [topic.ensure(), topic.ensure()] == [True, False]
    east: Any = connections.admin("east")
    east.make(topic.name, 0)
    assert [topic.ensure(), topic.ensure()] == [True, False]


def test_a_topic_of_that_name_is_looked_at_again_when_it_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who took an application's records for heartbeats would leave them out of lag and proofs."""
    held: dict[str, list[KeyAndValue]] = {
        "heartbeats": [encode_heartbeat(Heartbeat("east", "west", 1))]
    }
    monkeypatch.setattr(
        heartbeat_topics,
        "first_records_of",
        lambda _admin, _settings, topics: {name: held[name] for name in topics},
    )
    noted: list[frozenset[str]] = []
    monkeypatch.setattr(
        heartbeat_topics, "note_heartbeat_topics", lambda _lake, _flow, topics: noted.append(topics)
    )
    east: Any = MemoryCluster("east", {"heartbeats": [1]})
    lake: Any = MemoryLake()
    topics = HeartbeatTopics(FLOW, lake, east, dict, lambda _: True)
    topics.look()
    topics.look()
    assert noted == [{"heartbeats"}] and "heartbeats" in topics
    east.make("heartbeats", 1)
    held["heartbeats"] = [(b"device 7", b"71 bpm")]
    topics.look()
    assert noted[1:] == [frozenset()] and "heartbeats" not in topics


def test_an_end_that_takes_no_heartbeat_does_not_hinder_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = connections_of(tmp_path)
    beats = Heartbeats(connections.topology.flow(FLOW), connections, MemoryLog())
    written: list[str] = []

    def look_at(topic: Any) -> None:
        if topic.alias == "east":
            raise KafkaException("the records of its topic cannot be read")

    monkeypatch.setattr(beats, "_look_at", look_at)
    topics: Any = [
        SimpleNamespace(alias=alias, write=lambda _, alias=alias: written.append(alias))
        for alias in ("east", "west")
    ]
    beats._topics = topics
    with pytest.raises(KafkaException):
        beats.beat()
    assert written == ["west"]


def test_a_topic_that_was_made_while_the_lake_took_no_news_is_the_flows(tmp_path: Path) -> None:
    """It counted as one that another program had made, and got nothing any more."""

    class Away(MemoryLog):
        is_away = True

        def record(self, flow: str, changes: Any) -> None:
            if self.is_away and changes[0].outcome == "done":
                raise OSError("the store is away")
            super().record(flow, changes)

    connections, log = connections_of(tmp_path), Away()
    syncs = OffsetSyncTopic(connections.topology.flow(FLOW), connections, log)
    with pytest.raises(OSError, match="away"):
        syncs.ensure()
    log.is_away = False
    assert [syncs.ensure() for _ in range(2)] == [True, False]
    assert [change.outcome for _, change in log.rows] == ["begun", "done"]


@pytest.mark.parametrize("written", [0, 1], ids=["empty", "written to"])
def test_a_topic_of_a_process_that_died_before_it_noted_that_it_had_made_it(
    tmp_path: Path, written: int
) -> None:
    """It was taken for another program's. One that holds records by now is."""
    connections, log = connections_of(tmp_path), MemoryLog()
    flow = connections.topology.flow(FLOW)
    east: Any = connections.admin("east")
    made = east.make

    def made_last(topic: str, *ends: int) -> str:
        made(topic, *ends)
        raise KeyboardInterrupt

    east.make = made_last
    with pytest.raises(KeyboardInterrupt):
        OffsetSyncTopic(flow, connections, log).ensure()
    east.make = made
    syncs = OffsetSyncTopic(flow, connections, log)
    east.ends[syncs.name][0] = written
    if written:
        with pytest.raises(TargetRefused, match="was not made by flow"):
            syncs.ensure()
    else:
        assert [syncs.ensure() for _ in range(2)] == [True, False]
        assert [change.outcome for _, change in log.rows] == ["begun", "done"]
