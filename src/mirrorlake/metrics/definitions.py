"""The metrics that a run publishes (docs/metrics.md): names, labels and descriptions. Pure.

Names are `mirrorlake_…` in base units; counters end in `_total` and start at 0 with the process.
"""

from dataclasses import dataclass
from typing import Literal

PARTITION = ("flow", "topic", "partition")


@dataclass(frozen=True)
class Metric:
    """A metric: its full name, the labels of its series, and its description."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    text: str


METRICS: tuple[Metric, ...] = (
    Metric(
        "mirrorlake_build_info",
        "gauge",
        ("version", "python", "librdkafka"),
        "1; which version runs.",
    ),
    Metric(
        "mirrorlake_process_memory_bytes",
        "gauge",
        ("process",),
        "Resident memory: of this process (driver), of Spark's Java, of its Python workers.",
    ),
    Metric(
        "mirrorlake_flow_running",
        "gauge",
        ("flow",),
        "1 where this process runs the flow, 0 where it stands by for it; none of one that is "
        "paused as a whole.",
    ),
    Metric(
        "mirrorlake_worker_state",
        "gauge",
        ("worker", "state"),
        "1 for the state that a thread of the run is in: working, failing (its last turn failed "
        "and is tried again), ended, stopped (it ended with an error). `run` works from when all "
        "that is to run has begun, which may be nothing.",
    ),
    Metric(
        "mirrorlake_worker_failures_total",
        "counter",
        ("worker",),
        "Turns of a thread that failed.",
    ),
    Metric(
        "mirrorlake_open_incidents",
        "gauge",
        ("flow", "kind"),
        "Open incidents, as far as this process knows; one series without a kind where none is.",
    ),
    Metric(
        "mirrorlake_objective_seconds",
        "gauge",
        ("flow", "objective"),
        "The objectives of the topology file: lag, latency_p99, heartbeat (where the flow brings "
        "heartbeats), stuck, transaction.",
    ),
    Metric(
        "mirrorlake_lake_commit_seconds",
        "histogram",
        ("table",),
        "How long commits of this process to a table of the lake took, those of files that are "
        "replaced not included.",
    ),
    Metric(
        "mirrorlake_landed_records_total",
        "counter",
        ("cluster", "topic", "partition"),
        "Records of a source cluster that this process has committed to a lake at a path or URL.",
    ),
    Metric(
        "mirrorlake_landed_bytes_total",
        "counter",
        ("cluster", "topic", "partition"),
        "Bytes of those in memory, headers and coordinates included.",
    ),
    Metric(
        "mirrorlake_produced_records_total",
        "counter",
        PARTITION,
        "Records whose transaction is committed at the target.",
    ),
    Metric(
        "mirrorlake_produced_bytes_total",
        "counter",
        PARTITION,
        "Bytes of keys and values of those.",
    ),
    Metric(
        "mirrorlake_landing_latency_seconds",
        "histogram",
        ("flow", "topic"),
        "From a produced record's timestamp to its row in the lake.",
    ),
    Metric(
        "mirrorlake_replication_latency_seconds",
        "histogram",
        ("flow", "topic"),
        "From a record's timestamp to the commit of its transaction at the target.",
    ),
    Metric(
        "mirrorlake_batches_total",
        "counter",
        ("flow", "way"),
        "Batches produced, by way: short (by the driver itself) or long (by Spark's tasks).",
    ),
    Metric(
        "mirrorlake_transactions_total",
        "counter",
        ("flow",),
        "Transactions that were committed at the target.",
    ),
    Metric(
        "mirrorlake_transaction_aborts_total",
        "counter",
        ("flow",),
        "Transactions that the flow's own producers aborted, mostly since a record was refused.",
    ),
    Metric(
        "mirrorlake_heartbeat_timestamp_seconds",
        "gauge",
        ("flow",),
        "When the newest heartbeat was written that has come through to the target.",
    ),
    Metric(
        "mirrorlake_lag_records",
        "gauge",
        PARTITION,
        "Offsets at the source that are not produced yet, by the newest sample.",
    ),
    Metric(
        "mirrorlake_lag_seconds",
        "gauge",
        PARTITION,
        "How long the first record that is not produced yet has been at the source; it grows on "
        "where samples fail to come.",
    ),
    Metric(
        "mirrorlake_stalled_seconds",
        "gauge",
        PARTITION,
        "How long a partition with records that wait has not moved, over restarts too; 0 where "
        "none wait.",
    ),
    Metric(
        "mirrorlake_open_transaction_timestamp_seconds",
        "gauge",
        PARTITION,
        "Since when a transaction is open at the source, in front of what is to be mirrored.",
    ),
    Metric(
        "mirrorlake_group_lag_records",
        "gauge",
        ("flow", "side", "group", "topic", "partition"),
        "How far a consumer group is behind the end, by the newest checkpoint: at the side source, "
        "and at the side target as long as it has no members there.",
    ),
    Metric("mirrorlake_paused", "gauge", ("flow", "topic"), "1 for a topic that is paused."),
    Metric(
        "mirrorlake_sample_timestamp_seconds",
        "gauge",
        ("flow",),
        "When the flow's partitions were sampled last.",
    ),
)
