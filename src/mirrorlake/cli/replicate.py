"""`mirrorlake run`: replicate until it is stopped, or once to the end offsets seen at the start."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import typer

import mirrorlake
from mirrorlake.cli import completion, logs
from mirrorlake.cli.context import Context, typed
from mirrorlake.heaps import share_heaps

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.text import Text

    from mirrorlake.library.progress import FlowProgress, Progress

logger = logging.getLogger(__name__)

#: How often a flow is reported without a terminal, seconds.
LINE_SECONDS = 60.0
REDRAWS_PER_SECOND = 4


def run(
    context: typer.Context,
    flow: list[str] = completion.ONLY_FLOWS,
    once: bool = typer.Option(False, "--once", help="End at the end offsets seen at the start."),
    wait_for_config: bool = typer.Option(
        False, "--wait-for-config", help="Wait until the topology file is there."
    ),
    register: bool = typer.Option(
        False,
        "--register",
        help="Register the tables in the catalog first, as `mirrorlake register` does.",
    ),
    reader: str = typer.Option(
        "auto", help="How tasks read the stage: auto, files or rows.", hidden=True
    ),
    metrics: str | None = typer.Option(
        None, metavar="HOST:PORT", help="Serve Prometheus, /healthz and /readyz there."
    ),
    standby: bool = typer.Option(
        False, "--standby", help="Only stand by: work where another process of the file has worked."
    ),
    log: logs.Form = typer.Option(
        logs.Form.auto,
        help="Stderr: live lines at a terminal, plain lines, or a JSON object a line.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document at the end."),
) -> None:
    """Land, produce and keep topics alike; continuous until SIGTERM or SIGINT, which finish the
    batch in hand: a second one ends it at once. Exits 1 where a run with --once is stopped so
    before its end."""
    from mirrorlake.library.progress import Progress
    from mirrorlake.library.waiting import wait_for_topology

    share_heaps()
    shared: Context = context.obj
    stop = _stop_on_signals()
    logs.install(lambda: shared.err, shared.verbose, log)
    if wait_for_config and not wait_for_topology(shared.config, stop, shared.say, once):
        return
    progress = Progress()
    shows = log is logs.Form.auto and shared.err.is_terminal
    with living(shared.err, progress, "" if once else _hint(shared)) if shows else logged(progress):
        with progress.phase(f"reading {shared.config}"):
            lake = _opened(shared, flow, progress)
        totals = lake.run(
            flow or None,
            once=once,
            stop=stop,
            reader=reader,
            register=register,
            metrics=metrics,
            standby=standby,
        )
    if as_json:
        shared.answer({"flows": {row.pop("flow"): row for row in totals}})
    else:
        for row in totals:
            shared.say(
                f"{row['flow']}: {row['records']:,} records in {row['batches']} batches, "
                f"{row['short_batches']} short"
            )


def _hint(shared: Context) -> str:
    """What to type in a second terminal."""
    look, page = (typed(shared.config, command) for command in ("status", "dashboard"))
    return (
        f"in a second terminal: `{look}` says how it stands, `{page}` draws it; Ctrl-C here "
        "ends the run"
    )


def _opened(shared: Context, flows: list[str], progress: "Progress") -> "mirrorlake.OpenLake":
    """The lake, with flows that there are. Raises TopologyError."""
    lake = shared.lake
    shared.watch(progress)
    for name in flows:
        lake.flows[name]
    return lake


def _stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set, from the first moment on: Spark takes some seconds to
    start. The second of them ends this process as if nothing heard it: what it had in hand is
    finished by the next start, as after a kill."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        return event  # a notebook or a test: the thread's starter stops it

    def stop(number: int, _frame: FrameType | None) -> None:
        if event.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        event.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return event


@contextmanager
def living(console: "Console", progress: "Progress", hint: str = "") -> Iterator[None]:
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
def logged(progress: "Progress", seconds: float = LINE_SECONDS) -> Iterator[None]:
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


def drawn(progress: "Progress", hint: str = "") -> "Group | Text":
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


def _words(flow: "FlowProgress") -> tuple[str, ...]:
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
