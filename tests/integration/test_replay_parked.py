"""`replay --parked` on real brokers: what a target refused arrives once its limit was raised, each
once, also when the command is killed."""

import os
import uuid
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.naming.at_target import name_at_target
from tests.support.clusters import ClusterPair
from tests.support.groups import delete_groups
from tests.support.kafka import NewRecord, create_topic, read_topic, write
from tests.support.replication import finish, replicate_once, start_command, write_topology

PARTITIONS = 2
#: Sizes of the records of each partition, bytes, that cannot be compressed.
SIZES = [40 if at % 5 else 9_000 if at % 2 else 6_000 for at in range(60)]


def limit(bootstrap: str, topic: str, size: int) -> None:
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(20)


@pytest.mark.wide(
    "integration/test_refused.py::test_refused_records_are_parked_and_the_rest_goes_on",
    "integration/test_replay.py::test_the_first_ones_at_a_rate",
)
@pytest.mark.parametrize(
    "point, starts_over, forgets",
    [
        (None, False, False),
        pytest.param("resend-sent", False, False, marks=pytest.mark.slow),
        pytest.param("kafka-committed", False, False, marks=pytest.mark.slow),
        pytest.param("kafka-committed", True, False, marks=pytest.mark.slow),
        pytest.param("kafka-committed", False, True, marks=pytest.mark.slow),
        pytest.param("kafka-committed", True, True, marks=pytest.mark.slow),
    ],
)
def test_sent_when_the_limit_was_raised(
    spark: SparkSession,
    clusters: ClusterPair,
    tmp_path: Path,
    point: str | None,
    starts_over: bool,
    forgets: bool,
) -> None:
    """First a limit that some fit in, then one for all; killed at a point while they are sent, or
    before that is noted, and then gone on with, or begun anew, also once the target has forgotten
    the position."""
    topic = f"parked-{uuid.uuid4().hex[:8]}"
    target = f"east.{topic}"
    create_topic(clusters.east, topic, PARTITIONS)
    create_topic(clusters.west, target, PARTITIONS, max_message_bytes="5000")
    settings = {"topics": [topic], "sync_topic_configs_enabled": False, "on_refused": "park"}
    topology = write_topology(tmp_path, clusters.east, clusters.west, settings)
    for partition in range(PARTITIONS):
        write(
            clusters.east,
            topic,
            [NewRecord(os.urandom(size), b"%d" % size, partition) for size in SIZES],
        )
    replicate_once(spark, topology)
    lake = mirrorlake.open(topology, spark=spark)
    parked = PARTITIONS * sum(size > 40 for size in SIZES)
    assert lake.replay_parked(dry_run=True).records == parked
    limit(clusters.west, target, 7_000)
    if point is not None:
        dies_at(point, topology)
    if forgets:
        (row,) = lake.rows("SELECT DISTINCT flow FROM changes WHERE kind = 'replay'")
        group = name_at_target(str(lake.internals.stored_id), row["flow"])
        delete_groups(clusters.west, [group])
    sent = lake.replay_parked(start_over=starts_over)
    small = PARTITIONS * SIZES.count(6_000)
    assert not sent.complete and sent.continued is (point is not None and not starts_over)
    # One that starts over sends what was not committed.
    assert (0 < sent.records < small) if starts_over else sent.records == small
    assert any("stay parked" in line for line in sent.warnings) and any(
        "out of order" in line for line in sent.warnings
    )
    assert waiting(lake) == parked - small
    limit(clusters.west, target, 20_000)
    sent = lake.replay_parked("east->west", topic)
    assert (
        sent.complete
        and not sent.continued
        and sent.records == parked - small
        and waiting(lake) == 0
    )
    for there, here in zip(
        read_topic(clusters.east, topic), read_topic(clusters.west, target), strict=True
    ):
        wanted = [
            one for size in (40, 6_000, 9_000) for one in there if len(one.value or b"") == size
        ]
        assert [one[1:3] for one in here] == [one[1:3] for one in wanted]
        late = [one for one in here if one.headers]
        assert [len(one.value or b"") for one in late] == [6_000] * SIZES.count(6_000) + [
            9_000
        ] * SIZES.count(9_000)
    assert lake.replay_parked().warnings == ["nothing is parked"]
    assert lake.verify(again=True).differences == []
    assert [row["parked"] for row in lake.status().flows] == [0]


def dies_at(point: str, topology: Path) -> None:
    """The command, killed at a point."""
    once = topology.parent / "once"
    environment = {"MIRRORLAKE_CRASH": f"{point}:driver", "MIRRORLAKE_CRASH_ONCE": str(once)}
    code = finish(
        start_command(topology, "replay", "--parked", "--flow", "east->west", **environment)
    )
    log = (topology.parent / "run.log").read_text(encoding="utf-8")
    assert once.exists() and code == -9, log


def waiting(lake: mirrorlake.OpenLake) -> int:
    (row,) = lake.rows(
        "SELECT count(*) AS n FROM parked WHERE flow = 'east->west' AND replayed_at IS NULL"
    )
    return int(row["n"])
