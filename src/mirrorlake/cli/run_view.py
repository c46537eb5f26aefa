"""What `run` shows: a live line a flow at a terminal, elsewhere a line of the log each minute."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mirrorlake.library.progress import FlowProgress, Progress

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.text import Text

logger = logging.getLogger(__name__)

#: How often a flow is reported without a terminal, seconds.
LINE_SECONDS = 60.0
REDRAWS_PER_SECOND = 4


@contextmanager
def living(console: "Console", progress: Progress, hint: str = "") -> Iterator[None]:
    """Show a run while the block runs, below what else is printed, and the hint once it replicates;
    nothing stays."""
    from rich.live import Live

    with Live(
        get_renderable=lambda: drawn(progress, hint),
        console=console,
        refresh_per_second=REDRAWS_PER_SECOND,
        transient=True,
        redirect_stdout=False,
    ):
        yield


@contextmanager
def logged(progress: Progress, seconds: float = LINE_SECONDS) -> Iterator[None]:
    """Log a line for each flow every so many seconds while the block runs."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(seconds):
            for flow in progress.now():
                logger.info(
                    "flow %s: %s", flow.flow, ", ".join(_words(flow)), extra={"facts": vars(flow)}
                )

    thread = threading.Thread(target=tell, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def drawn(progress: Progress, hint: str = "") -> "Group | Text":
    """The run as of now: the phase that it is in while it starts, then a line a flow, and once one
    replicates the hint."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    phase = progress.current_phase()
    if phase is not None:
        return Text(f"{phase[0]}… {phase[1]:.0f} s")
    table = Table.grid(padding=(0, 2, 0, 0))
    flows = progress.now()
    for flow in flows:
        style = "red" if flow.open_incidents else ""
        table.add_row(
            *(Text(cell) for cell in (flow.flow, *_words(flow)[:-1])), Text(_words(flow)[-1], style)
        )
    replicates = any(flow.records or flow.lag_records == 0 for flow in flows)
    return Group(table, Text(hint, "dim")) if hint and replicates else Group(table)


def _words(flow: FlowProgress) -> tuple[str, ...]:
    """What is shown of a flow; what is not known yet is a dash."""
    lag = latency = "-"
    if flow.lag_records is not None:
        lag = f"{flow.lag_records:,} records, {flow.lag_seconds or 0:.0f} s"
    if flow.latency_ms is not None:
        latency = f"{flow.latency_ms[0]:,} ms (p99 {flow.latency_ms[1]:,} ms)"
    return (
        f"{flow.records_per_second:,.0f} records/s",
        f"{flow.records:,} records in {flow.batches:,} batches ({flow.short_batches:,} short)",
        f"lag {lag}",
        f"latency {latency}",
        f"{flow.open_incidents} open incidents",
    )
