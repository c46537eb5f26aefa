"""The progress of a run for display: the phases of its start, then each flow's figures.

Each phase is logged when it ends. The threads of all flows report here; displays call `now`.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mirrorlake.library.answers import Produced

if TYPE_CHECKING:
    from mirrorlake.produce.batch_report import BatchReport
    from mirrorlake.run.samples import FlowLag

logger = logging.getLogger(__name__)

#: The window for records per second, seconds.
RATE_SECONDS = 10.0


@dataclass(frozen=True)
class FlowProgress:
    """A flow as of now. None means not known yet: lag before the first sample, latency (p50 and p99
    of the newest batch) before the first batch. The driver itself produced the `short_batches`;
    `open_incidents` counts those that this process knows."""

    flow: str
    records: int
    batches: int
    short_batches: int
    records_per_second: float
    lag_records: int | None
    lag_seconds: float | None
    latency_ms: tuple[int, int] | None
    open_incidents: int


@dataclass
class _FlowCounts:
    """The reports of one flow; `recent` has the times and record counts of its last batches."""

    produced: Produced
    recent: deque[tuple[float, int]] = field(default_factory=deque)
    lag: "FlowLag | None" = None
    latency_ms: tuple[int, int] | None = None


class Progress:
    """Collects reports of a run's threads; `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        #: Open incidents by flow, as far as the running process knows.
        self.incidents: Callable[[], Mapping[str, int]] = dict
        self._clock = clock
        self._began = clock()
        self._use = threading.Lock()
        self._phase: tuple[str, float] | None = None
        self._flows: dict[str, _FlowCounts] = {}
        self._reader = "auto"

    @contextmanager
    def phase(self, name: str, since: float | None = None) -> Iterator[None]:
        """Log the block as a phase, begun at `since`, unless it fails: its error is logged."""
        began = self._clock() if since is None else since
        self._phase = name, began
        try:
            yield
        finally:
            self._phase = None
        seconds = round(self._clock() - began, 1)
        logger.info(
            "%s: %.1f s", name, seconds, extra={"facts": {"phase": name, "seconds": seconds}}
        )

    def current_phase(self) -> tuple[str, float] | None:
        """The current phase and its seconds so far."""
        phase = self._phase
        return None if phase is None else (phase[0], self._clock() - phase[1])

    def expect(self, flows: Iterable[str], reader: str = "auto") -> None:
        """Announce flows whose tasks will read the stage as `reader` says."""
        with self._use:
            self._reader = reader
            for flow in flows:
                self._of(flow)

    def batch(self, flow: str, report: "BatchReport") -> None:
        """A batch was produced."""
        now = self._clock()
        with self._use:
            counts = self._of(flow)
            before = counts.produced
            first = before.records == 0 and report.record_count > 0
            counts.produced = replace(
                before,
                records=before.records + report.record_count,
                batches=before.batches + 1,
                short_batches=before.short_batches + (report.way == "short"),
                reader=report.reader,
            )
            counts.recent.append((now, report.record_count))
            _forget(counts, now)
            if report.replication_ms is not None:
                counts.latency_ms = report.replication_ms[0], report.replication_ms[-1]
        if first:
            seconds = round(now - self._began, 1)
            facts = {"flow": flow, "seconds": seconds}
            logger.info(
                "flow %s: first records at the target after %.1f s",
                flow,
                seconds,
                extra={"facts": facts},
            )

    def sampled(self, flow: str, lag: "FlowLag") -> None:
        """A sample of positions was written."""
        with self._use:
            self._of(flow).lag = lag

    def produced(self) -> dict[str, Produced]:
        """What each flow has produced so far."""
        with self._use:
            return {name: counts.produced for name, counts in self._flows.items()}

    def now(self) -> list[FlowProgress]:
        """Every flow as of now."""
        incidents, now = self.incidents(), self._clock()
        with self._use:
            return [
                self._flow_progress(name, counts, now, incidents.get(name, 0))
                for name, counts in self._flows.items()
            ]

    def _of(self, flow: str) -> _FlowCounts:
        fresh = _FlowCounts(Produced(flow, 0, 0, 0, self._reader))
        return self._flows.setdefault(flow, fresh)

    def _flow_progress(
        self, name: str, counts: _FlowCounts, now: float, incidents: int
    ) -> FlowProgress:
        _forget(counts, now)
        seconds = max(1.0, min(RATE_SECONDS, now - self._began))
        rate = round(sum(count for _, count in counts.recent) / seconds, 1)
        lag = counts.lag
        return FlowProgress(
            name,
            records=counts.produced.records,
            batches=counts.produced.batches,
            short_batches=counts.produced.short_batches,
            records_per_second=rate,
            lag_records=None if lag is None else lag.records,
            lag_seconds=None if lag is None else lag.seconds,
            latency_ms=counts.latency_ms,
            open_incidents=incidents,
        )


def _forget(counts: _FlowCounts, now: float) -> None:
    """Drop batches that are too old for records per second."""
    while counts.recent and counts.recent[0][0] < now - RATE_SECONDS:
        counts.recent.popleft()
