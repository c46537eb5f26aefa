"""Groups moved from copies as MirrorMaker 2 leaves them, made here record by record, so that each
case is there."""

import json
import subprocess
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_STORED, Consumer, TopicPartition
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.errors import InputError
from mirrorlake.mm2.formats import OffsetSync, encode_offset_sync
from tests.support.clusters import ClusterPair, own_topics
from tests.support.commands import forked
from tests.support.groups import commit_all
from tests.support.kafka import NewRecord, assign, create_topic, read_topic, taken, write
from tests.support.replication import FLOW, replicate_once, write_topology

COUNT = 3_000
#: The copy as runs of source offsets: MirrorMaker 2 died behind 1,999, and had noted 1,199 last;
#: then behind 2,499.
RUNS = (range(0, 2_000), range(1_200, 2_500), range(2_450, COUNT))
SYNCS = "mm2-offset-syncs.west.internal"
BESIDE = {"replication_policy_separator": ".mirrorlake.", "sync_group_offsets_enabled": False}


@dataclass(frozen=True)
class Beside:
    """A topic, MirrorMaker 2's copy of it, and ours, which has a transaction marker now and
    then."""

    topology: Path
    clusters: ClusterPair
    topic: str

    @property
    def theirs(self) -> str:
        return f"east.{self.topic}"

    @property
    def ours(self) -> str:
        return f"east.mirrorlake.{self.topic}"

    @property
    def copied(self) -> list[int]:
        """The number of each record of the copy."""
        return [number for run in RUNS for number in run]

    def read(self, topic: str, group: str) -> list[int]:
        """The numbers that a group reads from where it stands to the end."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.clusters.west,
                "group.id": group,
                "enable.auto.commit": False,
            }
            | {
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
            }
            | {"fetch.wait.max.ms": 10}
        )
        # where the group stands, without joining it
        assign(consumer, [TopicPartition(topic, 0, OFFSET_STORED)])
        found: list[int] = []
        try:
            while True:
                for message in taken(consumer, 1.0):
                    if message.error() is not None:
                        return found
                    found.append(int((message.value() or b"").split()[0]))
        finally:
            consumer.close()


def numbered(numbers: Iterable[int], start: int) -> list[NewRecord]:
    return [
        NewRecord(b"%d of many" % number, b"k%d" % (number % 7), 0, None, start + number)
        for number in numbers
    ]


@pytest.fixture(scope="module")
def beside(
    clusters: ClusterPair, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterable[Beside]:
    # young enough to be kept
    topic, start = (f"moved-{uuid.uuid4().hex[:6]}", int(time.time() * 1000) - 600_000)
    with own_topics(clusters):
        topology = write_topology(
            tmp_path_factory.mktemp("migrate"),
            clusters.east,
            clusters.west,
            {"topics": [topic], **BESIDE},
        )
        here = Beside(topology, clusters, topic)
        for address, name in (
            (clusters.east, topic),
            (clusters.east, SYNCS),
            (clusters.west, here.theirs),
        ):
            create_topic(address, name)
        write(clusters.east, topic, numbered(range(COUNT), start))
        write(clusters.west, here.theirs, numbered(here.copied, start))
        at, syncs = 0, []
        for run in RUNS:
            syncs += [
                OffsetSync(topic, 0, run[step], at + step) for step in range(0, len(run), 101)
            ]
            at += len(run)
        pairs = [encode_offset_sync(sync) for sync in syncs]
        write(clusters.east, SYNCS, [NewRecord(value, key) for key, value in pairs])
        replicate_once(spark, topology)
        yield here


def command(here: Beside, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    line = ["-c", str(here.topology), "migrate", "--flow", FLOW, "--topics", here.topic, *words]
    return forked(line, here.topology.parent, **environment)


@pytest.mark.parametrize(
    "by",
    [
        "sync",
        pytest.param("content", marks=pytest.mark.wide("test_wherever_a_group_stands_it_reads_on")),
    ],
)
def test_wherever_a_group_stands_it_reads_on(
    beside: Beside, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "content":
        monkeypatch.setattr("mirrorlake.migrate.migration.read_syncs", lambda *_: {})
    lake = mirrorlake.open(beside.topology)
    places = [
        0,
        1,
        1_500,
        1_999,
        2_000,
        2_001,
        2_700,
        2_800,
        2_801,
        3_300,
        3_301,
        len(beside.copied),
    ]
    groups = {f"at-{by}-{place}": place for place in places}
    for group, place in groups.items():
        commit_all(beside.clusters.west, beside.theirs, [group], place, 1)
    dry = lake.migrate(FLOW, beside.topic, f"at-{by}-.*", dry_run=True)
    assert {row["done"] for row in dry.groups} == {"would move"}
    done = lake.migrate(FLOW, beside.topic, f"at-{by}-.*")
    assert done.complete and all(row["exact"] and row["done"] == "moved" for row in done.groups), (
        done.left
    )
    assert by in {row["method"] for row in done.groups} <= {by, "content"}
    for group, place in groups.items():
        read, then = beside.copied[:place], beside.read(beside.ours, group)
        assert then == sorted(set(range(COUNT)) - set(read)), f"from {place} on: {then[:2]}"


def test_back_to_their_copy(beside: Beside) -> None:
    lake = mirrorlake.open(beside.topology)
    (partition,) = read_topic(beside.clusters.west, beside.ours)
    places = [0, 700, 1_199, 1_200, 1_999, 2_000, 2_450, 2_460, 2_999, COUNT]
    for place in places:
        position = partition[place].offset if place < COUNT else partition[-1].offset + 1
        commit_all(beside.clusters.west, beside.ours, [f"back-{place}"], position, 1)
    done = lake.migrate(FLOW, beside.topic, "back-.*", rollback=True)
    assert done.complete and all(row["exact"] for row in done.groups), done.left
    for place in places:
        then = beside.read(beside.theirs, f"back-{place}")
        assert then[:1] == [place][: COUNT - place] and set(then) >= set(range(place, COUNT))
        if place >= 2_450:
            assert then == list(range(place, COUNT)), "the last copy of all that is repeated"


@pytest.mark.wide(
    "test_wherever_a_group_stands_it_reads_on",
    "integration/test_groups.py::test_a_failover_that_was_killed_half_way_ends_in_the_same_state",
)
def test_killed_between_two_groups_it_goes_on(beside: Beside, tmp_path: Path) -> None:
    for number in range(3):
        commit_all(beside.clusters.west, beside.theirs, [f"killed-{number}"], 100 + number, 1)
    crash = {"MIRRORLAKE_CRASH": "group-moved", "MIRRORLAKE_CRASH_ONCE": str(tmp_path / "once")}
    died = command(beside, "--groups", "killed-.*", **crash)
    assert died.returncode == -9, died.stderr
    again = command(beside, "--groups", "killed-.*", "--json", **crash)
    assert again.returncode == 0, again.stderr
    rows = json.loads(again.stdout)["groups"]
    assert sorted(row["done"] for row in rows) == ["moved", "moved", "there"]
    lake = mirrorlake.open(beside.topology)
    noted = lake.rows(
        "SELECT resource, outcome FROM changes WHERE kind = 'group' AND resource LIKE 'killed-%'"
    )
    assert sorted((row["resource"].split()[0], row["outcome"]) for row in noted) == [
        (f"killed-{number}", "done") for number in range(3)
    ]
    assert beside.read(beside.ours, "killed-1") == list(range(101, COUNT))


def test_what_is_read_on_is_left_alone(beside: Beside) -> None:
    lake = mirrorlake.open(beside.topology)
    commit_all(beside.clusters.west, beside.theirs, ["onward"], 50, 1)
    assert lake.migrate(FLOW, beside.topic, "onward").complete
    commit_all(beside.clusters.west, beside.ours, ["onward"], 900, 1)
    (row,) = lake.migrate(FLOW, beside.topic, "onward").groups
    assert (row["done"], row["before"]) == ("there", 900)
    commit_all(beside.clusters.west, beside.theirs, ["elsewhere"], 50, 1)
    commit_all(beside.clusters.west, beside.ours, ["elsewhere"], 900, 1)
    document = lake.migrate(FLOW, beside.topic, "elsewhere")
    assert not document.complete and "further ahead" in document.left[0]


def test_a_group_with_members_is_not_touched(beside: Beside) -> None:
    commit_all(beside.clusters.west, beside.theirs, ["busy"], 50, 1)
    consumer = Consumer({"bootstrap.servers": beside.clusters.west, "group.id": "busy"})
    consumer.subscribe([beside.theirs])
    try:
        while not consumer.assignment():
            consumer.poll(0.2)
        found = command(beside, "--groups", "busy")
        assert found.returncode == 1 and "members" in found.stderr, (found.stdout, found.stderr)
    finally:
        consumer.close()


def test_what_cannot_be(beside: Beside) -> None:
    lake = mirrorlake.open(beside.topology)
    with pytest.raises(InputError, match="mirrors no topic"):
        lake.migrate(FLOW, "nothing")
    with pytest.raises(InputError, match=r"no east_moved.*say by --copies"):
        lake.migrate(FLOW, beside.topic, copies="{source}_{topic}")
    with pytest.raises(InputError, match="both called"):
        lake.migrate(FLOW, beside.topic, copies="{source}.mirrorlake.{topic}")
    with pytest.raises(InputError, match="no regular expression"):
        lake.migrate(FLOW, "(")


def test_plan_says_whose_it_is(beside: Beside, tmp_path: Path) -> None:
    (flow,) = mirrorlake.open(beside.topology).plan().flows
    assert [(topic["holder"], topic["held_records"] >= COUNT) for topic in flow["topics"]] == [
        ("ours", True)
    ]
    same = write_topology(
        tmp_path, beside.clusters.east, beside.clusters.west, {"topics": [beside.topic]}
    )
    plan = mirrorlake.open(same).plan()
    assert plan.flows[0]["topics"][0]["holder"] == "MirrorMaker 2"
    (problem,) = [problem for problem in plan.problems if problem["rule"] == "second-writer"]
    assert problem["severity"] == "refuse" and beside.theirs in problem["sentence"]
    with pytest.raises(mirrorlake.errors.TopologyError, match="MirrorMaker 2 writes"):
        mirrorlake.open(same).run(once=True)
