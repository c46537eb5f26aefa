"""A target that takes less than it is given (a quota, a long line): all arrives, at the rate that
it takes."""

import os
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from pyspark.sql import SparkSession

from mirrorlake.produce import patience, shard_writing
from mirrorlake.produce.task import produce_shard
from tests.support.clusters import ClusterPair
from tests.support.frozen import frozen
from tests.support.kafka import NewRecord, create_topic, read_topic, record_count, write
from tests.support.quotas import produce_quota
from tests.support.replication import assert_same, replicate_once, write_topology
from tests.support.shards import chunks, job_for
from tests.support.waiting import until

MIB = 1 << 20


@pytest.mark.quiet
def test_it_is_waited_for_as_long_as_it_takes_records(
    clusters: ClusterPair, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """18 MiB at 1 MiB/s, of which a quota lets the first 10 through at once. No call waits for more
    than 3 s, and the target ends transactions after 12 s: what is too much for one is begun again
    with less."""
    monkeypatch.setattr(patience, "CALL_SECONDS", 3.0)
    monkeypatch.setattr(
        shard_writing, "TASK_SECONDS", 300.0
    )  # on a busy machine too it is one task's work
    rows, size = 18 * 64, 16 << 10
    create_topic(clusters.west, topic_name)
    job = job_for(clusters.west, topic_name, rows, transaction_timeout_ms=12_000)
    plan = job.plan.partitions[0]
    with produce_quota(clusters.west, job.target.group_id, MIB):
        result = produce_shard(job, chunks(plan, rows, size, 128))
    assert result.column("record_count").to_pylist() == [rows] and result.column(
        "complete"
    ).to_pylist() == [True]
    # A commit is told before the coordinator has written the markers.
    until(lambda: len(read_topic(clusters.west, topic_name)[0]) == rows, "all is committed")
    committed = read_topic(clusters.west, topic_name)[0]
    assert len({record.value for record in committed}) == rows
    segments = [segment for run in result.column("runs")[0].as_py() for segment in run["segments"]]
    mapped = [
        item["target_first"] + index for item in segments for index in range(item["record_count"])
    ]
    assert mapped == [record.offset for record in committed]
    written = len(read_topic(clusters.west, topic_name, "read_uncommitted")[0])
    assert written < 3 * rows, f"{written} records were sent for {rows}"


@pytest.mark.quiet
def test_one_that_is_gone_is_noticed(
    clusters: ClusterPair, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No acknowledgement at all is no slowness, however long a transaction may be open."""
    if clusters.embedded is None:
        pytest.skip("the brokers are not ours to stop")
    monkeypatch.setattr(patience, "CALL_SECONDS", 3.0)
    create_topic(clusters.west, topic_name)
    job = job_for(clusters.west, topic_name, 1_000)
    plan = job.plan.partitions[0]
    first = produce_shard(job, chunks(plan, 10, 100, 10))
    gone = replace(job, owner=first.column("worker")[0].as_py())
    with frozen(clusters.embedded["west"].pids):
        begun = time.monotonic()
        with pytest.raises(KafkaException):
            produce_shard(gone, chunks(plan, 1_000, 100, 1_000))
        assert time.monotonic() - begun < 30


@pytest.mark.quiet
def test_backlog_at_two_megabytes_a_second(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    """A whole flow, with the times that it has in earnest: a backlog of 120 MB, which the target
    takes in a minute."""
    topic = f"slow-{uuid.uuid4().hex[:8]}"
    create_topic(clusters.east, topic, 2)
    write(
        clusters.east,
        topic,
        (NewRecord(os.urandom(600), None, number % 2) for number in range(200_000)),
    )
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic]})
    text = topology.read_text(encoding="utf-8")
    topology.write_text(
        text.replace("  west:\n", f"  west:\n    producer: {{client.id: {topic}}}\n"),
        encoding="utf-8",
    )
    with produce_quota(clusters.west, topic, 2 * MIB):
        begun = time.monotonic()
        run = replicate_once(spark, topology)
        seconds = time.monotonic() - begun
    assert_same(run.lake, clusters.east, clusters.west, {topic: f"east.{topic}"}, 200_000)
    assert seconds < 120, f"{seconds:.0f} s for what the target takes in 60"
    # A quota lets ten seconds' worth through at once: each producer may begin one transaction that
    # is too large.
    written = record_count(clusters.west, f"east.{topic}", "read_uncommitted")
    assert written < 300_000, f"{written} records were sent for 200,000"
