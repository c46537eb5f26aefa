"""`restore` on real brokers: whole topics from the lake, as they were, on a cluster that has
nothing in them, whenever it is killed (docs/restore.md)."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.errors import InputError
from tests.support.clusters import ClusterPair
from tests.support.control import own_configs
from tests.support.kafka import (
    NewRecord,
    Record,
    create_topic,
    delete_topic,
    numbered,
    partition_count,
    read_topic,
    send,
    transactional_producer,
    write,
)
from tests.support.odd_records import odd_records
from tests.support.replication import expanded, finish, land_only, start_command, write_topology

PARTITIONS = 3
COUNT = 3_000
#: Where the command dies in turn, before it is let come to its end; not slow are the deaths of
#: `replay` (test_replay.py), which sends as this does, and of a restore of groups
#: (test_restore_rehearsal.py).
KILLS = ("resend-begun", "kafka-committed", "resend-sent", "resend-told")


@dataclass(frozen=True)
class Landed:
    """A lake that holds all of a source, of which a topic is gone now."""

    topology: Path
    clusters: ClusterPair
    prefix: str
    source: dict[str, list[list[Record]]]

    def lake(self, spark: SparkSession) -> mirrorlake.OpenLake:
        return mirrorlake.open(self.topology, spark=spark)

    def name(self, topic: str) -> str:
        return f"{self.prefix}-{topic}"


@pytest.fixture(scope="module")
def landed(
    spark: SparkSession, clusters: ClusterPair, tmp_path_factory: pytest.TempPathFactory
) -> Landed:
    prefix = f"restore-{uuid.uuid4().hex[:8]}"
    here = Landed(
        write_topology(
            tmp_path_factory.mktemp("restore"),
            clusters.east,
            clusters.west,
            {"topics": [f"{prefix}-.*"]},
        ),
        clusters,
        prefix,
        {},
    )
    create_topic(clusters.east, here.name("odd"))
    write(clusters.east, here.name("odd"), odd_records())
    create_topic(clusters.east, here.name("many"), PARTITIONS, max_message_bytes="2000000")
    write(clusters.east, here.name("many"), numbered(COUNT, PARTITIONS))
    create_topic(clusters.east, here.name("single"))
    producer = transactional_producer(clusters.east)
    for number in range(20):  # a marker behind each record
        producer.begin_transaction()
        send(producer, here.name("single"), NewRecord(b"%d" % number))
        producer.commit_transaction(30)
    create_topic(clusters.east, here.name("empty"), 2)
    create_topic(clusters.east, here.name("keyed"), 2)
    write(clusters.east, here.name("keyed"), keyed_records())
    for topic in ("odd", "many", "single", "empty", "keyed"):
        here.source[topic] = read_topic(clusters.east, here.name(topic))
    land_only(spark, here.topology)
    for topic in ("odd", "keyed"):
        delete_topic(clusters.east, here.name(topic))
    return here


def assert_restored(here: Landed, flow: str, names: dict[str, str]) -> None:
    """Each record of each topic is there once, in order, in its partition, and mapped exactly."""
    for topic, target in names.items():
        arrived = read_topic(here.clusters.west, target)
        assert len(arrived) == len(here.source[topic])
        for partition, (wanted, got) in enumerate(zip(here.source[topic], arrived, strict=True)):
            assert [one[1:] for one in got] == [one[1:] for one in wanted], f"{topic}-{partition}"
            rows = mirrorlake.open(here.topology).rows(
                "SELECT segments FROM offset_map WHERE flow = :flow AND topic = :topic AND "
                "partition = :partition",
                flow=flow,
                topic=here.name(topic),
                partition=partition,
            )
            pairs = sorted(pair for row in rows for pair in expanded(row["segments"]))
            assert pairs == [(a.offset, b.offset) for a, b in zip(wanted, got, strict=True)]


@pytest.mark.parametrize("kills", [(), pytest.param(KILLS, marks=pytest.mark.slow)])
def test_killed_again_and_again(
    landed: Landed, spark: SparkSession, tmp_path: Path, kills: Sequence[str]
) -> None:
    """Whatever was landed meanwhile is not restored: what is, was decided at the beginning."""
    here = landed
    arguments = ("restore", "--from", "east", "--to", "west", "--topic", f"{here.prefix}-.*")
    for point in kills:
        once = tmp_path / point
        environment = {"MIRRORLAKE_CRASH": f"{point}:driver", "MIRRORLAKE_CRASH_ONCE": str(once)}
        code = finish(start_command(here.topology, *arguments, **environment))
        log = (here.topology.parent / "run.log").read_text(encoding="utf-8")
        assert once.exists() and code == -9, f"{point}: {code}\n{log}"
        if point == "resend-begun":
            write(here.clusters.east, here.name("many"), [NewRecord(b"late")])
            land_only(spark, here.topology)
    sent = here.lake(spark).restore("east", "west", [f"{here.prefix}-.*"])
    assert sent.complete and sent.continued == bool(kills) and sent.flow is not None
    counts = {topic: sum(map(len, records)) for topic, records in here.source.items()}
    assert {row["topic"]: row["records"] for row in sent.topics} == {
        here.name(at): n for at, n in counts.items()
    }
    assert all(row["topic"] == row["target_topic"] for row in sent.topics) and not sent.warnings
    assert_restored(here, sent.flow, {topic: here.name(topic) for topic in here.source})
    assert partition_count(here.clusters.west, here.name("empty")) == 2
    kept = {"retention.ms": "-1", "cleanup.policy": "delete", "max.message.bytes": "2000000"}
    assert own_configs(here.clusters.west, here.name("many")).items() >= kept.items()
    with pytest.raises(InputError, match="holds records; delete it"):
        here.lake(spark).restore("east", "west", [f"{here.prefix}-.*"])


@pytest.mark.wide("test_killed_again_and_again")
def test_compacted(landed: Landed, spark: SparkSession, tmp_path: Path) -> None:
    """The last value of each key, none of a key that ends with a tombstone, and all that have no
    key."""
    here, keyed = landed, landed.name("keyed")
    arguments = ("restore", "--from", "east", "--to", "east", "--topic", keyed, "--compacted")
    once = tmp_path / "killed"
    environment = {"MIRRORLAKE_CRASH": "kafka-committed:driver", "MIRRORLAKE_CRASH_ONCE": str(once)}
    assert finish(start_command(here.topology, *arguments, **environment)) == -9 and once.exists()
    sent = here.lake(spark).restore("east", "east", [keyed], compacted=True)
    assert sent.complete and sent.continued and not sent.warnings
    arrived = read_topic(here.clusters.east, keyed)
    for wanted, got in zip(map(left_of, here.source["keyed"]), arrived, strict=True):
        assert [one[1:] for one in got] == [one[1:] for one in wanted] and 0 < len(wanted) < 300
    assert sent.records == sum(map(len, arrived))


def left_of(records: list[Record]) -> list[Record]:
    last = {one.key: one.offset for one in records}
    return [
        one
        for one in records
        if one.key is None or (last[one.key] == one.offset and one.value is not None)
    ]


def keyed_records() -> list[NewRecord]:
    """Keys with many values, some that end with a tombstone or come back after one, and records
    without a key."""
    records = [
        NewRecord(
            None if number % 7 == 0 else b"%d" % number,
            None if number % 11 == 0 else b"k%d" % (number % 53),
            number % 2,
        )
        for number in range(600)
    ]
    return [
        *records,
        NewRecord(None, b"k1", 0),
        NewRecord(None, b"k2", 1),
        NewRecord(b"back", b"k2", 1),
    ]


def test_below_an_offset_on_the_cluster_that_lost_it(landed: Landed, spark: SparkSession) -> None:
    here, odd = landed, landed.name("odd")
    lake, below = here.lake(spark), {(odd, 0): 100}
    planned = lake.restore("east", "east", [odd], below=below, dry_run=True)
    assert (
        planned.topics == [{"topic": odd, "target_topic": odd, "records": 100}] and planned.dry_run
    )
    sent = lake.restore("east", "east", [odd], below=below)
    assert sent.complete and sent.records == 100 and not sent.continued
    (arrived,), (wanted,) = read_topic(here.clusters.east, odd), here.source["odd"]
    assert [one[1:] for one in arrived] == [one[1:] for one in wanted[:100]]


def test_what_is_refused(landed: Landed, spark: SparkSession) -> None:
    here, lake = landed, landed.lake(spark)
    many = here.name("many")
    with pytest.raises(InputError, match="flow east->west writes to topic east"):
        lake.restore("east", "west", [many], rename="default")
    with pytest.raises(InputError, match="nothing is not restored, so no offset"):
        lake.restore("east", "east", [many], below={("nothing", 0): 1})
    with pytest.raises(InputError, match="no topic of cluster east that nothing matches"):
        lake.restore("east", "east", ["nothing"])
    with pytest.raises(InputError, match="no cluster wets; did you mean west"):
        lake.restore("east", "wets")
