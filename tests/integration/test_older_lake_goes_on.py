"""A lake that is older than the target, as a backup is: what it lacks is landed again, where the
target has it is found by its content, and nothing is written twice."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake, open_incidents
from tests.support.kafka import NewRecord, create_topic, read_topic, truncate, write
from tests.support.lake_rows import FLOW
from tests.support.lanes import BOTH_LANES
from tests.support.replication import assert_same, lake_of, write_topology
from tests.support.topologies import fill

pytestmark = BOTH_LANES


class Backup:
    """A flow of one topic, and a copy of its lake."""

    def __init__(self, folder: Path, clusters: ClusterPair, topic: str) -> None:
        self.topic, self.clusters, self.folder = topic, clusters, folder
        self.mirror = f"east.{topic}"
        self.topology = write_topology(folder, clusters.east, clusters.west, {"topics": [topic]})
        create_topic(clusters.east, topic)
        self.run_after("a")
        shutil.copytree(folder / "lake", folder / "copy")

    def run_after(self, name: str) -> None:
        """200 more records, mirrored by a process of their own."""
        fill(self.clusters.east, self.topic, name, 200, 1)
        self.run()

    def run(self, code: int = 0) -> None:
        mirrorlake(self.topology, "run", "--once", code=code)

    def put_back(self) -> None:
        """The lake is what it was at first."""
        shutil.rmtree(self.folder / "lake")
        shutil.move(self.folder / "copy", self.folder / "lake")

    def decide(self, kind: str, choice: str) -> None:
        mirrorlake(self.topology, *f"resolve --kind {kind} --choice {choice}".split())

    def translated(self, offset: int) -> tuple[int, bool]:
        """Where a source offset is at the target, and whether that is exact."""
        asked = f"--flow {FLOW} --topic {self.topic} --partition 0 --offset {offset}"
        answer = mirrorlake(self.topology, "translate", *asked.split())
        return answer["offset"], answer["exact"]

    def values(self) -> list[bytes | None]:
        """What the target holds."""
        return [record.value for record in read_topic(self.clusters.west, self.mirror)[0]]


@pytest.fixture
def backup(clusters: ClusterPair, topic_name: str, tmp_path: Path) -> Backup:
    return Backup(tmp_path, clusters, topic_name)


@pytest.mark.wide(
    "simulation/test_older_lake.py::test_a_lake_that_is_older_than_the_target_maps_nothing_wrong_and_sends_nothing_twice"
)
@pytest.mark.law("exactly once")
def test_a_backup_goes_on_and_its_map_has_all_that_the_target_took(
    spark: SparkSession, backup: Backup
) -> None:
    for name in "bcd":  # the metadata of the position names the last of them only
        backup.run_after(name)
    backup.put_back()
    backup.run_after("e")
    assert open_incidents(backup.topology, code=0) == []
    lake, clusters = lake_of(spark, backup.topology), backup.clusters
    assert_same(lake, clusters.east, clusters.west, {backup.topic: backup.mirror}, 1_000)


@pytest.mark.wide(
    "simulation/test_older_lake.py::test_a_lake_that_is_older_than_the_target_maps_nothing_wrong_and_sends_nothing_twice"
)
def test_what_the_source_lost_meanwhile_is_missing_from_the_map_alone(backup: Backup) -> None:
    for name in "bcd":
        backup.run_after(name)
    backup.put_back()
    truncate(backup.clusters.east, backup.topic, 300)
    backup.run(code=1)
    backup.decide("source_truncated", "continue")
    backup.run()
    assert open_incidents(backup.topology, code=0) == []
    records = read_topic(backup.clusters.west, backup.mirror)[0]
    assert len(records) == 800
    for number in (100, 350, 799):
        assert backup.translated(number) == (records[number].offset, True)
    assert backup.translated(250) == (records[300].offset, True)  # as the source itself has it


@pytest.mark.wide(
    "simulation/test_older_lake.py::test_a_lake_that_is_older_than_the_target_maps_nothing_wrong_and_sends_nothing_twice"
)
def test_records_that_are_all_the_same_wait_for_an_operator(backup: Backup) -> None:
    """One of them is gone at the source: where those behind it are cannot be known."""
    same = [NewRecord(b"tick", timestamp=1_700_000_000_000)] * 50
    write(backup.clusters.east, backup.topic, same)
    backup.run()
    backup.run_after("b")
    backup.put_back()
    truncate(backup.clusters.east, backup.topic, 210)
    backup.run(code=1)
    backup.decide("source_truncated", "continue")
    backup.run(code=1)
    assert open_incidents(backup.topology, code=1) == [("map_unknown", backup.topic, 0, 200, 449)]
    backup.decide("map_unknown", "produce-again")
    backup.run_after("c")
    assert open_incidents(backup.topology, code=0) == []
    there = backup.values()
    assert there[450:690] == there[210:450], "once more, behind what is there"
    assert there[690:] == [b"c:%d" % number for number in range(200)]
    assert backup.translated(250)[0] >= 450
