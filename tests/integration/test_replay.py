"""`replay` on real brokers: what a predicate picks arrives once, in order, whenever it is killed
(docs/replay.md)."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake import failpoints
from mirrorlake.errors import InputError
from mirrorlake.lake.table_upkeep import remove_history
from tests.support.clusters import ClusterPair
from tests.support.control import own_configs
from tests.support.kafka import (
    NewRecord,
    Record,
    create_topic,
    partition_count,
    read_topic,
    record_count,
    write,
)
from tests.support.replication import (
    expanded,
    finish,
    replicate_once,
    start_command,
    write_topology,
)

PARTITIONS = 3
COUNT = 3_000
FAILED = "get_json_object(CAST(value AS STRING), '$.status') = 'FAILED' AND offset >= 10"
#: Where the command dies in turn, before it is let come to its end.
KILLS = ("resend-begun", "kafka-committed", "resend-sent", "resend-told")


@dataclass(frozen=True)
class Replicated:
    """A flow that has come to its end, and its topic as the source has it."""

    topology: Path
    clusters: ClusterPair
    topic: str
    source: list[list[Record]]

    def lake(self, spark: SparkSession) -> mirrorlake.OpenLake:
        return mirrorlake.open(self.topology, spark=spark)

    def picked(self, source: list[list[Record]] | None = None) -> list[list[Record]]:
        """What FAILED picks of each partition, of what was written first, or of what is read at the
        source since."""
        return [
            [
                record
                for record in records
                if record.offset >= 10 and json.loads(record.value)["status"] == "FAILED"
            ]
            for records in source or self.source
        ]


@pytest.fixture(scope="module")
def replicated(
    spark: SparkSession, clusters: ClusterPair, tmp_path_factory: pytest.TempPathFactory
) -> Replicated:
    topic = f"replay-{uuid.uuid4().hex[:8]}"
    create_topic(clusters.east, topic, PARTITIONS)
    headers = (None, [("a", b"1"), ("b", None)])
    write(clusters.east, topic, [record(number, headers[number % 2]) for number in range(COUNT)])
    topology = write_topology(
        tmp_path_factory.mktemp("replay"), clusters.east, clusters.west, {"topics": [topic]}
    )
    replicate_once(spark, topology)
    return Replicated(topology, clusters, topic, read_topic(clusters.east, topic))


def record(number: int, headers: list[tuple[str, bytes | None]] | None) -> NewRecord:
    status = "FAILED" if number % 7 in (0, 3) else "DONE"
    value = json.dumps({"number": number, "status": status}).encode()
    return NewRecord(
        value, None if number % 5 == 0 else b"k%d" % (number % 11), number % PARTITIONS, headers
    )


def with_position(
    topic: str, partition: int, one: Record, replay: str
) -> list[tuple[str, bytes | None]]:
    """The headers that a replayed record has."""
    place = {"cluster": "east", "topic": topic, "partition": partition, "offset": one.offset}
    mine = [
        ("mirrorlake-replay", replay.encode()),
        ("mirrorlake-source", json.dumps(place, separators=(",", ":")).encode()),
    ]
    return [*(one.headers or []), *mine]


def assert_arrived(here: Replicated, flow: str, target: str, picked: list[list[Record]]) -> None:
    """Each picked record is at the target once, in order, with its headers, and mapped exactly."""
    replay = flow.split(":")[1]
    arrived = read_topic(here.clusters.west, target)
    for partition, (wanted, got) in enumerate(zip(picked, arrived, strict=True)):
        assert len(got) == len(wanted) > 0
        for one, other in zip(wanted, got, strict=True):
            assert (other.key, other.value, other.timestamp) == (one.key, one.value, one.timestamp)
            assert other.headers == with_position(here.topic, partition, one, replay)
        assert mapped(here, flow, partition) == [
            (a.offset, b.offset) for a, b in zip(wanted, got, strict=True)
        ]


def mapped(here: Replicated, flow: str, partition: int) -> list[tuple[int, int]]:
    rows = mirrorlake.open(here.topology).rows(
        "SELECT segments FROM offset_map WHERE flow = :flow AND partition = :partition",
        flow=flow,
        partition=partition,
    )
    return sorted(pair for row in rows for pair in expanded(row["segments"]))


@pytest.mark.wide("simulation/test_resend.py::test_at_each_step")
@pytest.mark.parametrize("kills", [KILLS[1:2], pytest.param(KILLS, marks=pytest.mark.slow)])
def test_killed_again_and_again_and_once_more(
    replicated: Replicated, spark: SparkSession, tmp_path: Path, kills: Sequence[str]
) -> None:
    """Each call goes on where the one before was killed, by what was noted: what is landed
    meanwhile is not picked."""
    here, target = replicated, f"{replicated.topic}.killed-{len(kills)}"
    picked = here.picked(read_topic(here.clusters.east, here.topic))  # other tests write there too
    arguments = (
        "replay",
        "--topic",
        here.topic,
        "--where",
        FAILED,
        "--to",
        target,
        "--cluster",
        "west",
    )
    assert set(failpoints.RESEND_POINTS) < set(KILLS)
    for point in kills:
        once = tmp_path / point
        environment = {"MIRRORLAKE_CRASH": f"{point}:driver", "MIRRORLAKE_CRASH_ONCE": str(once)}
        code = finish(start_command(here.topology, *arguments, **environment))
        log = (here.topology.parent / "run.log").read_text(encoding="utf-8")
        assert once.exists() and code == -9, f"{point}: {code}\n{log}"
        if point == kills[0]:
            late = NewRecord(b'{"status": "FAILED"}', b"late")
            write(here.clusters.east, here.topic, [late])
            replicate_once(spark, here.topology)
    sent = here.lake(spark).replay(here.topic, FAILED, target, cluster="west")
    count = sum(map(len, picked))
    assert sent.complete and sent.continued and sent.flow is not None
    assert sent.topics == [{"topic": here.topic, "target_topic": target, "records": count}]
    assert_arrived(here, sent.flow, target, picked)
    assert partition_count(here.clusters.west, target) == PARTITIONS
    kept = {"retention.ms": "-1", "message.timestamp.type": "CreateTime"}
    assert own_configs(here.clusters.west, target).items() >= kept.items()
    again = here.lake(spark).replay(here.topic, FAILED, target, cluster="west")
    assert not again.continued and again.flow != sent.flow and again.records == count + 1
    assert record_count(here.clusters.west, target) == 2 * count + 1


def test_the_first_ones_at_a_rate(replicated: Replicated, spark: SparkSession) -> None:
    here, target = replicated, f"{replicated.topic}.first"
    lake = here.lake(spark)
    # other tests write there too
    first, second, _ = here.picked(read_topic(here.clusters.east, here.topic))
    count = len(first) + 20
    planned = lake.replay(here.topic, FAILED, target, max_records=count, dry_run=True)
    assert planned.dry_run and planned.records == count and not planned.flow
    assert [row["offset"] for row in planned.examples] == [one.offset for one in first[:5]]
    assert json.loads(planned.examples[0]["value"])["status"] == "FAILED"
    steps: list[int] = []
    sent = lake.replay(here.topic, FAILED, target, max_records=count, rate=200, report=steps.append)
    assert sent.records == count and len(steps) > 1
    arrived = read_topic(here.clusters.west, target)
    assert [one.value for one in arrived[0]] == [one.value for one in first]
    assert [one.value for one in arrived[1]] == [one.value for one in second[:20]]
    assert not arrived[2]


def test_what_is_refused(
    replicated: Replicated, spark: SparkSession, clusters: ClusterPair
) -> None:
    here = replicated
    lake = here.lake(spark)
    few, short = f"{here.topic}.few", f"{here.topic}.short"
    create_topic(clusters.west, few, 1)
    create_topic(clusters.west, short, PARTITIONS, retention_ms="1")
    refused: Mapping[str, tuple[str, str]] = {
        "rand does not give the same answer": ("rand() > 0.5", "any"),
        "cannot be used": ("no_such_column = 1", "any"),
        "has 1 partitions and": ("true", few),
        "may delete the records again": ("true", short),
        "--into-mirror": ("true", f"east.{here.topic}"),
    }
    for said, (where, to) in refused.items():
        with pytest.raises(InputError, match=said):
            lake.replay(here.topic, where, to)
    assert lake.replay(here.topic, "offset < 0", "any").records == 0
    assert lake.replay(here.topic, "offset < 0", short).records == 0
    with pytest.raises(InputError, match="may delete the records again"):
        lake.replay(here.topic, "true", short, max_records=2, dry_run=True)
    kept = lake.replay(here.topic, "true", short, into_mirror=True, dry_run=True)
    assert kept.records >= COUNT
    assert not list(lake.rows("SELECT * FROM changes WHERE resource = 'any'"))


@pytest.mark.wide("test_the_first_ones_at_a_rate")
def test_nobody_takes_a_replay_for_a_flow(replicated: Replicated, spark: SparkSession) -> None:
    """It raises no alarm, and is in no list of flows; its map can be asked; `verify` knows whose
    the records are."""
    here = replicated
    lake = here.lake(spark)
    sent = lake.replay(here.topic, "offset < 50", f"east.{here.topic}", into_mirror=True)
    assert sent.flow is not None
    replicate_once(spark, here.topology)
    assert lake.verify(again=True).differences == []
    status = lake.status()
    assert status.healthy, status.alerts
    assert (
        {row["flow"] for row in status.proofs}
        == {row["flow"] for row in status.flows}
        == {"east->west"}
    )
    for view in (
        "flow_status",
        "partition_status",
        "replication_latency",
        "divergence",
        "proof_status",
    ):
        assert not lake.rows(f"SELECT flow FROM {view} WHERE flow LIKE 'replay:%'"), view
    position = lake.translate(sent.flow, here.topic, 0, 10)
    assert position.topic == f"east.{here.topic}" and position.exact


@pytest.mark.wide("integration/test_forget.py::test_what_is_forgotten_stays_so")
def test_a_private_replay_leaves_its_predicate_nowhere(
    replicated: Replicated, spark: SparkSession
) -> None:
    """Neither while it waits to go on, which it does in the same words only, nor when it is at its
    end."""
    lake, to = replicated.lake(spark), f"{replicated.topic}-private"
    person = "get_json_object(CAST(value AS STRING), '$.number') = '1007'"
    folder = replicated.topology.parent / "lake"
    stopped = Event()
    stopped.set()
    begun = lake.replay(replicated.topic, person, to, private=True, stop=stopped)
    assert not begun.complete
    other = lake.replay(
        replicated.topic, person.replace("1007", "1009"), to, private=True, dry_run=True
    )
    assert begun.flow not in (None, other.flow)
    assert [*(folder / "_checkpoints" / "private-replays").iterdir()], "it can go on"
    done = lake.replay(replicated.topic, person, to, private=True)
    assert done.complete and done.flow == begun.flow
    assert record_count(replicated.clusters.west, to) == 1
    assert not [*(folder / "_checkpoints" / "private-replays").iterdir()]
    (note,) = lake.rows(
        f"SELECT after FROM changes WHERE flow = '{done.flow}' AND kind = 'replay' AND outcome = "
        "'begun'"
    )
    assert json.loads(note["after"])["request"]["where"] is None
    left = [
        path for path in folder.rglob("*") if path.is_file() and b"= '1007'" in path.read_bytes()
    ]
    assert left == []


@pytest.mark.wide("lake/test_maintain.py::test_history_goes_by_age_but_the_newest_of_each_stays")
def test_maintain_forgets_what_ended_replays_were_asked_for(
    replicated: Replicated, spark: SparkSession
) -> None:
    """One that has not ended keeps its note, by which it goes on."""
    lake, stopped = replicated.lake(spark), Event()
    lake.replay(replicated.topic, "offset = 11", f"{replicated.topic}-kept")
    stopped.set()
    waits = lake.replay(replicated.topic, "offset = 12", f"{replicated.topic}-kept", stop=stopped)
    tables = lake.internals.tables
    remove_history(tables, "changes", 2**42)  # ms: some decades ahead
    left = lake.rows("SELECT DISTINCT flow, outcome FROM changes WHERE kind = 'replay'")
    assert left == [{"flow": waits.flow, "outcome": "begun"}]
    assert (
        lake.replay(replicated.topic, "offset = 12", f"{replicated.topic}-kept").flow == waits.flow
    )
