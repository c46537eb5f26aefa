"""`mirrorlake trace` by the command line, over what a real run left: records that arrived, and
others that did not."""

import json
import os
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from mirrorlake.errors import TargetRefused
from tests.support.clusters import ClusterPair
from tests.support.kafka import (
    NewRecord,
    create_topic,
    numbered,
    read_topic,
    send,
    transactional_producer,
    write,
)
from tests.support.replication import FLOW, replicate_once, write_topology

SIX_MINUTES_MS = 360_000


def answer(topology: Path, *words: str) -> tuple[int, Any]:
    done = CliRunner().invoke(app, ["-c", str(topology), *words, "--json"])
    assert done.stdout, done.exception
    return done.exit_code, json.loads(done.stdout)


def trace(topology: Path, topic: str, *words: object) -> tuple[int, Any]:
    return answer(topology, "trace", "--flow", FLOW, "--topic", topic, *map(str, words))


def at(offset: int, partition: int = 0) -> tuple[object, ...]:
    return "--partition", partition, "--offset", offset


def write_all(east: str, west: str, name: str) -> None:
    """An ordinary topic with a transaction and a late record, one with a record too large in its
    middle, a third."""
    for kind, partitions in (("plain", 2), ("large", 1), ("later", 1)):
        create_topic(east, f"{name}-{kind}", partitions)
    create_topic(west, f"east.{name}-large", 1, max_message_bytes="5000")
    producer = transactional_producer(east)
    producer.begin_transaction()
    send(producer, f"{name}-plain", NewRecord(b"first", b"key"))
    producer.commit_transaction(30)
    late = round(time.time() * 1000) - SIX_MINUTES_MS
    write(
        east,
        f"{name}-plain",
        [*numbered(20), NewRecord(b"late", b"key", timestamp=late), NewRecord(b"last", b"end")],
    )
    write(east, f"{name}-large", [*numbered(3), NewRecord(os.urandom(20_000)), *numbered(3)])
    write(east, f"{name}-later", numbered(5))


def test_lives_of_records(spark: SparkSession, clusters: ClusterPair, tmp_path: Path) -> None:
    name = f"trace-{uuid.uuid4().hex[:6]}"
    plain, large, later = (f"{name}-{kind}" for kind in ("plain", "large", "later"))
    write_all(clusters.east, clusters.west, name)
    settings = {
        "topics": [f"{name}-.*"],
        "paused": [later],
        "sync_topic_configs_enabled": False,
        "groups": [f"{name}.*"],
        "emit_checkpoints_enabled": True,
    }
    topology = write_topology(tmp_path, clusters.east, clusters.west, settings)
    _, before = answer(topology, "plan")
    source = {record.value: record.offset for record in read_topic(clusters.east, plain)[0]}
    (marker,) = set(range(24)) - set(source.values())  # it is written some moments after the commit
    ends = sum(len(read_topic(clusters.east, topic)[0]) for topic in (plain, large, later)) + 1
    assert (before["totals"]["topics_to_create"], before["totals"]["topics"]) == (2, 3)
    assert (before["totals"]["partitions_to_create"], before["totals"]["partitions_there"]) == (
        3,
        1,
    )
    assert (
        before["totals"]["offsets_at_source"] == ends
        and before["flows"][0]["totals"]["topics"] == 3
    )

    reader = Consumer(
        {
            "bootstrap.servers": clusters.east,
            "group.id": f"{name}-reader",
            "enable.auto.commit": False,
        }
    )
    reader.commit(offsets=[TopicPartition(plain, 0, 10)], asynchronous=False)
    reader.close()
    with pytest.raises(TargetRefused):
        replicate_once(spark, topology)

    code, found = trace(topology, plain, *at(source[b"3|"]))
    (there,) = (
        record for record in read_topic(clusters.west, f"east.{plain}")[0] if record.value == b"3|"
    )
    assert (code, found["state"], found["target_offset"]) == (0, "at_target", there.offset)
    assert [item["stage"] for item in found["stages"]][:3] == ["written", "landed", "produced"]
    assert 0 <= found["latency_ms"]["landing"] <= found["latency_ms"]["replication"] < 120_000
    assert {(row["side"], row["is_past"]) for row in found["readers"]} == {
        ("source", True),
        ("target", True),
    }
    assert (
        trace(topology, f"east.{plain}", *at(there.offset), "--reverse")[1]["offset"]
        == source[b"3|"]
    )
    assert not [row for row in trace(topology, plain, *at(15))[1]["readers"] if row["is_past"]]

    code, found = trace(topology, plain, "--key", "key")
    assert (code, found["offset"]) == (0, source[b"first"]), (
        "the late record has an older timestamp"
    )
    late = trace(topology, plain, *at(source[b"late"]))[1]
    assert found["latency_ms"]["landing"] < SIX_MINUTES_MS <= late["latency_ms"]["landing"]
    assert trace(topology, plain, "--key", "0x656e64")[1]["offset"] == source[b"last"]
    assert trace(topology, plain, *at(marker))[1]["state"] == "no_record"
    assert trace(topology, plain, *at(24))[1]["state"] == "beyond_end"

    assert [trace(topology, large, *at(offset))[1]["state"] for offset in (2, 3, 4)] == [
        "at_target",
        "refused",
        "blocked",
    ]
    code, found = trace(topology, large, *at(3))
    assert code == 1 and f"--topic {large} --partition 0` shows the choices" in found["sentence"]
    code, found = trace(topology, later, *at(4))
    assert (code, found["state"], found["target_offset"]) == (1, "paused", None)
    totals = answer(topology, "plan")[1]["totals"]
    assert totals["records_staged"] == 5 + 4, "5 paused, 4 from the refused one on"
    assert totals["offsets_at_source"] == 0, "the marker is covered, wherever it lies"
    assert totals["bytes_staged"] > 20_000

    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    document["flows"][FLOW]["paused"] = False
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    assert trace(topology, later, *at(4))[1]["state"] in ("waiting", "not_running")
    with pytest.raises(TargetRefused):
        replicate_once(spark, topology)
    code, found = trace(topology, later, *at(4))
    assert (code, found["state"]) == (0, "at_target")
    assert "4 staged records of its partition in front of it" in str(found["held_up"])

    code, found = answer(
        topology, "sql", "SELECT offset FROM records ORDER BY offset", "--limit", "3"
    )
    assert (code, found["truncated"], found["limit"], len(found["rows"])) == (0, True, 3, 3)
    for limit in ("0", "1000"):
        assert (
            len(answer(topology, "sql", "SELECT 1 AS one FROM records", "--limit", limit)[1])
            == ends - 1
        )
    code, found = answer(topology, "status")
    assert code == 1 and f"target_refused of {large}-0" in found["attention"][0]
    assert found["flows"][0]["standing"].startswith("waiting for you")
