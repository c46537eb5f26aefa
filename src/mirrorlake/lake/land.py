"""Land: the source topics of one cluster into `records`, one streaming query however many flows read from it.

The Delta sink makes each batch exactly once for one checkpoint. A lost checkpoint is rebuilt from the table: a batch is
committed whole, so the offset after the newest one of a partition is where landing goes on.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from mirrorlake.core.topology import Landing
from mirrorlake.lake.lake import Lake

logger = logging.getLogger(__name__)

#: A cluster's own settings override these.
SOURCE_SETTINGS: Mapping[str, str] = {
    # Measured: 1.6 times the rate of the client's defaults on 1 KB records (platform.md).
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.receive.buffer.bytes": str(1 << 20),
    "kafka.max.poll.records": "5000",
    # How long tasks wait for a source that may be gone, while they hold cores that others need: Kafka's defaults are
    # 60 s, Spark's is 120 s.
    "kafka.default.api.timeout.ms": "20000",
    "kafka.request.timeout.ms": "15000",
    "kafkaConsumer.pollTimeoutMs": "20000",
}
#: Spark reads a source partition's part of a batch in pieces of so many records. `coalesce` gives each file as many
#: pieces as the next one, and so about as many records: by whole partitions, the heartbeats' few records would weigh as
#: much as any, and one task would have twice the work of the other. Pieces cost landing up to a tenth of its CPU.
PIECE_RECORDS = 100_000

Ends = Mapping[tuple[str, int], int]
_EARLIEST = -2


@dataclass(frozen=True)
class LandingPlan:
    """What one landing query reads.

    `pattern` is a Java regex of topics, and `partitions` counts those of each topic that matches it now. `starts` is
    where partitions go on (others begin at their start); it counts only where there is no checkpoint. `generations`
    are the lives of topics that were made again.
    """

    alias: str
    pattern: str
    partitions: Mapping[str, int]
    starts: Ends
    generations: Mapping[str, int] = field(default_factory=dict)


def checkpoint_of(lake: Lake, plan: LandingPlan) -> Path:
    """The checkpoint for what is read now; one of something else cannot be gone on with."""
    told = json.dumps([plan.pattern, sorted(plan.generations.items())])
    return _root(lake, plan.alias) / hashlib.sha256(told.encode()).hexdigest()[:12]


def _root(lake: Lake, alias: str) -> Path:
    return lake.checkpoints / "land" / alias


def forget_checkpoints(lake: Lake, alias: str, but: Path | None = None) -> None:
    """Remove a cluster's checkpoints before anything is read: were one used again later, it would not know what was
    landed meanwhile."""
    root = _root(lake, alias)
    if root.is_dir():
        for other in root.iterdir():
            if other != but:
                shutil.rmtree(other)


def continues(lake: Lake, plan: LandingPlan) -> bool:
    """Whether the checkpoint for this plan, if there is one, would go on where the plan does.

    Spark refuses one that knows a topic which is gone, and reads one to the letter that lies below a range whose loss
    was accepted.
    """
    ends = _ends(checkpoint_of(lake, plan))
    return all(key[0] in plan.partitions and plan.starts.get(key, end) <= end for key, end in ends.items())


def checkpoint_ends(lake: Lake, alias: str) -> dict[tuple[str, int], int]:
    """How far a cluster was landed by the newest batch that its checkpoint, whichever it is, has committed."""
    root = _root(lake, alias)
    found: dict[tuple[str, int], int] = {}
    for checkpoint in root.iterdir() if root.is_dir() else ():
        found.update(_ends(checkpoint))
    return found


def _ends(checkpoint: Path) -> dict[tuple[str, int], int]:
    newest = max((int(path.name) for path in checkpoint.glob("commits/*") if path.name.isdigit()), default=None)
    if newest is None:
        return {}
    lines = (checkpoint / "offsets" / str(newest)).read_text(encoding="utf-8").splitlines()
    # A version, the batch's own settings, and one line a source (Spark's OffsetSeqLog).
    return parse_ends(json.loads(lines[2]))


def parse_ends(offsets: Mapping[str, Mapping[str, int]]) -> dict[tuple[str, int], int]:
    """Offsets of Spark's Kafka source as (topic, partition): next offset."""
    return {(topic, int(partition)): end for topic, parts in offsets.items() for partition, end in parts.items()}


def start_landing(
    lake: Lake, options: Mapping[str, str], plan: LandingPlan, landing: Landing, once: bool
) -> StreamingQuery:
    """Start landing a cluster. With `once` it ends at the end offsets seen at the start; else when it is stopped."""
    # Makes the session this thread's active one, which Delta's sink asks for by name; any frame does.
    lake.spark.createDataFrame([], "nothing int")
    checkpoint = checkpoint_of(lake, plan)
    forget_checkpoints(lake, plan.alias, but=checkpoint)
    source = (
        lake.spark.readStream.format("kafka")
        .options(**SOURCE_SETTINGS)
        .options(**options)
        .option("subscribePattern", plan.pattern)
        .option("startingOffsets", _starting_offsets(plan))
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_committed")
        .option("failOnDataLoss", "true")
        .option("maxOffsetsPerTrigger", str(landing.max_records_per_batch))
        .option("maxRecordsPerPartition", str(PIECE_RECORDS))
        .option("groupIdPrefix", f"mirrorlake-land-{plan.alias}")
        .load()
    )
    writer = (
        # coalesce bounds the files, and keeps neighbours together: the pieces of a source partition lie in one file, or
        # go on at the start of the next.
        _as_records(source, plan)
        .coalesce(landing.files_per_batch)
        .writeStream.format("delta")
        .outputMode("append")
        .queryName(f"land {plan.alias} {lake.lake_id}")
        .option("checkpointLocation", str(checkpoint))
    )
    if once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{landing.trigger_ms} milliseconds")
    return writer.toTable(lake.name("records"))


def _as_records(source: DataFrame, plan: LandingPlan) -> DataFrame:
    """The columns of `records`. The batch's own time, which a replay keeps, is both landed_at and batch_id."""
    return source.withColumn("landed_at", _batch_time()).select(
        F.lit(plan.alias).alias("source_cluster"),
        "topic",
        "partition",
        "offset",
        "timestamp",
        F.col("timestampType").alias("timestamp_type"),
        "key",
        "value",
        "headers",
        "landed_at",
        F.unix_millis("landed_at").alias("batch_id"),
        _generation(plan.generations).alias("generation"),
    )


def _batch_time() -> Column:
    """The time of the batch, as no literal in Spark's generated code.

    There it would make every batch's code another: compiled twice over by the driver, then by the JVM, which costs a
    backlog of small records a tenth of the CPU. Spark generates no code for what stands inside `aggregate`.
    """
    return F.aggregate(F.array(), F.current_timestamp(), lambda time, _: time)


def _generation(generations: Mapping[str, int]) -> Column:
    column = F.lit(0)
    for topic, generation in generations.items():
        column = F.when(F.col("topic") == topic, F.lit(generation)).otherwise(column)
    return column


def _starting_offsets(plan: LandingPlan) -> str:
    """`earliest` for a cluster that is new; else each partition's own, since Spark wants all of them or none."""
    if not plan.starts or not plan.partitions:
        return "earliest"
    wanted = {
        topic: {str(partition): plan.starts.get((topic, partition), _EARLIEST) for partition in range(count)}
        for topic, count in plan.partitions.items()
    }
    return json.dumps(wanted)
