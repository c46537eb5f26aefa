"""`verify` on real brokers: what is the same is proven, and each kind of difference is found and
named."""

import html
import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.errors import InputError
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.table_upkeep import Removal, note_removals
from mirrorlake.library import verifying
from mirrorlake.library.verify_answer import Verified
from mirrorlake.verify.auditor import WAVE_RANGES
from mirrorlake.verify.workers import AuditWorkers
from tests.support.clusters import ClusterPair
from tests.support.commands import exit_code
from tests.support.kafka import NewRecord, create_topic, numbered, read_topic, truncate, write
from tests.support.replication import (
    lake_of,
    land_only,
    replicate_once,
    replicating,
    write_topology,
)

COUNT = 20
WIDE = WAVE_RANGES + 8
#: What is planted in which topic, and as what it has to be found: kind, first and last source
#: offset.
PLANTED: Mapping[str, tuple[str, int, int] | None] = {
    "same": None,
    "deleted": ("missing_at_target", 0, 2),
    "twice": ("twice_at_target", 5, 5),
    "staged": ("stage_differs", 7, 7),
    "swapped": ("order", 3, 6),
    "foreign": ("foreign_at_target", 19, 19),
    "nulled": ("content", 4, 4),
    "later": ("content", 4, 4),
    "unmapped": ("not_mapped", 0, 19),
}
#: Young enough for the brokers to keep them.
START = int(time.time() * 1000) - 600_000


def records(start: int = 0, count: int = COUNT) -> list[NewRecord]:
    return [
        NewRecord(str(at).encode(), b"k", 0, [("a", None)], START + at)
        for at in range(start, start + count)
    ]


@dataclass(frozen=True)
class Planted:
    """A lake whose topics differ, and the names of those."""

    topology: Path
    prefix: str

    def name(self, topic: str) -> str:
        return f"{self.prefix}-{topic}"


@pytest.fixture(scope="module")
def planted(
    spark: SparkSession, clusters: ClusterPair, tmp_path_factory: pytest.TempPathFactory
) -> Planted:
    """Everything that can go wrong, made to."""
    prefix = "verify"
    here = Planted(
        write_topology(
            tmp_path_factory.mktemp("verify"),
            clusters.east,
            clusters.west,
            {"topics": [f"{prefix}-.*"]},
        ),
        prefix,
    )
    for topic in PLANTED:
        create_topic(clusters.east, here.name(topic))
        write(clusters.east, here.name(topic), records())
    land_only(spark, here.topology)
    tables = PathTables(here.topology.parent / "lake")
    right = DeltaTable(str(here.topology.parent / "lake" / "records")).to_pyarrow_table()
    # what the flow produces is not what the source has
    tables.rewrite("records", lambda rows: faked(rows, here))
    replicate_once(spark, here.topology)
    tables.rewrite("records", lambda _rows: right)
    plant(clusters, here, tables)
    replicate_once(spark, here.topology)
    tables.rewrite("offset_map", lambda rows: without_map(rows, here.name("unmapped")))
    return here


def faked(rows: pa.Table, here: Planted) -> pa.Table:
    found = {(row["topic"], row["offset"]): row for row in rows.to_pylist()}
    one, other = (found[here.name("swapped"), at] for at in (3, 6))
    for column in ("value", "timestamp"):
        one[column], other[column] = other[column], one[column]
    found[here.name("nulled"), 4]["headers"] = [{"key": "a", "value": b""}]
    found[here.name("later"), 4]["timestamp"] += timedelta(milliseconds=1)
    return pa.Table.from_pylist(list(found.values()), rows.schema)


def without_map(rows: pa.Table, topic: str) -> pa.Table:
    gone = pc.and_(pc.equal(rows["topic"], topic), pc.equal(rows["source_first"], 0))
    return rows.filter(pc.invert(gone))


def changed(rows: pa.Table, topic: str, value: bytes) -> pa.Table:
    found = rows.to_pylist()
    for row in found:
        if (row["topic"], row["offset"]) == (topic, 7):
            row["value"] = value
    return pa.Table.from_pylist(found, rows.schema)


def plant(clusters: ClusterPair, here: Planted, tables: PathTables) -> None:
    truncate(clusters.west, f"east.{here.name('deleted')}", 3)
    copy = read_topic(clusters.west, f"east.{here.name('twice')}")[0][5]
    again = NewRecord(copy.value, copy.key, 0, copy.headers, copy.timestamp)
    write(clusters.west, f"east.{here.name('twice')}", [again])
    write(clusters.west, f"east.{here.name('foreign')}", [NewRecord(b"nobody's")])
    tables.rewrite("records", lambda rows: changed(rows, here.name("staged"), b"changed"))
    for topic in ("foreign", "unmapped"):
        write(clusters.east, here.name(topic), records(COUNT, 5))


def found_by(answer: Verified, here: Planted) -> dict[str, list[tuple[str, int, int]]]:
    found: dict[str, list[tuple[str, int, int]]] = {}
    for difference in answer.differences:
        name = difference["topic"].removeprefix(f"{here.prefix}-")
        found.setdefault(name, []).append(
            (difference["kind"], difference["first_offset"], difference["last_offset"])
        )
    return found


@pytest.mark.law("never more than was seen")
def test_each_kind_is_found_and_named(planted: Planted) -> None:
    answer = mirrorlake.open(planted.topology).verify()
    assert found_by(answer, planted) == {
        topic: [item] for topic, item in PLANTED.items() if item is not None
    }
    assert answer.ranges == len(PLANTED) and answer.records == len(PLANTED) * COUNT + 10
    assert answer.proven == COUNT
    told = {
        difference["topic"].removeprefix("verify-"): difference["detail"]
        for difference in answer.differences
    }
    assert told["nulled"] == "header 0: null became empty"
    assert told["later"] == f"timestamp {START + 4} became {START + 5}"
    lake = mirrorlake.open(planted.topology)
    rows = lake.rows("SELECT * FROM audits WHERE topic = 'verify-same'")
    assert [
        (row["verdict"], row["source_count"], row["stage_count"], row["target_count"])
        for row in rows
    ] == [("proven", COUNT, COUNT, COUNT)]
    assert len({rows[0][f"{side}_hash"] for side in ("source", "stage", "target")}) == 1
    open_now = {incident["topic"] for incident in lake.incidents(kind="content_differs")}
    assert open_now == {planted.name(topic) for topic, item in PLANTED.items() if item is not None}


@pytest.mark.wide("test_each_kind_is_found_and_named")
@pytest.mark.parametrize("reader", ["files", pytest.param("rows", marks=pytest.mark.slow)])
def test_executors_find_the_same(
    planted: Planted, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    monkeypatch.setattr(verifying, "SMALL_OFFSETS", -1)
    if reader == "rows":
        monkeypatch.setattr(verifying, "files_readable", lambda _spark, _uri: False)
    by_rows = []

    def workers(*args: Any, **named: Any) -> AuditWorkers:
        by_rows.append(named["by_rows"])
        return AuditWorkers(*args, **named)

    monkeypatch.setattr(verifying, "AuditWorkers", workers)
    lake = mirrorlake.open(planted.topology, spark=spark)
    answer = lake.verify(again=True)
    assert set(by_rows) == {reader == "rows"}
    assert found_by(answer, planted) == {
        topic: [item] for topic, item in PLANTED.items() if item is not None
    }
    assert answer.proven == COUNT
    told = {
        difference["topic"].removeprefix("verify-"): difference["detail"]
        for difference in answer.differences
    }
    assert told["nulled"] == "header 0: null became empty"


def test_what_is_mended_is_proven_and_its_incident_closed(planted: Planted) -> None:
    name = planted.name("staged")
    before = mirrorlake.open(planted.topology).verify(topics=[name])
    assert found_by(before, planted) == {"staged": [PLANTED["staged"]]}
    tables = PathTables(planted.topology.parent / "lake")
    tables.rewrite("records", lambda rows: changed(rows, name, b"7"))
    after = mirrorlake.open(planted.topology).verify(topics=[name])
    assert (after.records, after.proven, after.differences) == (COUNT, COUNT, [])
    assert not mirrorlake.open(planted.topology).incidents(topic=name)
    assert mirrorlake.open(planted.topology).verify(topics=[name]).ranges == 0, (
        "what is proven is not compared again"
    )


@pytest.mark.wide(
    "test_each_kind_is_found_and_named",
    "unit/verify/test_what_lies_behind_the_map.py::test_it_is_named",
)
def test_a_record_behind_the_end_of_the_map_is_found_later(
    planted: Planted, clusters: ClusterPair
) -> None:
    name = planted.name("same")
    assert mirrorlake.open(planted.topology).verify(topics=[name]).differences == []
    write(clusters.west, f"east.{name}", [NewRecord(b"nobody's")])
    answer = mirrorlake.open(planted.topology).verify(topics=[name])
    assert found_by(answer, planted) == {"same": [("foreign_at_target", COUNT - 1, COUNT - 1)]}


@pytest.mark.wide(
    "test_each_kind_is_found_and_named",
    "unit/verify/test_what_lies_behind_the_map.py::test_it_is_named",
)
def test_a_record_where_the_flow_has_brought_nothing(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """No range of a comparison reaches it: all was proven, and the mirror held what its source
    does not."""
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    create_topic(clusters.east, topic_name, 2)
    write(clusters.east, topic_name, [NewRecord(b"ours", partition=0)])
    replicate_once(spark, topology)
    assert mirrorlake.open(topology).verify().complete
    write(clusters.west, f"east.{topic_name}", [NewRecord(b"another's", partition=1)])
    answer = mirrorlake.open(topology).verify()
    found = [(row["kind"], row["partition"], row["target_offset"]) for row in answer.differences]
    assert found == [("foreign_at_target", 1, 0)] and not answer.complete


def test_a_topic_that_no_flow_has_brought(planted: Planted) -> None:
    with pytest.raises(InputError, match="no flow has brought a topic nowhere"):
        mirrorlake.open(planted.topology).verify(topics=["nowhere"])


def replicated(spark: SparkSession, clusters: ClusterPair, folder: Path, partitions: int) -> Path:
    """A topology whose one topic, of the folder's name, has five records in each partition."""
    topic = folder.name
    create_topic(clusters.east, topic, partitions=partitions)
    write(clusters.east, topic, numbered(partitions * 5, partitions))
    topology = write_topology(folder, clusters.east, clusters.west, {"topics": [topic]})
    replicate_once(spark, topology)
    return topology


@pytest.fixture(scope="module")
def wide(
    spark: SparkSession, clusters: ClusterPair, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A topology whose one topic has more partitions than a wave has ranges."""
    return replicated(spark, clusters, tmp_path_factory.mktemp("wide"), WIDE)


def killed(wide: Path, point: str) -> None:
    """The command, killed at a point."""
    once = {"MIRRORLAKE_CRASH": point, "MIRRORLAKE_CRASH_ONCE": str(wide.parent / point)}
    assert exit_code(wide, "verify", **once) == -9


@pytest.mark.slow
def test_killed_before_it_has_written_anything(wide: Path) -> None:
    killed(wide, "compared")
    assert mirrorlake.open(wide).rows("SELECT count(*) AS n FROM audits") == [{"n": 0}]


@pytest.mark.wide("simulation/test_proof_schedules.py::test_no_schedule_breaks_a_law_of_proofs")
def test_killed_in_the_middle_it_goes_on_where_it_was(wide: Path) -> None:
    killed(wide, "audited")
    answer = mirrorlake.open(wide).verify()
    left = WIDE - WAVE_RANGES
    assert (answer.ranges, answer.records) == (left, left * 5)
    assert answer.proven_before == (WIDE - left) * 5
    rows = mirrorlake.open(wide).rows(
        "SELECT partition, count(*) AS n FROM audits GROUP BY partition"
    )
    assert len(rows) == WIDE and {row["n"] for row in rows} == {1}, "each range once"


@pytest.mark.wide("test_the_command_its_report_and_a_check_by_hand")
def test_what_is_chosen_is_compared(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    count = 3
    lake = mirrorlake.open(replicated(spark, clusters, tmp_path / topic_name, count))
    assert lake.verify(again=True, offsets=(1, 3)).records == count * 3
    assert (
        lake.verify(again=True, since=datetime.now(timezone.utc) + timedelta(days=1)).records == 0
    )
    assert (
        lake.verify(again=True, since=datetime.now(timezone.utc) - timedelta(days=1)).records
        == count * 5
    )
    proofs = lake.status().proofs
    assert [(row["topic"], row["mapped_records"], row["proven_share"]) for row in proofs] == [
        (topic_name, count * 5, 1.0)
    ]


@pytest.mark.wide(because="what is held is a rate: seconds have to pass")
def test_no_more_is_read_of_a_cluster_in_a_second(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(1_500, size=20))
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    replicate_once(spark, topology)
    began = time.monotonic()
    assert mirrorlake.open(topology).verify(max_mb_per_s=0.05).records == 1_500
    assert time.monotonic() - began > 1_500 * 100 / 50_000 / 2, (
        "without a limit it takes half a second"
    )


def test_the_command_its_report_and_a_check_by_hand(
    planted: Planted, clusters: ClusterPair
) -> None:
    folder = planted.topology.parent
    reports = [f"--report={folder / name}" for name in ("evidence.html", "evidence.json")]
    command = [
        sys.executable,
        "-m",
        "mirrorlake",
        "-c",
        str(planted.topology),
        "verify",
        "--again",
        "--json",
        *reports,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    assert {"ranges", "records", "proven", "differences", "excused"} <= answer.keys()
    assert {"flow", "topic", "partition", "first_offset", "last_offset", "kind"} <= answer[
        "differences"
    ][0].keys()
    page = (folder / "evidence.html").read_text(encoding="utf-8")
    assert (
        "{{" not in page
        and "missing_at_target" in page
        and "http" not in page
        and "src=" not in page
    )
    rows = json.loads((folder / "evidence.json").read_text(encoding="utf-8"))["audits"]
    (row,) = [row for row in rows if row["topic"] == planted.name("swapped")]
    written = (Path(__file__).parents[2] / "docs" / "trust.md").read_text(encoding="utf-8")
    program = written.partition("```python\n")[2].partition("```")[0]
    assert program in html.unescape(page), "the page says the same as docs/trust.md"
    places = {
        "source": (clusters.east, row["topic"], row["first_offset"], row["last_offset"]),
        "target": (
            clusters.west,
            row["target_topic"],
            row["target_first_offset"],
            row["target_last_offset"],
        ),
    }
    for side, (servers, topic, first, last) in places.items():
        by_hand = [sys.executable, "-c", program, servers, topic, "0", str(first), str(last)]
        said = subprocess.run(by_hand, capture_output=True, text=True, check=True).stdout.split()
        assert said == [str(row[f"{side}_count"]), "records", row[f"{side}_hash"]]


@pytest.mark.wide("test_each_kind_is_found_and_named")
def test_a_source_that_has_trimmed_its_log(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(100))
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    replicate_once(spark, topology)
    truncate(clusters.east, topic_name, 40)
    answer = mirrorlake.open(topology).verify()
    assert (answer.proven, answer.differences, answer.excused) == (100, [], {"source_trimmed": 40})
    truncate(clusters.east, topic_name, 100)
    answer = mirrorlake.open(topology).verify(again=True)
    assert (answer.proven, answer.differences, answer.excused) == (100, [], {"source_trimmed": 100})
    assert [row["verdict"] for row in answer.audits] == ["source_trimmed"]
    tables = PathTables(topology.parent / "lake")
    tables.rewrite("records", lambda rows: changed(rows, topic_name, b"changed"))
    answer = mirrorlake.open(topology).verify(again=True)
    found = [
        (difference["kind"], difference["first_offset"], difference["detail"])
        for difference in answer.differences
    ]
    assert found == [("content", 7, "value: 7 bytes became 2 bytes")], (
        "stage and target are compared all the same"
    )
    note_removals(lake_of(spark, topology), [Removal("east", topic_name, 0, 0, 0, 50)])
    tables.rewrite("records", lambda rows: rows.filter(pc.field("offset") >= 60))
    answer = mirrorlake.open(topology).verify(again=True)
    found = [
        (difference["kind"], difference["first_offset"], difference["last_offset"])
        for difference in answer.differences
    ]
    assert found == [("stage_differs", 50, 59)], "more is gone than was noted to go"


@pytest.mark.wide("test_each_kind_is_found_and_named")
def test_two_flows_with_provenance_in_one_topic(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    """Each side has records of its own, those of the other, and none twice: echoes and others' are
    no difference."""
    settings = {"topics": [topic_name], "policy": "identity", "provenance": "headers"}
    topology = write_topology(tmp_path, clusters.east, clusters.west, settings)
    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    document["flows"]["west->east"] = document["flows"]["east->west"]
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    for address in (clusters.east, clusters.west):
        create_topic(address, topic_name)
    for turn in range(3):
        # the second one lands what the first one has brought, between records of its own
        for address, start in ((clusters.east, 0), (clusters.west, 1_000)):
            write(address, topic_name, numbered(30, start=start + turn * 30))
        replicate_once(spark, topology)
    answer = mirrorlake.open(topology).verify()
    assert answer.differences == [] and answer.excused.keys() == {"echo", "others"}
    write(clusters.west, topic_name, [NewRecord(b"behind")])
    assert mirrorlake.open(topology).verify().differences == [], (
        "what is written at the target is its own"
    )


@pytest.mark.wide("simulation/test_proof_schedules.py::test_no_schedule_breaks_a_law_of_proofs")
def test_it_follows_a_running_replicator(
    spark: SparkSession,
    clusters: ClusterPair,
    tmp_path: Path,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verifying, "WATCH_SECONDS", 0.5)
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(100))
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    replicate_once(spark, topology)
    stop, seen = threading.Event(), threading.Event()

    def report(found: Verified) -> None:
        if found.records >= 300:
            seen.set()

    with replicating(spark, topology), ThreadPoolExecutor(1) as watching:
        watch = watching.submit(
            mirrorlake.open(topology).verify, watch=True, stop=stop, report=report
        )
        write(clusters.east, topic_name, numbered(200, start=100))
        assert seen.wait(120), "what came meanwhile was compared"
        stop.set()
        answer = watch.result(60)
    # The last stretch is compared once more where the target's log has grown behind it.
    assert answer.records >= 300 and (answer.proven, answer.differences) == (answer.records, [])
    (proof,) = mirrorlake.open(topology).status().proofs
    assert (proof["mapped_records"], proof["proven_share"]) == (300, 1.0)
