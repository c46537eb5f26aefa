"""The disk of the lake is full for a while: nothing is lost, nothing ends, and an operator can see
it."""

import signal
from pathlib import Path

import pytest
import yaml

from tests.support.clusters import ClusterPair
from tests.support.commands import Answer
from tests.support.disks import small_disk
from tests.support.kafka import create_topic, numbered, read_topic, record_count, write
from tests.support.replication import finish, start_run, write_topology
from tests.support.waiting import until

pytestmark = pytest.mark.slow

RECORDS = 3_000


def test_a_disk_that_is_full_for_a_while_stops_nothing_for_good(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(clusters.east, topic_name, 2)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    with small_disk(tmp_path / "disk", 200) as disk:
        document = yaml.safe_load(topology.read_text(encoding="utf-8"))
        document["lake"] = {"path": str(disk.folder / "lake")}
        topology.write_text(yaml.safe_dump(document), encoding="utf-8")
        write(clusters.east, topic_name, numbered(RECORDS, 2))
        run = start_run(topology)
        try:
            until(lambda: arrived(clusters, topic_name) == RECORDS, "it runs")
            with disk.full():
                write(clusters.east, topic_name, numbered(RECORDS, 2, start=RECORDS))
                log = tmp_path / "run.log"
                until(
                    lambda: log.read_text(encoding="utf-8").count("No space left on device") >= 5,
                    "it meets the end",
                )
                assert run.poll() is None, "it goes on"
                answer = Answer(topology.parent, "status")
                assert answer.code == 1 and "is full: nothing is landed or noted" in answer.out
            until(
                lambda: arrived(clusters, topic_name) == 2 * RECORDS,
                "what was written meanwhile arrives",
            )
            write(clusters.east, topic_name, numbered(10, 2, start=2 * RECORDS))
            until(lambda: arrived(clusters, topic_name) == 2 * RECORDS + 10, "it goes on as before")
            run.send_signal(signal.SIGTERM)
            assert finish(run, 60) == 0
        finally:
            run.kill()
            run.wait()
        for partition in (0, 1):
            there = read_topic(clusters.east, topic_name)[partition]
            here = read_topic(clusters.west, f"east.{topic_name}")[partition]
            assert [record.value for record in here] == [record.value for record in there]


def arrived(clusters: ClusterPair, topic: str) -> int:
    """How many records the target has."""
    return record_count(clusters.west, f"east.{topic}")
