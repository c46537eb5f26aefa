"""Both clusters are gone, and a third one is empty: a restore from the lake, after which groups
read on exactly behind what they had committed (docs/restore.md has the procedure). Its times are
printed: `pytest -s`."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.devtools.local.clusters import start_clusters, stop_clusters
from mirrorlake.kafka.values import Acl
from tests.support.acls import acl
from tests.support.control import AUTHORIZER, acls_of, add_acls, own_configs
from tests.support.kafka import Record, create_topic, read_topics, transactional_producer, write
from tests.support.odd_records import odd_records
from tests.support.readers import Numbers, Reading, count, joined, read_with_java, read_with_python
from tests.support.replication import finish, replicate_once, start_command

PARTITIONS = 3
#: How far behind the end each group is, in records: at it, near it, in the middle, and one that has
#: read nothing.
GROUPS = ("orders-none-left", "orders-near", "orders-middle", "ledger-middle", "ledger-java")
ACLS = {
    acl("orders"),
    acl("orders", "WRITE", principal="User:shop"),
    acl("led", "ALL", pattern="PREFIXED", principal="User:bank"),
    acl("ledger", "WRITE", "DENY", principal="User:guest", host="10.1.2.3"),
}
#: Where the command dies in turn, before it comes to its end.
KILLS = ("kafka-committed", "resend-sent", "group-moved")


@dataclass(frozen=True)
class Gone:
    """What was on the cluster that is gone."""

    topology: Path
    records: Mapping[str, list[list[Record]]]
    read: Mapping[str, Numbers]
    times: dict[str, float]


def fill(bootstrap: str, records: int) -> None:
    """Plain records, transactions with a marker behind each (some aborted), and whatever a record
    can be."""
    create_topic(
        bootstrap, "orders", PARTITIONS, cleanup_policy="compact", retention_ms="864000000"
    )
    create_topic(bootstrap, "ledger", PARTITIONS)
    create_topic(bootstrap, "odd")
    create_topic(bootstrap, "empty", 2)
    write(bootstrap, "odd", odd_records())
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": records}
    )
    for number in range(records):
        producer.produce("orders", b"%d" % number, b"k%d" % number, number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0
    banker, written = transactional_producer(bootstrap), 0
    for transaction in range(60):
        banker.begin_transaction()
        for _ in range(transaction % 7 + 1):
            banker.produce("ledger", b"%d" % written, partition=written % PARTITIONS)
            written += 1
        if transaction % 5 == 4:
            banker.flush(30)
            banker.abort_transaction(30)
        else:
            banker.commit_transaction(30)


def read_some(bootstrap: str, records: Mapping[str, list[list[Record]]]) -> dict[str, Numbers]:
    """Groups read a part of a topic each, and commit."""
    total = {topic: sum(map(len, found)) for topic, found in records.items()}
    limits = {
        "orders-none-left": total["orders"],
        "orders-near": total["orders"] - 10,
        "orders-middle": total["orders"] // 2 + 1,
        "ledger-middle": total["ledger"] // 2,
        "ledger-java": total["ledger"] // 3,
    }
    readings = [Reading(group, group.split("-")[0], limit) for group, limit in limits.items()]
    found = read_with_python(
        bootstrap, "earliest", [reading for reading in readings if "java" not in reading.group]
    )
    return found | read_with_java(
        bootstrap, "earliest", [reading for reading in readings if "java" in reading.group]
    )


def file_of(directory: Path, addresses: Mapping[str, str]) -> Path:
    path = directory / "mirrorlake.yml"
    document = {
        "clusters": {alias: {"bootstrap_servers": address} for alias, address in addresses.items()},
        "lake": {"path": "./lake"},
        "flows": {"east->west": {"emit_heartbeats_enabled": False}},
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def lost(directory: Path, records: int, spark: SparkSession | None = None) -> Gone:
    """Fill a cluster, mirror it by the command, or in a session, and lose both."""
    clusters = start_clusters(
        ["east", "west"], directory / "lost", properties=AUTHORIZER, heap="384m"
    )
    try:
        east = clusters["east"].bootstrap_servers
        fill(east, records)
        add_acls(east, *ACLS)
        there = read_topics(east, ["orders", "ledger", "odd", "empty"])
        read = read_some(east, there)
        topology = file_of(
            directory, {name: cluster.bootstrap_servers for name, cluster in clusters.items()}
        )
        began = time.monotonic()
        if spark is not None:
            replicate_once(spark, topology)
        else:
            assert finish(start_command(topology, "run", "--once")) == 0, log_of(topology)
        return Gone(topology, there, read, {"run --once": time.monotonic() - began})
    finally:
        stop_clusters(clusters)


def log_of(topology: Path) -> str:
    return (topology.parent / "run.log").read_text(encoding="utf-8")[-4_000:]


def command_of(gone: Gone, third: EmbeddedCluster) -> list[str]:
    """What docs/restore.md says, with the third cluster in the file."""
    addresses = yaml.safe_load(gone.topology.read_text(encoding="utf-8"))["clusters"]
    known = {alias: cluster["bootstrap_servers"] for alias, cluster in addresses.items()}
    file_of(gone.topology.parent, {**known, "third": third.bootstrap_servers})
    arguments = (
        "restore",
        "--from",
        "east",
        "--to",
        "third",
        "--with",
        "configs,acls,groups",
        "--json",
    )
    return ["-c", str(gone.topology), *arguments]


def restored(
    gone: Gone, third: EmbeddedCluster, *flags: str, **environment: str
) -> tuple[int, dict[str, object]]:
    """The command of docs/restore.md, in a process of its own; returns its exit code and its
    document."""
    command = [sys.executable, "-m", "mirrorlake.cli.main", *command_of(gone, third), *flags]
    began = time.monotonic()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "MIRRORLAKE_CORES": "2", **environment},
    )
    gone.times[" ".join(("restore", *flags))] = time.monotonic() - began
    if not environment:
        assert done.stdout, done.stderr[-4_000:]
    return done.returncode, json.loads(done.stdout or "{}")


def assert_all_there(gone: Gone, third: EmbeddedCluster) -> None:
    """Every record, once, in order; the configs; the ACLs, and no wider."""
    arrived = read_topics(third.bootstrap_servers, list(gone.records))
    for topic, partitions in gone.records.items():
        assert len(arrived[topic]) == len(partitions)
        for wanted, got in zip(partitions, arrived[topic], strict=True):
            assert [record[1:] for record in got] == [record[1:] for record in wanted], topic
    configs = own_configs(third.bootstrap_servers, "orders")
    assert (configs["cleanup.policy"], configs["retention.ms"]) == ("compact", "864000000")
    found: set[Acl] = acls_of(third.bootstrap_servers)
    assert found == ACLS


def assert_groups_read_on(gone: Gone, third: EmbeddedCluster) -> None:
    """0 again, 0 skipped: what a group reads now begins behind what it had read."""
    readings = [Reading(group, group.split("-")[0]) for group in gone.read]
    began = time.monotonic()
    after = read_with_python(
        third.bootstrap_servers,
        "none",
        [reading for reading in readings if "java" not in reading.group],
    )
    after |= read_with_java(
        third.bootstrap_servers,
        "none",
        [reading for reading in readings if "java" in reading.group],
    )
    gone.times["groups read on"] = time.monotonic() - began
    for reading in readings:
        before, now = gone.read[reading.group], after[reading.group]
        assert count(before) + count(now) == sum(map(len, gone.records[reading.topic])), (
            reading.group
        )
        for partition, records in enumerate(gone.records[reading.topic]):
            numbers = joined(
                [[int(record.value or b""), int(record.value or b"")] for record in records]
            )
            assert joined(before.get(partition, []), now.get(partition, [])) == numbers, (
                f"{reading.group}, {partition}"
            )


def third_cluster(directory: Path) -> EmbeddedCluster:
    return start_clusters(["third"], directory / "third", properties=AUTHORIZER, heap="384m")[
        "third"
    ]


@pytest.mark.wide("integration/test_restore.py::test_killed_again_and_again")
@pytest.mark.parametrize("kills", [("group-moved",), pytest.param(KILLS, marks=pytest.mark.slow)])
def test_an_empty_third_cluster_takes_over_whenever_the_restore_is_killed(
    spark: SparkSession, tmp_path: Path, kills: Sequence[str]
) -> None:
    gone = lost(tmp_path, 6_000, spark)
    third = third_cluster(tmp_path)
    try:
        for point in kills:
            once = tmp_path / point
            code, _ = restored(
                gone, third, MIRRORLAKE_CRASH=f"{point}:driver", MIRRORLAKE_CRASH_ONCE=str(once)
            )
            assert once.exists() and code == -9, point
        done = CliRunner().invoke(app, command_of(gone, third))
        assert done.exit_code == 0, done.output
        document = json.loads(done.stdout)
        assert (document["complete"], document["continued"]) == (True, bool(kills)), document
        assert {row["done"] for row in document["groups"]} <= {"moved", "there"}
        assert_all_there(gone, third)
        assert_groups_read_on(gone, third)
    finally:
        stop_clusters({"third": third})


@pytest.mark.slow
def test_a_rehearsal_of_a_million_records(tmp_path: Path) -> None:
    gone = lost(tmp_path, 1_000_000)
    began = time.monotonic()
    third = third_cluster(tmp_path)
    gone.times["an empty cluster"] = time.monotonic() - began
    try:
        code, planned = restored(gone, third, "--dry-run")
        assert (
            code == 0 and planned["dry_run"] and len(planned["groups"]) == PARTITIONS * len(GROUPS)
        )  # type: ignore[arg-type]
        assert {row["done"] for row in planned["groups"]} == {"would move"} and len(
            planned["acls"]
        ) == len(ACLS)  # type: ignore[attr-defined, arg-type]
        assert read_topics(third.bootstrap_servers, ["orders"]) == {
            "orders": []
        }  # it has done nothing
        code, found = restored(gone, third)
        assert (code, found["complete"]) == (0, True), found
        assert_all_there(gone, third)
        assert_groups_read_on(gone, third)
    finally:
        stop_clusters({"third": third})
    for step, seconds in gone.times.items():
        sys.stdout.write(f"{step:>20}: {seconds:6.1f} s\n")
