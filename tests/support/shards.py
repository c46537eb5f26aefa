"""A shard of one partition as a task gets it, without a stage: its job, and rows as a file's reader
gives them."""

import os
import time
import uuid
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from mirrorlake.produce.batch import NOTHING_MAPPED, PartitionPlan, ShardPlan
from mirrorlake.produce.counted import PlannedRows
from mirrorlake.produce.spec import Target
from mirrorlake.produce.task import ShardJob, forget_writers, produce_shard

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def job_for(bootstrap: str, topic: str, rows: int, **producer: str | int) -> ShardJob:
    """A shard of one partition, and the client that writes it."""
    name = f"slow-{uuid.uuid4().hex[:8]}"
    plan = PartitionPlan(topic, 0, topic, floor=NOTHING_MAPPED, first=0, last=rows - 1)
    client = {"bootstrap.servers": bootstrap, "client.id": name}
    settings = {key.replace("_", "."): value for key, value in producer.items()}
    target = Target(client, settings, group_id=name, transactional_id=name, transactional=True)
    return ShardJob(ShardPlan(0, (plan,), (), rows), target, None)


def produced(job: ShardJob, rows: PlannedRows) -> pa.RecordBatch:
    """What a task reports. Its producer, which a worker keeps for the next batch, ends with it."""
    try:
        return produce_shard(job, rows)
    finally:
        forget_writers([job.target.transactional_id])


def chunks(
    plan: PartitionPlan, rows: int, size: int, at_a_time: int
) -> Iterator[tuple[PartitionPlan, pa.RecordBatch]]:
    """Staged rows of `size` random bytes each, as a file's reader gives them."""
    for first in range(0, rows, at_a_time):
        offsets = np.arange(first, min(first + at_a_time, rows))
        # retention takes old ones away
        times = pa.array(offsets + time.time_ns() // 1_000, pa.timestamp("us"))
        columns = {
            "offset": pa.array(offsets),
            "timestamp": times,
            "landed_at": times,
            "key": pa.nulls(len(offsets), pa.binary()),
            "value": pa.array([os.urandom(size) for _ in offsets], pa.binary()),
            "headers": pa.nulls(len(offsets), HEADERS),
        }
        yield plan, pa.record_batch(columns)
