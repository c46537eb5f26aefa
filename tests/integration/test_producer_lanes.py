"""A shard's task does the same whichever producer it has: what arrives, what is mapped, what is
refused."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.delivery import Delivery
from mirrorlake.produce.provenance import HEADER, Provenance
from mirrorlake.produce.task import ShardJob
from mirrorlake.produce.writer import ShardWriter
from tests.support.clusters import ClusterPair
from tests.support.kafka import Headers, NewRecord, create_topic, read_topic, write
from tests.support.shards import HEADERS, job_for, produced

Staged = tuple[bytes | None, bytes | None, Headers]
VALUES: list[Staged] = [
    (None, b"plain", None),
    (b"", b"", []),
    (b"k", None, [("h", None)]),
    (b"k", b"v" * 3_000, [("h", b""), ("h", b"2"), ("ü", b"3"), (HEADER, b"elsewhere")]),
]


def staged(
    plan: PartitionPlan, records: Sequence[Staged], *at_a_time: int
) -> Iterator[tuple[PartitionPlan, Any]]:
    """Rows of a source whose every other offset is a marker, cut out of one batch."""
    count = len(records)
    now = pa.array(np.arange(count) * 1_000 + time.time_ns() // 1_000, pa.timestamp("us"))
    columns = {
        "offset": pa.array(np.arange(plan.first, plan.first + 2 * count, 2)),
        "timestamp": now,
        "landed_at": now,
        "key": pa.array([key for key, _, _ in records], pa.binary()),
        "value": pa.array([value for _, value, _ in records], pa.binary()),
        "headers": pa.array(
            [row and [{"key": key, "value": value} for key, value in row] for _, _, row in records],
            HEADERS,
        ),
    }
    rows, first = pa.record_batch(columns), 0
    for size in at_a_time or (count,):
        yield plan, rows.slice(first, size)
        first += size


def mapped(result: pa.RecordBatch) -> dict[int, int]:
    """Source offset to target offset, as a task's report says."""
    return {
        segment["source_first"] + number * segment["stride"]: segment["target_first"] + number
        for runs in result.column("runs").to_pylist()
        for run in runs
        for segment in run["segments"]
        for number in range(segment["record_count"])
    }


def shard(clusters: ClusterPair, topic: str, count: int, **settings: str | int) -> ShardJob:
    return job_for(clusters.west, topic, 2 * count, **settings)


@pytest.mark.parametrize(
    "provenance", [None, Provenance("here", "there"), Provenance("here", "there", strip=True)]
)
@pytest.mark.parametrize("transactional", [True, False])
def test_what_is_staged_arrives(
    clusters: ClusterPair,
    topic_name: str,
    lane: str,
    provenance: Provenance | None,
    transactional: bool,
) -> None:
    create_topic(clusters.west, topic_name)
    records = VALUES * 5
    job = shard(clusters, topic_name, len(records))
    job = replace(
        job, target=replace(job.target, provenance=provenance, transactional=transactional)
    )
    result = produced(job, staged(job.plan.partitions[0], records, 3, 1, 16))
    read = read_topic(clusters.west, topic_name)[0]
    assert [(record.key, record.value) for record in read] == [
        (key, value) for key, value, _ in records
    ]
    for record, (_, _, headers) in zip(read, records, strict=True):
        kept = [
            one
            for one in headers or []
            if provenance is None or not provenance.strip or one[0] != HEADER
        ]
        added = [(HEADER, b"here")] if provenance is not None and not provenance.strip else []
        assert record.headers == ([*kept, *added] or None)
    assert mapped(result) == dict(
        zip(range(0, 2 * len(records), 2), [record.offset for record in read], strict=True)
    )


def test_somebody_else_writes_between(
    clusters: ClusterPair, topic_name: str, lane: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a chunk too: its rows are sent in small batches."""
    create_topic(clusters.west, topic_name)
    wait, count = ShardWriter._wait, 200
    job = shard(clusters, topic_name, count, batch_num_messages=20, max_in_flight=1, linger_ms=0)

    def write_between(self: ShardWriter, results: Sequence[Delivery], begun: float) -> None:
        write(clusters.west, topic_name, [NewRecord(b"foreign")] * 3, linger_ms=0)
        wait(self, results, begun)

    monkeypatch.setattr(ShardWriter, "_wait", write_between)
    values: list[Staged] = [(None, b"%d" % number + b"x" * 5_000, None) for number in range(count)]
    result = produced(job, staged(job.plan.partitions[0], values, 7, 150, 43))
    read = [
        record for record in read_topic(clusters.west, topic_name)[0] if record.value != b"foreign"
    ]
    assert [record.value for record in read] == [value for _, value, _ in values]
    assert mapped(result) == dict(
        zip(range(0, 2 * count, 2), [record.offset for record in read], strict=True)
    )


def test_a_refused_record_stops_its_partition_at_its_offset(
    clusters: ClusterPair, topic_name: str, lane: str
) -> None:
    create_topic(clusters.west, topic_name, max_message_bytes="5000")
    values: list[Staged] = [(None, b"%d" % number, None) for number in range(40)]
    values[23] = (None, os.urandom(20_000), None)
    job = shard(clusters, topic_name, len(values))
    result = produced(job, staged(job.plan.partitions[0], values, 10, 30)).to_pylist()[0]
    assert (result["refused_first"], result["refused_last"], result["record_count"]) == (46, 46, 23)
    assert "too large" in result["refused_reason"] and result["reached"] == 45
    assert [record.value for record in read_topic(clusters.west, topic_name)[0]] == [
        value for _, value, _ in values[:23]
    ]


def test_what_the_client_itself_refuses(clusters: ClusterPair, topic_name: str, lane: str) -> None:
    create_topic(clusters.west, topic_name)
    values: list[Staged] = [
        (None, b"a", None),
        (None, os.urandom(20_000), None),
        (None, b"b", None),
    ]
    job = shard(clusters, topic_name, len(values), message_max_bytes=10_000)
    result = produced(job, staged(job.plan.partitions[0], values)).to_pylist()[0]
    assert (result["refused_first"], result["refused_last"], result["record_count"]) == (2, 2, 1)


def test_a_queue_that_is_full(clusters: ClusterPair, topic_name: str, lane: str) -> None:
    create_topic(clusters.west, topic_name)
    values: list[Staged] = [(None, b"%d" % number, None) for number in range(500)]
    job = shard(clusters, topic_name, len(values), queue_buffering_max_messages=20)
    produced(job, staged(job.plan.partitions[0], values))
    assert [record.value for record in read_topic(clusters.west, topic_name)[0]] == [
        value for _, value, _ in values
    ]


def test_one_lane_goes_on_where_the_other_one_ended(
    clusters: ClusterPair, topic_name: str, lane: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Positions and what they say of the map are the same: the second attempt writes nothing, and
    rebuilds all."""
    create_topic(clusters.west, topic_name)
    job = shard(clusters, topic_name, len(VALUES))
    first = produced(job, staged(job.plan.partitions[0], VALUES))
    monkeypatch.setenv("MIRRORLAKE_NATIVE", "off" if lane == "native" else "")
    second = produced(job, staged(job.plan.partitions[0], VALUES))
    assert mapped(first) == mapped(second) and len(read_topic(clusters.west, topic_name)[0]) == len(
        VALUES
    )
