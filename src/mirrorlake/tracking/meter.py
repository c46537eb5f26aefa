"""Figures of a running replicator, collected from its threads and read every half minute."""

import threading
from dataclasses import dataclass

from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.run.samples import FlowLag


@dataclass
class _FlowCounts:
    """The counts of one flow since the last `take`, and its newest lag."""

    records: int = 0
    batches: int = 0
    latency_ms: tuple[int, int, int] | None = None
    lag: FlowLag | None = None


class Meter:
    """Collects the reports of all flows' threads."""

    def __init__(self) -> None:
        self._use = threading.Lock()
        self._flows: dict[str, _FlowCounts] = {}
        self._records = 0

    def batch(self, flow: str, report: BatchReport) -> None:
        """A batch was produced."""
        with self._use:
            counts = self._flows.setdefault(flow, _FlowCounts())
            counts.records += report.record_count
            counts.batches += 1
            self._records += report.record_count
            if report.replication_ms is not None:
                before = counts.latency_ms or report.replication_ms
                p50, p95, p99 = (
                    max(pair) for pair in zip(before, report.replication_ms, strict=True)
                )
                counts.latency_ms = (p50, p95, p99)

    def sampled(self, flow: str, lag: FlowLag) -> None:
        """A sample of positions was written."""
        with self._use:
            self._flows.setdefault(flow, _FlowCounts()).lag = lag

    @property
    def records(self) -> int:
        """Records produced so far by all flows."""
        with self._use:
            return self._records

    def take(self, seconds: float) -> dict[str, float]:
        """The metrics of the last `seconds`, most of them by flow: east-to-west/lag_records.

        MLflow allows no > in names.
        """
        metrics: dict[str, float] = {}
        with self._use:
            for flow, counts in self._flows.items():
                name = flow.replace("->", "-to-")
                metrics[f"{name}/records_per_second"] = counts.records / seconds
                metrics[f"{name}/batches"] = counts.batches
                for label, value in zip(
                    ("p50", "p95", "p99"), counts.latency_ms or (), strict=False
                ):
                    metrics[f"{name}/latency_{label}_ms"] = value
                if counts.lag is not None:
                    metrics[f"{name}/lag_records"] = counts.lag.records
                    metrics[f"{name}/lag_seconds"] = counts.lag.seconds
                self._flows[flow] = _FlowCounts(lag=counts.lag)
            metrics["records_per_second"] = sum(
                value for key, value in metrics.items() if key.endswith("/records_per_second")
            )
        return metrics
