"""Running the replicator, in this process or as a command that can be killed, and comparing both
sides exactly."""

import atexit
import os
import subprocess
import sys
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from mirrorlake.config.topology import load_topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.produce.flow import FlowProducer
from mirrorlake.run.options import RunOptions
from mirrorlake.run.replicator import Replicator
from mirrorlake.run.snapshot import Snapshot, snapshot_of
from tests.support.kafka import Record, read_topics
from tests.support.lake_rows import FLOW, now_of

#: What of a flow costs every test time and is about few: their own tests switch it on.
QUIET = {"emit_heartbeats_enabled": False, "emit_checkpoints_enabled": False}


def write_topology(
    directory: Path,
    east: str,
    west: str,
    flow: Mapping[str, object],
    landing: Mapping[str, int] | None = None,
) -> Path:
    """A topology file for one flow east->west, its lake beside it."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "mirrorlake.yml"
    document = {
        "clusters": {
            "east": {"bootstrap_servers": east, "landing": dict(landing or {})},
            "west": {"bootstrap_servers": west},
        },
        "lake": {"path": "./lake"},
        # Heartbeats are off unless a test is about them: it would find a topic more, and records
        # that go on coming.
        "flows": {FLOW: {**QUIET, **flow}},
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@dataclass
class Run:
    """What an in-process run left: its lake, and a report for every batch."""

    lake: Lake
    reports: list[BatchReport] = field(default_factory=list)

    @property
    def readers(self) -> set[str]:
        return {report.reader for report in self.reports}


def lake_of(spark: SparkSession, topology: Path) -> Lake:
    """The lake of a topology file, opened in the tests' session."""
    loaded = load_topology(topology)
    return open_lake(spark, loaded.lake, loaded.directory)


def make_replicator(
    spark: SparkSession, topology: Path, once: bool, reader: str = "auto"
) -> tuple[Replicator, Run]:
    """A replicator over every flow of a topology file, and where its reports go."""
    loaded = load_topology(topology)
    run = Run(lake_of(spark, topology))
    replicator = Replicator(
        Deployment.opened(run.lake, Connections(loaded)),
        loaded.active_flows(),
        RunOptions(once=once, reader=reader),
        report=lambda _flow, report: run.reports.append(report),
    )
    return replicator, run


def in_catalog(topology: Path) -> dict[str, str]:
    """Edit a topology file so that its lake is a fresh schema of the session's catalog; returns
    which."""
    place = {"catalog": "spark_catalog", "schema": f"l{uuid.uuid4().hex[:8]}"}
    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    document["lake"] = {**place, "checkpoints": str(topology.parent / "checkpoints")}
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    return place


def answered_by_spark_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lakes in a catalog that are opened from now on: as where no file of theirs can be read."""
    monkeypatch.setattr("mirrorlake.lake.opening.files_by_catalog", lambda _names: None)


def replicate_once(spark: SparkSession, topology: Path, reader: str = "auto") -> Run:
    """`mirrorlake run --once` in this process."""
    replicator, run = make_replicator(spark, topology, True, reader)
    replicator.run()
    return run


@contextmanager
def replicating(spark: SparkSession, topology: Path) -> Iterator[Run]:
    """`mirrorlake run` in a thread for the time of the block; raises what it raised."""
    replicator, run = make_replicator(spark, topology, False)
    raised: list[BaseException] = []

    def target() -> None:
        try:
            replicator.run()
        except BaseException as error:  # noqa: BLE001 - handed to the test's thread
            raised.append(error)

    thread = Thread(target=target, name="replicator", daemon=True)
    thread.start()
    try:
        yield run
    finally:
        replicator.stop()
        thread.join(240)
    assert not thread.is_alive(), "the replicator does not stop"
    if raised:
        raise raised[0]


def start_run(topology: Path, *flags: str, **environment: str) -> "subprocess.Popen[bytes]":
    """`mirrorlake run` as a command; its output goes to run.log beside the topology file."""
    return start_command(topology, "run", *flags, **environment)


def start_command(topology: Path, *arguments: str, **environment: str) -> "subprocess.Popen[bytes]":
    """Any command of mirrorlake, as a process; its output goes to run.log beside the topology
    file. What a test that fails leaves running ends with the tests."""
    command = [sys.executable, "-m", "mirrorlake.cli.main", "-c", str(topology), *arguments]
    with (topology.parent / "run.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            cwd=topology.parent,
            env={**os.environ, "MIRRORLAKE_CORES": "2", **environment},
        )
    atexit.register(process.kill)  # nothing, once it has been waited for
    return process


def finish(run: "subprocess.Popen[bytes]", seconds: float = 400) -> int:
    """Wait for a command to end; never leaves it behind."""
    try:
        return run.wait(seconds)
    finally:
        run.kill()
        run.wait()


@dataclass(frozen=True)
class Sides:
    """Both sides of a flow as they are now, and all the lake says of them; made by `both_sides`."""

    source: Mapping[str, list[list[Record]]]
    target: Mapping[str, list[list[Record]]]
    mapped: Mapping[TopicAndPartition, list[tuple[int, int]]]
    rows: Mapping[TopicAndPartition, int]
    staged: Mapping[TopicAndPartition, list[int]]
    names: Mapping[str, str]


def both_sides(lake: Lake, east: str, west: str, names: Mapping[str, str]) -> Sides:
    """Read both clusters, the map and the stage. `names` are target topics by source topic."""
    mapped: dict[TopicAndPartition, list[tuple[int, int]]] = defaultdict(list)
    rows: dict[TopicAndPartition, int] = defaultdict(int)
    reader = now_of(lake)
    for row in reader.rows(f"SELECT * FROM offset_map WHERE flow = '{FLOW}'"):
        if row["topic"] not in names:
            continue
        assert (row["target_topic"], row["target_partition"]) == (
            names[row["topic"]],
            row["partition"],
        ), row
        pairs = list(expanded(row["segments"]))
        assert (row["source_first"], row["target_first"]) == pairs[0], row
        assert (row["source_last"], row["target_last"]) == pairs[-1], row
        assert row["record_count"] == len(pairs), row
        mapped[row["topic"], row["partition"]].extend(pairs)
        rows[row["topic"], row["partition"]] += 1
    staged: dict[TopicAndPartition, list[int]] = defaultdict(list)
    for row in reader.rows("SELECT topic, partition, offset FROM records"):
        staged[row["topic"], row["partition"]].append(row["offset"])
    return Sides(
        read_topics(east, list(names)),
        read_topics(west, list(names.values())),
        mapped,
        rows,
        staged,
        dict(names),
    )


def expanded(segments: list[Mapping[str, int]]) -> Iterator[tuple[int, int]]:
    for segment in segments:
        for index in range(segment["record_count"]):
            yield (
                segment["source_first"] + index * segment["stride"],
                segment["target_first"] + index,
            )


def assert_topic_same(sides: Sides, topic: str, source: list[list[Record]] | None = None) -> int:
    """One topic, both sides: same partitions, same records in order, staged once, mapped totally
    and exactly.

    Returns how many records it has. `source` is what was read at the source earlier, where the
    source goes on changing.
    """
    wanted = sides.source[topic] if source is None else source
    got = sides.target[sides.names[topic]]
    assert len(got) == len(wanted), f"{topic}: {len(got)} partitions instead of {len(wanted)}"
    for partition, (there, here) in enumerate(zip(wanted, got, strict=True)):
        where = f"{topic}-{partition}"
        assert len(here) == len(there), (
            f"{where}: {len(here)} records on the target instead of {len(there)}"
        )
        for one, other in zip(there, here, strict=True):
            assert other[1:] == one[1:], f"{where}: {_short(one)} became {_short(other)}"
        offsets = [record.offset for record in there]
        staged = sorted(sides.staged.get((topic, partition), []))
        assert staged == offsets, (
            f"{where}: staged {len(staged)} ({len(set(staged))} distinct), source {len(offsets)}"
        )
        expected = list(zip(offsets, [record.offset for record in here], strict=True))
        mapped = sorted(sides.mapped.get((topic, partition), []))
        assert mapped == expected, f"{where}: the map has {_difference(mapped, expected)}"
    return sum(map(len, wanted))


def land_only(spark: SparkSession, topology: Path) -> None:
    """A run whose flow produces nothing, and does not say that it has caught up."""

    def behind(
        producer: FlowProducer, covered: dict[TopicAndPartition, int], _up: bool, *others: Any
    ) -> Snapshot:
        return snapshot_of(producer, covered, False, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mirrorlake.produce.flow.FlowProducer.step", lambda _self, _upto=None: None)
        patch.setattr("mirrorlake.run.flow_worker.snapshot_of", behind)
        replicate_once(spark, topology)


def assert_same(
    lake: Lake, east: str, west: str, names: Mapping[str, str], at_least: int = 1
) -> Sides:
    """Every topic of `names` is the same on both sides (see `assert_topic_same`), and there is
    something to compare."""
    sides = both_sides(lake, east, west, names)
    assert sum(assert_topic_same(sides, topic) for topic in names) >= at_least
    return sides


def _short(record: Record) -> str:
    return str(tuple(item[:40] if isinstance(item, bytes) else item for item in record))


def _difference(mapped: list[tuple[int, int]], expected: list[tuple[int, int]]) -> str:
    missing, extra = sorted(set(expected) - set(mapped)), sorted(set(mapped) - set(expected))
    twice = len(mapped) - len(set(mapped))
    return (
        f"{len(missing)} pairs missing {missing[:3]}, {len(extra)} wrong {extra[:3]}, {twice} twice"
    )
