"""Killed with -9 on the way of positions, and started again: nothing moves backwards, and the end
is the same."""

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from mirrorlake.groups.sync_plan import BEHIND
from mirrorlake.lake.lake import Lake
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, write
from tests.support.lake_rows import now_of
from tests.support.replication import (
    FLOW,
    finish,
    lake_of,
    replicate_once,
    start_command,
    write_topology,
)

pytestmark = pytest.mark.slow

RECORDS = 1_000


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    """Commit a position as a group without members does."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    )
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def positions(bootstrap: str, groups: Sequence[str], topic: str) -> list[int]:
    """Where groups stand on partition 0 of a topic; -1 is nowhere."""
    found = []
    for group in groups:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        (place,) = consumer.committed([TopicPartition(topic, 0)], 20)
        found.append(max(-1, place.offset))
        consumer.close()
    return found


def killed(topology: Path, point: str, *arguments: str) -> None:
    """Run a command that kills itself at a point."""
    once = topology.with_name(f"{point}-{uuid.uuid4().hex[:6]}")
    environment = {"MIRRORLAKE_CRASH": point, "MIRRORLAKE_CRASH_ONCE": str(once)}
    code = finish(start_command(topology, *arguments, **environment))
    log = topology.with_name("run.log").read_text(encoding="utf-8")
    assert once.exists(), f"nobody came to {point}\n{log}"
    assert code == -9, f"{point}\n{log}"


def newest(lake: Lake, *groups: str) -> dict[str, Any]:
    """The newest checkpoints of groups."""
    rows = now_of(lake).rows(f"SELECT * FROM group_positions WHERE flow = '{FLOW}'")
    return {row["group_id"]: row for row in rows if row["group_id"] in groups}


def test_between_checkpoint_and_sync(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    """Three replicators die there, one after the other; a fourth does not. A group that its owner
    has moved on at the target, and one that was rewound at the source, stay where they are."""
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(RECORDS))
    walking, ahead, rewound = (f"{topic_name}-{what}" for what in ("walking", "ahead", "rewound"))
    groups, mirror = [walking, ahead, rewound], f"east.{topic_name}"
    settings = {
        "topics": [topic_name],
        "groups": [f"{topic_name}-.*"],
        "emit_checkpoints_enabled": True,
    }
    topology = write_topology(tmp_path, clusters.east, clusters.west, settings)
    seen = [[-1, -1, -1]]
    for at_source in ([100, 100, 300], [200, 150, 50], [250, 160, 60]):
        for group, offset in zip(groups, at_source, strict=True):
            commit(clusters.east, group, topic_name, offset)
        killed(topology, "checkpointed", "run", "--once")
        rows = newest(lake_of(spark, topology), *groups)
        assert [rows[group]["source_position"] for group in groups] == at_source, (
            "they were written"
        )
        seen.append(positions(clusters.west, groups, mirror))
        if len(seen) == 2:
            # as a run that was not killed would have left it, and then its owner moved one on
            assert seen[-1] == [-1, -1, -1], "nothing was moved yet"
            replicate_once(spark, topology)
            seen.append(positions(clusters.west, groups, mirror))
            assert seen[-1] == at_source
            commit(clusters.west, ahead, mirror, 700)
    lake = replicate_once(spark, topology).lake
    seen.append(positions(clusters.west, groups, mirror))
    for earlier, later in zip(seen, seen[1:], strict=False):
        assert all(one <= other for one, other in zip(earlier, later, strict=True)), seen
    assert seen[-1] == [250, 700, 300]
    rows = newest(lake, *groups)
    assert [(rows[group]["synced"], rows[group]["reason"]) for group in groups] == [
        (True, None),
        (False, BEHIND),
        (False, BEHIND),
    ]


def test_half_way_through_a_failover(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    """Killed behind the first group, and behind the second; the third run ends as one that nobody
    killed does."""
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(RECORDS))
    chosen = {
        word: [f"{topic_name}-{word}{number}" for number in range(3)]
        for word in ("killed", "whole")
    }
    for groups in chosen.values():
        for number, group in enumerate(groups):
            commit(clusters.east, group, topic_name, 500 + number)
    settings = {"topics": [topic_name], "groups": [f"{topic_name}-.*"]}
    topology = write_topology(tmp_path, clusters.east, clusters.west, settings)
    lake = replicate_once(spark, topology).lake
    mirror = f"east.{topic_name}"

    def failover(word: str) -> list[str]:
        return [
            "failover",
            "--flow",
            FLOW,
            "--no-drain",
            *(f"--group={group}" for group in chosen[word]),
        ]

    for wanted in ([500, -1, -1], [500, 501, -1]):
        killed(topology, "group-moved", *failover("killed"))
        assert positions(clusters.west, chosen["killed"], mirror) == wanted
    for word, done in (("killed", ["there", "there", "moved"]), ("whole", ["moved"] * 3)):
        result = CliRunner().invoke(app, ["-c", str(topology), *failover(word), "--json"])
        document = json.loads(result.stdout)
        assert (
            result.exit_code,
            document["complete"],
            [row["done"] for row in document["groups"]],
        ) == (0, True, done)
    ends = {}
    for word, groups in chosen.items():
        rows = newest(lake, *groups)
        kept = (
            "source_position",
            "target_topic",
            "target_position",
            "metadata",
            "synced",
            "reason",
        )
        at_target = positions(clusters.west, groups, mirror)
        changes = now_of(lake).rows("SELECT * FROM changes WHERE kind = 'group' ORDER BY resource")
        told = [
            (row["after"], row["outcome"])
            for row in changes
            if row["resource"].startswith(groups[0][:-1])
        ]
        ends[word] = (at_target, [[rows[group][name] for name in kept] for group in groups], told)
    assert ends["killed"] == ends["whole"]
