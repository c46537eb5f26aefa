"""Topics that are called heartbeats and hold people's own records are people's: they count, are
restored, and get no heartbeat."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.mm2.heartbeat_topics import is_heartbeat
from tests.support.clusters import ClusterPair, own_topics
from tests.support.commands import mirrorlake as command
from tests.support.kafka import NewRecord, create_topic, read_topic, write
from tests.support.replication import write_topology

OWN = [NewRecord(b'{"alive": true}', b"device-7")] * 5


@pytest.fixture
def own(clusters: ClusterPair) -> Iterator[ClusterPair]:
    """The clusters; heartbeats topics are gone behind the test, since flows of other tests would
    mirror them."""
    with own_topics(clusters):
        yield clusters


def noted(topology: Path) -> str:
    """Which topics the lake knows to hold heartbeats."""
    (row,) = mirrorlake.open(topology).rows("SELECT heartbeat_topics FROM objectives")
    return str(row["heartbeat_topics"])


@pytest.mark.wide("test_an_applications_topic_gets_no_heartbeat")
def test_a_topic_of_such_a_name_counts_and_is_restored(
    spark: SparkSession, own: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """`device.heartbeats` beside heartbeats of ours: lag and latency are about it, and a restore
    brings it back."""
    topic = f"{topic_name}.heartbeats"
    create_topic(own.east, topic)
    write(own.east, topic, OWN)
    settings = {"topics": [topic], "emit_heartbeats_enabled": True}
    topology = write_topology(tmp_path, own.east, own.west, settings)
    command(topology, "run", "--once")
    pattern = noted(topology)
    assert re.search(pattern, "heartbeats") and not re.search(pattern, topic)
    restored = mirrorlake.open(topology, spark=spark).restore("east", "west", dry_run=True).topics
    assert [row["topic"] for row in restored] == [topic], "heartbeats of ours are not restored"
    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    document["flows"]["east->west"]["paused"] = [re.escape(topic)]
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    write(own.east, topic, OWN)
    command(topology, "run", "--once")
    (flow,) = mirrorlake.open(topology).status().flows
    assert flow["lag_records"] == 5, "what waits of it is lag"


def test_an_applications_topic_gets_no_heartbeat(own: ClusterPair, tmp_path: Path) -> None:
    """`heartbeats` with other records at the source and at the target: nothing is written there,
    and it is said."""
    for address in (own.east, own.west):
        create_topic(address, "heartbeats")
        write(address, "heartbeats", OWN)
    topology = write_topology(
        tmp_path, own.east, own.west, {"topics": ["nothing"], "emit_heartbeats_enabled": True}
    )
    command(topology, "run", "--once", code=1)
    (incident,) = mirrorlake.open(topology).incidents()
    assert (
        incident["kind"] == "control_heartbeats"
        and "emit_heartbeats_enabled: false" in incident["detail"]
    )
    assert not re.search(noted(topology), "heartbeats")
    for address in (own.east, own.west):
        (records,) = read_topic(address, "heartbeats")
        assert len(records) == 5 and not any(
            is_heartbeat(record.key, record.value) for record in records
        )
    assert len(read_topic(own.west, "east.heartbeats")[0]) == 5, "it is mirrored like any other"
    write_topology(
        tmp_path, own.east, own.west, {"topics": ["nothing"], "emit_heartbeats_enabled": False}
    )
    command(topology, "run", "--once")
    assert command(topology, "status")["healthy"]
