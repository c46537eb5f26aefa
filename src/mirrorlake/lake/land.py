"""Land: the source topics of one cluster into `records`, one streaming query however many flows read from it.

The Delta sink makes each batch exactly once for one checkpoint. A lost checkpoint is rebuilt from the table: a batch is
committed whole, so the offset after the newest one of a partition is where landing goes on.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from mirrorlake.core.topology import Landing
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.lake.lake import Lake

logger = logging.getLogger(__name__)

#: Measured: 1.6 times the rate of the client's defaults on 1 KB records (platform.md).
FETCH_SETTINGS: Mapping[str, str] = {
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.receive.buffer.bytes": str(1 << 20),
    "kafka.max.poll.records": "5000",
}


def start_landing(
    lake: Lake,
    admin: ClusterAdmin,
    options: Mapping[str, str],
    pattern: str,
    landing: Landing,
    once: bool,
    selected: frozenset[str],
) -> StreamingQuery:
    """Start landing a cluster. `pattern` is a Java regex of topics, `selected` the topics that match it now.

    With `once` it ends at the end offsets seen at the start; else it runs until it is stopped.
    """
    checkpoint = _checkpoint(lake, admin.alias, pattern)
    source = (
        lake.spark.readStream.format("kafka")
        .options(**FETCH_SETTINGS)
        .options(**options)
        .option("subscribePattern", pattern)
        .option("startingOffsets", _starting_offsets(lake, admin, checkpoint, selected))
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_committed")
        .option("failOnDataLoss", "true")
        .option("maxOffsetsPerTrigger", str(landing.max_records_per_batch))
        .option("groupIdPrefix", f"mirrorlake-land-{admin.alias}")
        .load()
    )
    writer = (
        # coalesce keeps a source partition's rows of one batch within one file, in order, and bounds the files.
        _as_records(source, admin.alias)
        .coalesce(landing.files_per_batch)
        .writeStream.format("delta")
        .outputMode("append")
        .queryName(f"land {admin.alias} {lake.lake_id}")
        .option("checkpointLocation", str(checkpoint))
    )
    if once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{landing.trigger_ms} milliseconds")
    return writer.toTable(lake.name("records"))


def _as_records(source: DataFrame, alias: str) -> DataFrame:
    """The columns of `records`. The batch's own time, which a replay keeps, is both landed_at and batch_id."""
    return source.select(
        F.lit(alias).alias("source_cluster"),
        "topic",
        "partition",
        "offset",
        "timestamp",
        F.col("timestampType").alias("timestamp_type"),
        "key",
        "value",
        "headers",
        F.current_timestamp().alias("landed_at"),
        F.unix_millis(F.current_timestamp()).alias("batch_id"),
    )


def _checkpoint(lake: Lake, alias: str, pattern: str) -> Path:
    """The checkpoint of this cluster for this pattern. Those of other patterns are removed, before anything is read:
    were one used again later, it would not know what was landed meanwhile."""
    root = lake.checkpoints / "land" / alias
    current = root / hashlib.sha256(pattern.encode()).hexdigest()[:12]
    if root.is_dir():
        for other in root.iterdir():
            if other != current:
                shutil.rmtree(other)
    return current


def _starting_offsets(lake: Lake, admin: ClusterAdmin, checkpoint: Path, selected: frozenset[str]) -> str:
    """`earliest` for a new cluster; behind the newest staged offsets where the checkpoint is lost.

    Spark ignores it when the checkpoint is there.
    """
    offsets = checkpoint / "offsets"
    if offsets.is_dir() and any(entry.name.isdigit() for entry in offsets.iterdir()):
        return "earliest"
    staged = {
        (row["topic"], row["partition"]): row["next_offset"]
        for row in lake.query("staged_ends", source_cluster=admin.alias).collect()
    }
    if not staged:
        return "earliest"
    logger.info("no checkpoint for cluster %s: going on behind the %d partitions staged", admin.alias, len(staged))
    earliest = -2
    wanted: dict[str, dict[str, int]] = {}
    for name, topic in admin.topics().items():
        if name in selected:
            wanted[name] = {
                str(partition): staged.get((name, partition), earliest) for partition in range(topic.partitions)
            }
    return json.dumps(wanted) if wanted else "earliest"
