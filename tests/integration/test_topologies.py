"""Every shape of mirroring, under default and identity names, all in one continuous run: each
record once, for good."""

import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.produce.provenance import HEADER
from tests.support.clusters import ClusterPair
from tests.support.kafka import Record, create_topic, read_topics, topics_of
from tests.support.lake_rows import now_of
from tests.support.topologies import (
    Live,
    assert_mapped,
    ends,
    fill,
    live,
    texts,
    values,
    write_flows,
)
from tests.support.waiting import until

pytestmark = pytest.mark.slow

COUNT, PARTITIONS, IDLE_SECONDS = 200, 2, 30

#: Where records are written: shape -> clusters.
WRITTEN = {
    "one": ["east"],
    "reverse": ["west"],
    "in": ["east", "west"],
    "out": ["east"],
    "pipe": ["east"],
    "two": ["east", "west"],
    "hub": ["east", "north"],
}
#: Under default names: what must be where, and whose records are in it. Nothing else may be there.
DEFAULT = {
    "west": {
        "east.one": "east",
        "east.out": "east",
        "east.pipe": "east",
        "east.two": "east",
        "east.hub": "east",
    }
    | {"north.hub": "north"},
    "east": {"west.reverse": "west", "west.two": "west", "west.north.hub": "north"},
    "north": {"east.in": "east", "west.in": "west", "east.out": "east", "west.east.pipe": "east"}
    | {"west.east.hub": "east"},
}
#: Under identity names: the clusters whose records a topic has.
IDENTITY = {
    "one": {"east": "east", "west": "east"},
    "reverse": {"west": "west", "east": "west"},
    "in": {"east": "east", "west": "west", "north": "east west"},
    "out": {"east": "east", "west": "east", "north": "east"},
    "pipe": {"east": "east", "west": "east", "north": "east"},
    "two": {"east": "east west", "west": "east west"},
    "hub": dict.fromkeys(("east", "west", "north"), "east north"),
    "strip": {"west": "west", "north": "west", "east": "west"},
}


@dataclass(frozen=True)
class World:
    """What is there after the idling, of one naming policy."""

    run: Live
    prefix: str
    topics: Mapping[str, Mapping[str, list[list[Record]]]]
    ids: Mapping[str, str]

    def of(self, cluster: str, name: str) -> list[list[Record]]:
        """Records per partition; the shape in the name stands for this run's own topic."""
        head, _, shape = name.rpartition(".")
        return self.topics[cluster][f"{head}.{self.prefix}{shape}" if head else self.prefix + shape]


@pytest.fixture(scope="module")
def worlds(
    spark: SparkSession, clusters: ClusterPair, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, World]]:
    """Two replicators, one a naming policy, over three clusters, after everything was quiet for 30
    s."""
    directory = tmp_path_factory.mktemp("topologies")
    with EmbeddedCluster("north", directory / "north") as north:
        addresses = {"east": clusters.east, "west": clusters.west, "north": north.bootstrap_servers}
        marks = {"default": f"d{uuid.uuid4().hex[:6]}-", "identity": f"i{uuid.uuid4().hex[:6]}-"}
        for mark in marks.values():
            for shape, aliases in {
                **WRITTEN,
                **({"strip": ["west"]} if mark[0] == "i" else {}),
            }.items():
                for alias in aliases:
                    create_topic(addresses[alias], mark + shape, PARTITIONS)
                    fill(addresses[alias], mark + shape, alias, COUNT)
        default = write_flows(directory / "default", addresses, default_flows(marks["default"]))
        identity = write_flows(directory / "identity", addresses, identity_flows(marks["identity"]))
        with live(spark, default) as first, live(spark, identity) as second:
            runs = {"default": first, "identity": second}
            until(
                lambda: arrived(addresses, marks) or any(run.raised for run in runs.values()),
                "all arrived",
                240,
            )
            for run in runs.values():
                for error in run.raised:
                    raise error
            before = {alias: sizes(address, marks) for alias, address in addresses.items()}
            time.sleep(IDLE_SECONDS)
            after = {alias: sizes(address, marks) for alias, address in addresses.items()}
            assert after == before, "something goes on being written"
        yield {
            policy: World(
                runs[policy],
                mark,
                {
                    alias: read_topics(address, own(address, mark))
                    for alias, address in addresses.items()
                },
                {alias: cluster_id(address) for alias, address in addresses.items()},
            )
            for policy, mark in marks.items()
        }


def default_flows(mark: str) -> dict[str, dict[str, object]]:
    """Flows that would take records round, and names twice, if anything let them."""

    def of(*shapes: str) -> dict[str, object]:
        return {"topics": [f"(.*[.])?{mark}({'|'.join(shapes)})"]}

    return {
        "east->west": of("one", "out", "pipe", "two", "hub"),
        "west->east": of("reverse", "two", "hub"),
        "east->north": {"topics": [mark + "in", mark + "out"]},
        "west->north": {"topics": [mark + "in", f"east.{mark}pipe", f"(.*[.])?{mark}hub"]},
        "north->west": of("hub"),
    }


def identity_flows(mark: str) -> dict[str, dict[str, object]]:
    """The same shapes under identity names; two-way and hub are safe by provenance."""

    def of(*shapes: str, provenance: str = "headers") -> dict[str, object]:
        return {
            "topics": [mark + shape for shape in shapes],
            "policy": "identity",
            "provenance": provenance,
        }

    return {
        "east->west": of("one", "out", "pipe", "two", "hub"),
        "west->east": of("reverse", "two", "hub"),
        "east->north": of("in", "out"),
        "west->north": of("in", "pipe", "hub", "strip"),
        "north->west": of("hub"),
        "north->east": of("strip", provenance="strip"),
    }


def expected(policy: str, mark: str) -> dict[str, dict[str, str]]:
    """Cluster -> topic -> whose records, written ones included."""
    found: dict[str, dict[str, str]] = {"east": {}, "west": {}, "north": {}}
    if policy == "default":
        for shape, aliases in WRITTEN.items():
            for alias in aliases:
                found[alias][mark + shape] = alias
        for alias, topics in DEFAULT.items():
            for name, whose in topics.items():
                head, _, shape = name.rpartition(".")
                found[alias][f"{head}.{mark}{shape}"] = whose
    else:
        for shape, places in IDENTITY.items():
            for alias, whose in places.items():
                found[alias][mark + shape] = whose
    return found


def cluster_id(address: str) -> str:
    return str(AdminClient({"bootstrap.servers": address}).list_topics(timeout=20).cluster_id)


def read_by(mark: str) -> list[tuple[str, str]]:
    """Source clusters and topics that some flow mirrors."""
    if mark[0] == "i":
        read = {
            "one": "east",
            "reverse": "west",
            "in": "east west",
            "out": "east",
            "pipe": "east west",
        }
        read |= {"two": "east west", "hub": "east west north", "strip": "west north"}
        return [
            (alias, mark + shape) for shape, aliases in read.items() for alias in aliases.split()
        ]
    own_ones = [(alias, mark + shape) for shape, aliases in WRITTEN.items() for alias in aliases]
    return [
        *own_ones,
        ("west", f"east.{mark}pipe"),
        ("west", f"east.{mark}hub"),
        ("west", f"north.{mark}hub"),
    ]


def own(address: str, mark: str) -> list[str]:
    return sorted(topic for topic in topics_of(address) if mark in topic)


def sizes(address: str, marks: Mapping[str, str]) -> dict[str, int]:
    return {
        topic: ends(address, [topic]) for mark in marks.values() for topic in own(address, mark)
    }


def arrived(addresses: Mapping[str, str], marks: Mapping[str, str]) -> bool:
    for policy, mark in marks.items():
        for alias, topics in expected(policy, mark).items():
            found = {topic: ends(addresses[alias], [topic]) for topic in topics}
            if any(found[topic] < COUNT * len(whose.split()) for topic, whose in topics.items()):
                return False
    return True


@pytest.mark.parametrize("policy", ["default", "identity"])
def test_every_record_is_everywhere_once(worlds: Mapping[str, World], policy: str) -> None:
    world = worlds[policy]
    wanted = expected(policy, world.prefix)
    assert {alias: set(topics) for alias, topics in world.topics.items()} == {
        alias: set(topics) for alias, topics in wanted.items()
    }
    for alias, topics in wanted.items():
        for topic, whose in topics.items():
            for partition, records in enumerate(world.topics[alias][topic]):
                found = values(records)
                for source in whose.split():
                    mine = [value for value in found if value.startswith(f"{source}:")]
                    assert mine == texts(source, COUNT, PARTITIONS, partition), (
                        alias,
                        topic,
                        partition,
                        source,
                    )
                assert len(found) == len(whose.split()) * COUNT // PARTITIONS, (
                    alias,
                    topic,
                    Counter(found),
                )
    assert not world.run.incidents()


@pytest.mark.parametrize("policy", ["default", "identity"])
def test_every_map_is_exact(worlds: Mapping[str, World], policy: str) -> None:
    world = worlds[policy]
    if policy == "default":
        hops = [("east->west", "one", "east.one"), ("west->east", "reverse", "west.reverse")]
        hops += [
            ("east->north", "in", "east.in"),
            ("west->north", "in", "west.in"),
            ("west->east", "two", "west.two"),
        ]
        hops += [
            ("west->north", "east.pipe", "west.east.pipe"),
            ("west->east", "north.hub", "west.north.hub"),
        ]
        counts = dict.fromkeys(hops, COUNT)
    else:
        counts = {("east->north", "in", "in"): COUNT, ("west->north", "in", "in"): COUNT}
        counts |= {("east->west", "two", "two"): COUNT, ("west->east", "two", "two"): COUNT}
        # The hub hands on what it has from the other spoke, and nothing back.
        counts |= {("west->north", "hub", "hub"): COUNT, ("west->east", "hub", "hub"): COUNT}
        counts |= {("west->north", "pipe", "pipe"): COUNT, ("north->east", "strip", "strip"): COUNT}
    for (flow, topic, remote), count in counts.items():
        source, _, target = flow.partition("->")
        name = (
            topic
            if not world.prefix
            else ".".join([*topic.split(".")[:-1], world.prefix + topic.split(".")[-1]])
        )
        mapped = assert_mapped(
            world.run.lake, flow, world.of(source, topic), name, world.of(target, remote)
        )
        assert mapped == count, (flow, topic)


def test_provenance_names_every_cluster_that_a_record_passed(worlds: Mapping[str, World]) -> None:
    world = worlds["identity"]

    def passed(cluster: str, topic: str) -> dict[str, set[tuple[str, ...]]]:
        names = {identity.encode(): alias for alias, identity in world.ids.items()}
        found: dict[str, set[tuple[str, ...]]] = {}
        for record in (record for records in world.of(cluster, topic) for record in records):
            way = tuple(names[value or b""] for key, value in record.headers or [] if key == HEADER)
            found.setdefault((record.value or b"").decode().partition(":")[0], set()).add(way)
        return found

    assert passed("west", "one") == {"east": {("east",)}}
    assert passed("north", "pipe") == {"east": {("east", "west")}}
    assert passed("east", "two") == {"east": {()}, "west": {("west",)}}
    assert passed("north", "in") == {"east": {("east",)}, "west": {("west",)}}
    assert passed("east", "hub") == {"east": {()}, "north": {("north", "west")}}
    assert passed("north", "strip") == {"west": {("west",)}}
    assert passed("east", "strip") == {"west": {()}}


def test_one_landing_serves_all_flows_of_a_source(
    worlds: Mapping[str, World], tmp_path: Path
) -> None:
    for world in worlds.values():
        reader = now_of(world.run.lake)
        (rows,) = reader.rows(
            "SELECT count(*) AS rows, count(DISTINCT source_cluster, topic, partition, offset) AS "
            "records FROM records"
        )
        assert rows["rows"] == rows["records"] > 0
        staged = reader.rows("SELECT DISTINCT source_cluster, topic FROM records")
        # Spark finds a pattern anywhere in a name; what no flow of the source selects must not be
        # landed.
        topics = {(row["source_cluster"], row["topic"]) for row in staged}
        assert topics == set(read_by(world.prefix))
        # Each source had one landing; no query goes on from the checkpoint of another, so none is
        # left.
        left = sorted((world.run.lake.leases / "landing-epochs").names())
        assert left == ["east.json", "north.json", "west.json"]
        folders = [
            path for path in (world.run.lake.checkpoints / "land").iterdir() if path.is_dir()
        ]
        assert {folder.name for folder in folders} == {"east", "north", "west"}
        assert not [path for folder in folders for path in folder.iterdir()]
