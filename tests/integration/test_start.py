"""A flow that does not begin at the start: in what was there when it ran first, and in nothing that came later."""

import time
from datetime import datetime, timezone
from pathlib import Path

import yaml

from mirrorlake.kafka.admin import ClusterAdmin
from tests.integration.test_without_a_session import mirrorlake
from tests.support.clusters import ClusterPair
from tests.support.kafka import NewRecord, create_topic, numbered, read_topic, write
from tests.support.replication import FLOW, write_topology
from tests.support.topologies import until


def set_start(topology: Path, start: str) -> None:
    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    document["flows"][FLOW]["start"] = start
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")


def counts(clusters: ClusterPair, topic: str) -> list[int]:
    return [len(part) for part in read_topic(clusters.west, f"east.{topic}")]


def test_latest_holds_for_what_is_there_at_the_first_start_and_for_nothing_later(
    clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(10))
    flow = {"topics": [f"{topic_name}.*"], "start": "latest"}
    topology = write_topology(tmp_path, clusters.east, clusters.west, flow)
    mirrorlake(topology, "run", "--once")
    assert counts(clusters, topic_name) == [0] and mirrorlake(topology, "status")["healthy"]
    set_start(topology, "earliest")  # it has begun: the edit changes nothing any more
    later = f"{topic_name}-later"
    create_topic(clusters.east, later)
    ClusterAdmin("east", {"bootstrap.servers": clusters.east}).add_partitions(topic_name, 2)
    write(clusters.east, later, numbered(4))
    write(clusters.east, topic_name, numbered(5, 1, 10))
    until(lambda: len(read_topic(clusters.east, topic_name)) == 2, "the topic has grown")
    write(clusters.east, topic_name, [NewRecord(b"new", partition=1)] * 3)
    mirrorlake(topology, "run", "--once")
    assert counts(clusters, topic_name) == [5, 3] and counts(clusters, later) == [4]
    staged = mirrorlake(topology, "sql", "SELECT min(offset) AS first, count(*) AS n FROM records GROUP BY topic")
    assert sorted((row["first"], row["n"]) for row in staged) == [(0, 4), (0, 8)], "none of the first ten"
    found = mirrorlake(topology, "verify")
    assert (found["proven"], found["differences"]) == (12, [])
    assert mirrorlake(topology, "status")["healthy"]


def test_a_time_begins_at_the_first_record_of_that_time(clusters: ClusterPair, tmp_path: Path, topic_name: str) -> None:
    create_topic(clusters.east, topic_name)
    now = int(time.time() * 1000)
    old = [NewRecord(b"old", timestamp=now - 7_200_000 + number) for number in range(6)]
    write(clusters.east, topic_name, [*old, *numbered(4)])
    start = datetime.fromtimestamp(now / 1000 - 3600, timezone.utc).isoformat()
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name], "start": start})
    mirrorlake(topology, "run", "--once")
    assert counts(clusters, topic_name) == [4]
    (noted,) = mirrorlake(topology, "sql", "SELECT first_offset, asked FROM starts WHERE topic IS NOT NULL")
    assert noted == {"first_offset": 6, "asked": start}
