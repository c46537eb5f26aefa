"""Counts the reports of a run's threads for metrics. No error here reaches the reporting thread."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any

import pyarrow as pa

from mirrorlake.lake.meter import LakeMeter, Landed
from mirrorlake.metrics.facts import Facts, FlowFacts, PartitionSample, Volume
from mirrorlake.metrics.histogram import Histogram, observed, of_records
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.run.samples import FlowLag

logger = logging.getLogger(__name__)

#: The heartbeats topic at a source, which all our processes write; the view `alerts` uses it.
HEARTBEATS = "heartbeats"
_COLUMNS = [
    *("topic", "partition", "record_count", "byte_count", "transactions", "aborts"),
    *(
        f"{kind}_{name}_ms"
        for kind in ("landing", "replication")
        for name in ("min", "avg", "p50", "p95", "p99", "max")
    ),
]


class Recorder(LakeMeter):
    """Collects the reports of a run's threads; `clock` returns seconds since 1970."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._use = Lock()
        self._flows: defaultdict[str, FlowFacts] = defaultdict(FlowFacts)
        self._landed: dict[tuple[str, str, int], Volume] = {}
        self._commits: dict[str, Histogram] = {}

    def batch(self, flow: str, report: BatchReport) -> None:
        """A batch was produced."""
        self._noted(partial(self._batch, flow, report))

    def sampled(self, flow: str, lag: FlowLag) -> None:
        """A sample of positions was written."""
        self._noted(partial(self._sampled, flow, lag))

    def committed(self, table: str, seconds: float) -> None:
        """See `LakeMeter`."""
        self._noted(partial(self._committed, table, seconds))

    def landed(self, cluster: str, landed: Iterable[Landed]) -> None:
        """See `LakeMeter`."""
        self._noted(partial(self._add_landed, cluster, landed))

    def facts(self) -> Facts:
        """A snapshot of the reports so far."""
        with self._use:
            return Facts(
                {name: flow.as_of_now() for name, flow in self._flows.items()},
                landed=dict(self._landed),
                commits=dict(self._commits),
            )

    def _noted(self, note: Callable[[], None]) -> None:
        try:
            with self._use:
                note()
        except Exception:
            logger.exception("a report does not count in the metrics")

    def _batch(self, name: str, report: BatchReport) -> None:
        flow = self._flows[name]
        flow.batches[report.way] += 1
        for row in [] if report.result is None else _rows(report.result):
            key, topic = (row["topic"], row["partition"]), row["topic"]
            flow.transactions += row["transactions"] or 0
            flow.aborts += row["aborts"] or 0
            volume = Volume(row["record_count"], row["byte_count"])
            flow.produced[key] = flow.produced.get(key, Volume()).plus(volume)
            for kind in ("landing", "replication"):
                known: dict[str, Histogram] = getattr(flow, kind)
                late = of_records(kind, row, row["record_count"])
                known[topic] = known.get(topic, Histogram()).plus(late)
            if topic == HEARTBEATS and row["replication_min_ms"] is not None:
                # As in the view `alerts`: none is sent after it arrived, whatever the clocks.
                now = self._clock()
                beat = now - max(0, row["replication_min_ms"]) / 1_000
                flow.heartbeat_at = max(min(flow.heartbeat_at or 0.0, now), beat)

    def _committed(self, table: str, seconds: float) -> None:
        self._commits[table] = self._commits.get(table, Histogram()).plus(observed(seconds))

    def _add_landed(self, cluster: str, landed: Iterable[Landed]) -> None:
        for one in landed:
            key = cluster, one.topic, one.partition
            volume = Volume(one.records, one.bytes)
            self._landed[key] = self._landed.get(key, Volume()).plus(volume)

    def _sampled(self, name: str, lag: FlowLag) -> None:
        flow, now = self._flows[name], self._clock()
        age = now - (flow.sampled_at or now)
        last = {key: _older(flow.samples[key], age) for key in lag.silent if key in flow.samples}
        flow.samples = {**last, **{key: _sample(row) for key, row in lag.rows.items()}}
        flow.sampled_at, flow.silent = now, lag.silent


def _rows(result: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = result.select(_COLUMNS).to_pylist()
    return rows


def _older(sample: PartitionSample, seconds: float) -> PartitionSample:
    """A sample that stands for a partition without an answer: its lag goes on."""
    return replace(sample, lag_seconds=sample.lag_seconds + (seconds if sample.lag_records else 0))


def _sample(row: Mapping[str, Any]) -> PartitionSample:
    """The sample in a row of `positions`."""
    since = {name: row[name] for name in ("stalled_since", "transaction_since")}
    return PartitionSample(
        int(row["lag_records"]),
        lag_seconds=float(row["lag_seconds"] or 0.0),
        source_end=int(row["source_end"]),
        produced_end=int(row["produced_end"]),
        target_end=row["target_end"],
        **{name: None if time is None else time.timestamp() for name, time in since.items()},
    )
