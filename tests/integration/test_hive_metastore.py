"""A lake in a catalog that outlives sessions, a Hive metastore: what one command makes there others
find, each a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mirrorlake.lake.definitions import TABLES, VIEWS
from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake as without_spark
from tests.support.kafka import create_topic, numbered, read_topic, write
from tests.support.metastore import CATALOG, Metastore
from tests.support.replication import write_topology

PARTITIONS = 2
#: Reads a lake by its names, in a session of its own.
READER = """
import sys, mirrorlake
lake = mirrorlake.open(catalog=sys.argv[1], schema=sys.argv[2])
print(lake.table("records").count(), lake.table("flow_status").count())
"""


def fill(clusters: ClusterPair, topic: str, first: int) -> None:
    """20 more records, in equal parts, from a number on."""
    write(clusters.east, topic, numbered(20, PARTITIONS, first))


def mirrored(clusters: ClusterPair, topic: str) -> list[int]:
    """How many records of each partition are at the target, which are the source's first ones in
    their order."""
    source, target = read_topic(clusters.east, topic), read_topic(clusters.west, f"east.{topic}")
    for here, there in zip(source, target, strict=bool(target)):  # none while there is no mirror
        arrived = [(one.key, one.value) for one in there]
        assert arrived == [(one.key, one.value) for one in here[: len(there)]]
    return [len(records) for records in target]


@pytest.mark.slow
@pytest.mark.law("exactly once", "exact map", session="without")
def test_names_of_tables_at_a_path(
    clusters: ClusterPair, metastore: Metastore, topic_name: str, tmp_path: Path
) -> None:
    """Registered by one session, seen by another, and written by processes that have none."""
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    schema = metastore.hold(topology, at_a_path=True)
    create_topic(clusters.east, topic_name, PARTITIONS)
    fill(clusters, topic_name, 0)
    metastore.answer(topology, "run", "--once", "--register")
    again = metastore.answer(topology, "register")
    assert again["tables"] == [{"table": table, "action": "kept"} for table in TABLES]
    assert again["views"] == [{"view": view, "action": "kept"} for view in VIEWS]
    fill(clusters, topic_name, 20)
    without_spark(topology, "run", "--once")
    assert mirrored(clusters, topic_name) == [20] * PARTITIONS
    assert without_spark(topology, "status")["warnings"] == []
    seen = subprocess.run(
        [sys.executable, "-c", READER, CATALOG, schema],
        env={**os.environ, **metastore.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert seen.stdout.split() == ["40", "1"], seen.stderr[-2000:]
