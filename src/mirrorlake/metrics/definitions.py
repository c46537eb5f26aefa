"""The metrics that a run publishes (docs/metrics.md): names, labels and descriptions. Pure.

Names are `mirrorlake_…` in base units; counters end in `_total` and start at 0 with the process.
"""

import re
from dataclasses import dataclass
from typing import Literal, cast

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True)
class Metric:
    """A metric: its full name, the labels of its series, and its description."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    text: str


#: Each metric's kind, name and labels, and below them its description.
_TABLE = """
gauge mirrorlake_build_info version python librdkafka
    1; which version runs.
gauge mirrorlake_process_memory_bytes process
    Resident memory: of this process (driver), of Spark's Java, of its Python workers.
gauge mirrorlake_flow_running flow
    1 where this process runs the flow, 0 where it stands by for it; none of one that is paused
    as a whole.
gauge mirrorlake_worker_state worker state
    1 for the state that a thread of the run is in: working, failing (its last turn failed and
    is tried again), ended, stopped (it ended with an error). `run` works from when all that is
    to run has begun, which may be nothing.
counter mirrorlake_worker_failures_total worker
    Turns of a thread that failed.
gauge mirrorlake_open_incidents flow kind
    Open incidents, as far as this process knows; one series without a kind where none is.
gauge mirrorlake_objective_seconds flow objective
    The objectives of the topology file: lag, latency_p99, heartbeat (where the flow brings
    heartbeats), stuck, transaction.
histogram mirrorlake_lake_commit_seconds table
    How long commits of this process to a table of the lake took, those of files that are
    replaced not included.
counter mirrorlake_landed_records_total cluster topic partition
    Records of a source cluster that this process has committed to a lake at a path or URL.
counter mirrorlake_landed_bytes_total cluster topic partition
    Bytes of those in memory, headers and coordinates included.
counter mirrorlake_produced_records_total flow topic partition
    Records whose transaction is committed at the target.
counter mirrorlake_produced_bytes_total flow topic partition
    Bytes of keys and values of those.
histogram mirrorlake_landing_latency_seconds flow topic
    From a produced record's timestamp to its row in the lake.
histogram mirrorlake_replication_latency_seconds flow topic
    From a record's timestamp to the commit of its transaction at the target.
counter mirrorlake_batches_total flow way
    Batches produced, by way: short (by the driver itself) or long (by Spark's tasks).
counter mirrorlake_transactions_total flow
    Transactions that were committed at the target.
counter mirrorlake_transaction_aborts_total flow
    Transactions that the flow's own producers aborted, mostly since a record was refused.
gauge mirrorlake_heartbeat_timestamp_seconds flow
    When the newest heartbeat was written that has come through to the target.
gauge mirrorlake_lag_records flow topic partition
    Offsets at the source that are not produced yet, by the newest sample.
gauge mirrorlake_lag_seconds flow topic partition
    How long the first record that is not produced yet has been at the source; it grows on where
    samples fail to come.
gauge mirrorlake_stalled_seconds flow topic partition
    How long a partition with records that wait has not moved, over restarts too; 0 where none
    wait.
gauge mirrorlake_open_transaction_timestamp_seconds flow topic partition
    Since when a transaction is open at the source, in front of what is to be mirrored.
gauge mirrorlake_group_lag_records flow side group topic partition
    How far a consumer group is behind the end, by the newest checkpoint: at the side source,
    and at the side target as long as it has no members there.
gauge mirrorlake_paused flow topic
    1 for a topic that is paused.
gauge mirrorlake_sample_timestamp_seconds flow
    When the flow's partitions were sampled last.
"""
METRICS = tuple(
    Metric(name, cast(Kind, kind), tuple(labels.split()), " ".join(text.split()))
    for kind, name, labels, text in re.findall(
        r"^(\w+) (\w+) (.*)\n((?: {4}.*\n)+)", _TABLE, re.MULTILINE
    )
)
