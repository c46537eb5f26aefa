"""The metrics that a run publishes (docs/metrics.md), and their values by a process's facts. Pure.

Names are `mirrorlake_…` in base units; counters end in `_total` and start at 0 with the process. A
metric with too many series is summed over partitions, then over topics, with an empty label.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import add
from typing import Any, Literal, TypeVar, cast

from mirrorlake.metrics.facts import Facts, FlowFacts, Volume
from mirrorlake.metrics.histogram import Histogram

#: Values of a metric by tuple of label values.
Series = Mapping[Any, float | Histogram]
Value = TypeVar("Value")

STATES = ("working", "failing", "ended", "stopped")
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


@dataclass(frozen=True)
class Family:
    """A metric with its current values."""

    metric: Metric
    series: Series


def families(facts: Facts, bound: int) -> Iterator[Family]:
    """Every metric, also without a value, with at most `bound` series of partitions or topics."""
    values = {
        **_about_the_process(facts),
        **_about_records(facts, bound),
        **_about_lag(facts, bound),
    }
    for metric in METRICS:
        yield Family(metric, values[metric.name])


def bounded(
    values: Mapping[tuple[str, ...], Value], bound: int, fold: Callable[[Value, Value], Value]
) -> dict[tuple[str, ...], Value]:
    """Fold values by labels into at most `bound` series, over the last label first, then the one
    before. The first label always stays, even if that exceeds the bound."""
    series = dict(values)
    at = len(next(iter(series), ())) - 1
    while len(series) > bound and at > 0:
        merged: dict[tuple[str, ...], Value] = {}
        for labels, value in series.items():
            key = (*labels[:at], "", *labels[at + 1 :])
            merged[key] = fold(merged[key], value) if key in merged else value
        series, at = merged, at - 1
    return series


def _about_the_process(facts: Facts) -> dict[str, Series]:
    in_force = {flow.name for flow in facts.in_force}
    return {
        "mirrorlake_build_info": {tuple(facts.build.values()): 1.0} if facts.build else {},
        "mirrorlake_process_memory_bytes": {(kind,): size for kind, size in facts.memory.items()},
        "mirrorlake_flow_running": {
            **dict.fromkeys([(name,) for name in facts.stands_by], 0.0),
            **dict.fromkeys([(name,) for name in in_force], 1.0),
        },
        "mirrorlake_worker_state": {
            (worker.name, state): float(worker.state == state)
            for worker in facts.workers
            for state in STATES
        },
        "mirrorlake_worker_failures_total": {
            (worker.name,): worker.failures for worker in facts.workers
        },
        "mirrorlake_open_incidents": {
            **{(flow, ""): 0.0 for flow in in_force - {flow for flow, _ in facts.incidents}},
            **{(flow, kind): float(count) for (flow, kind), count in facts.incidents.items()},
        },
        "mirrorlake_lake_commit_seconds": {
            (table,): histogram for table, histogram in facts.commits.items()
        },
        "mirrorlake_objective_seconds": {
            (flow.name, name): seconds
            for flow in facts.in_force
            for name, seconds in flow.objectives.items()
        },
    }


def _about_records(facts: Facts, bound: int) -> dict[str, Series]:
    landed = bounded(
        {
            (cluster, topic, str(partition)): volume
            for (cluster, topic, partition), volume in facts.landed.items()
        },
        bound,
        Volume.plus,
    )
    produced = bounded(
        {
            (name, topic, str(partition)): volume
            for name, flow in facts.flows.items()
            for (topic, partition), volume in flow.produced.items()
        },
        bound,
        Volume.plus,
    )
    landing, replication = (
        bounded(
            {
                (name, topic): histogram
                for name, flow in facts.flows.items()
                for topic, histogram in getattr(flow, kind).items()
            },
            bound,
            Histogram.plus,
        )
        for kind in ("landing", "replication")
    )
    return {
        "mirrorlake_landed_records_total": {at: each.records for at, each in landed.items()},
        "mirrorlake_landed_bytes_total": {at: each.bytes for at, each in landed.items()},
        "mirrorlake_transactions_total": {
            (name,): flow.transactions for name, flow in facts.flows.items()
        },
        "mirrorlake_transaction_aborts_total": {
            (name,): flow.aborts for name, flow in facts.flows.items()
        },
        "mirrorlake_produced_records_total": {at: each.records for at, each in produced.items()},
        "mirrorlake_produced_bytes_total": {at: each.bytes for at, each in produced.items()},
        "mirrorlake_landing_latency_seconds": landing,
        "mirrorlake_replication_latency_seconds": replication,
        "mirrorlake_batches_total": {
            (name, way): float(flow.batches.get(way, 0))
            for name, flow in facts.flows.items()
            for way in ("short", "long")
        },
        "mirrorlake_heartbeat_timestamp_seconds": {
            (name,): flow.heartbeat_at
            for name, flow in facts.running.items()
            if flow.heartbeat_at is not None
        },
    }


def _about_lag(facts: Facts, bound: int) -> dict[str, Series]:
    samples = [
        ((name, topic, str(partition)), sample)
        for name, flow in facts.running.items()
        for (topic, partition), sample in flow.samples.items()
    ]

    unseen = _unseen(facts)

    def series(
        values: Iterable[tuple[tuple[str, ...], float | None]],
        fold: Callable[[float, float], float] = max,
    ) -> dict[tuple[str, ...], float]:
        return bounded({at: value for at, value in values if value is not None}, bound, fold)

    return {
        "mirrorlake_lag_records": series(
            ((at, float(one.lag_records)) for at, one in samples), add
        ),
        "mirrorlake_lag_seconds": series(
            (at, one.lag_seconds + (unseen.get(at[0], 0.0) if one.lag_records else 0.0))
            for at, one in samples
        ),
        "mirrorlake_stalled_seconds": series(
            (at, 0.0 if one.stalled_since is None else max(0.0, facts.now - one.stalled_since))
            for at, one in samples
        ),
        "mirrorlake_open_transaction_timestamp_seconds": series(
            ((at, one.transaction_since) for at, one in samples), min
        ),
        "mirrorlake_group_lag_records": series(_group_lags(facts), add),
        "mirrorlake_paused": series(
            ((flow.name, topic), 1.0) for flow in facts.in_force for topic in flow.paused
        ),
        "mirrorlake_sample_timestamp_seconds": {
            (name,): flow.sampled_at
            for name, flow in facts.running.items()
            if flow.sampled_at is not None
        },
    }


def _unseen(facts: Facts) -> dict[str, float]:
    """Seconds since the last sample of flows no longer sampled, as `replication_lag` has them."""
    ages = {
        flow.name: (facts.now - known.sampled_at, flow.quiet_seconds)
        for flow in facts.in_force
        if (known := facts.flows.get(flow.name)) is not None and known.sampled_at is not None
    }
    return {name: age for name, (age, quiet) in ages.items() if age > quiet}


def _group_lags(facts: Facts) -> Iterator[tuple[tuple[str, ...], float | None]]:
    """How far groups are behind the newest sample of their side."""
    for flow in facts.in_force:
        samples = facts.flows.get(flow.name, FlowFacts()).samples
        for side, positions in flow.groups.items():
            for (group, topic, partition), position in positions.items():
                sample = samples.get((topic, partition))
                if sample is None:
                    continue
                end = sample.source_end if side == "source" else sample.target_end
                labels = (flow.name, side, group, topic, str(partition))
                yield labels, None if end is None else float(max(0, end - position))
