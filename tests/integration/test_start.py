"""A flow that does not begin at the start: in what was there when it ran first, and in nothing that
came later."""

import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest
import yaml

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.kafka.admin import ClusterAdmin
from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake
from tests.support.kafka import NewRecord, create_topic, numbered, read_topic, write
from tests.support.replication import FLOW, write_topology
from tests.support.topologies import write_flows
from tests.support.waiting import until


@pytest.fixture(scope="module")
def north(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a third cluster."""
    with EmbeddedCluster("north", tmp_path_factory.mktemp("north")) as cluster:
        yield cluster.bootstrap_servers


def set_start(topology: Path, start: str) -> None:
    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    document["flows"][FLOW]["start"] = start
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")


def counts(clusters: ClusterPair, topic: str) -> list[int]:
    return [len(part) for part in read_topic(clusters.west, f"east.{topic}")]


def an_hour_ago_and_now() -> tuple[str, list[NewRecord]]:
    """A start, and records of which six are older than it, and four are not."""
    now = int(time.time() * 1000)
    old = [NewRecord(b"old", timestamp=now - 7_200_000 + number) for number in range(6)]
    return datetime.fromtimestamp(now / 1000 - 3600, timezone.utc).isoformat(), [*old, *numbered(4)]


@pytest.mark.wide("test_a_time_begins_at_the_first_record_of_that_time")
def test_latest_holds_for_what_is_there_at_the_first_start_and_for_nothing_later(
    clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(10))
    flow = {"topics": [f"{topic_name}.*"], "start": "latest"}
    topology = write_topology(tmp_path, clusters.east, clusters.west, flow)
    mirrorlake(topology, "run", "--once")
    assert counts(clusters, topic_name) == [0] and mirrorlake(topology, "status")["healthy"]
    later = f"{topic_name}-later"
    create_topic(clusters.east, later)
    ClusterAdmin("east", {"bootstrap.servers": clusters.east}).add_partitions(topic_name, 2)
    write(clusters.east, later, numbered(4))
    write(clusters.east, topic_name, numbered(5, 1, 10))
    until(lambda: len(read_topic(clusters.east, topic_name)) == 2, "the topic has grown")
    write(clusters.east, topic_name, [NewRecord(b"new", partition=1)] * 3)
    mirrorlake(topology, "run", "--once")
    assert counts(clusters, topic_name) == [5, 3] and counts(clusters, later) == [4]
    staged = mirrorlake(
        topology, "sql", "SELECT min(offset) AS first, count(*) AS n FROM records GROUP BY topic"
    )
    assert sorted((row["first"], row["n"]) for row in staged) == [(0, 4), (0, 8)], (
        "none of the first ten"
    )
    answer = mirrorlake(topology, "verify")
    assert (answer["proven"], answer["differences"]) == (12, [])
    assert mirrorlake(topology, "status")["healthy"]
    for start in ("earliest", "latest"):  # it has begun: an edit changes nothing any more
        set_start(topology, start)
        write(clusters.east, later, numbered(1))
        mirrorlake(topology, "run", "--once")
    assert counts(clusters, topic_name) == [5, 3] and counts(clusters, later) == [6]


def test_a_time_begins_at_the_first_record_of_that_time(
    clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    create_topic(clusters.east, topic_name)
    start, records = an_hour_ago_and_now()
    write(clusters.east, topic_name, records)
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [topic_name], "start": start}
    )
    mirrorlake(topology, "run", "--once")
    assert counts(clusters, topic_name) == [4]
    (noted,) = mirrorlake(
        topology, "sql", "SELECT first_offset, asked FROM starts WHERE topic IS NOT NULL"
    )
    assert noted == {"first_offset": 6, "asked": start}


@pytest.mark.wide("test_a_time_begins_at_the_first_record_of_that_time")
def test_flows_with_starts_of_their_own_share_a_landing(
    clusters: ClusterPair, north: str, tmp_path: Path, topic_name: str
) -> None:
    """One begins at the end, one at a time before it: the stage has what the earlier one wants,
    each target its own."""
    create_topic(clusters.east, topic_name)
    start, records = an_hour_ago_and_now()
    write(clusters.east, topic_name, records)
    addresses = {"east": clusters.east, "west": clusters.west, "north": north}
    flows = {"east->west": {"start": "latest"}, "east->north": {"start": start}}
    topology = write_flows(
        tmp_path,
        addresses,
        {name: {"topics": [topic_name], **flow} for name, flow in flows.items()},
    )
    targets = (clusters.west, north)
    for wanted in ((0, 4), (5, 9)):
        mirrorlake(topology, "run", "--once")
        there = [read_topic(address, f"east.{topic_name}")[0] for address in targets]
        assert tuple(map(len, there)) == wanted
        write(clusters.east, topic_name, numbered(5, 1, 10))
    assert [record.value for record in there[0]] == [record.value for record in there[1][4:]], (
        "the same five"
    )
    (staged,) = mirrorlake(
        topology, "sql", "SELECT min(offset) AS first, count(*) AS n FROM records"
    )
    assert staged == {"first": 6, "n": 9}
    mirrorlake(topology, "run", "--once")
    answer = mirrorlake(topology, "verify")
    assert (answer["proven"], answer["differences"], answer["not_compared"]) == (10 + 14, [], [])
    assert mirrorlake(topology, "status")["healthy"]


@pytest.mark.wide("test_a_time_begins_at_the_first_record_of_that_time")
@pytest.mark.parametrize(
    ("choice", "wanted"), [("read-again", 15), pytest.param("continue", 5, marks=pytest.mark.slow)]
)
def test_a_flow_that_comes_later_hears_of_what_landing_passed_over(
    clusters: ClusterPair, north: str, tmp_path: Path, topic_name: str, choice: str, wanted: int
) -> None:
    """It mirrors all that there is, and the stage begins where another flow does: it waits for an
    operator."""
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(10))
    addresses = {"east": clusters.east, "west": clusters.west, "north": north}
    flows: dict[str, dict[str, object]] = {
        "east->west": {"topics": [topic_name], "start": "latest"}
    }
    topology = write_flows(tmp_path, addresses, flows)
    mirrorlake(topology, "run", "--once")
    write(clusters.east, topic_name, numbered(5, 1, 10))
    mirrorlake(topology, "run", "--once")
    topology = write_flows(tmp_path, addresses, {**flows, "east->north": {"topics": [topic_name]}})
    mirrorlake(topology, "run", "--once", code=1)
    (told,) = mirrorlake(topology, "status", code=1)["incidents"]
    place = ("flow", "kind", "topic", "first_offset", "last_offset")
    assert tuple(told[name] for name in place) == ("east->north", "stage_trimmed", topic_name, 0, 9)
    mirrorlake(topology, "resolve", "--choice", choice)
    mirrorlake(topology, "run", "--once")
    there = read_topic(north, f"east.{topic_name}")[0]
    assert [record.value for record in there] == [record.value for record in numbered(15)[-wanted:]]
    assert counts(clusters, topic_name) == [5], "the other flow begins where it began"
    assert mirrorlake(topology, "verify")["differences"] == []
