"""`mirrorlake run`: replicate until told to stop, or once to the end offsets seen at the start."""

import signal
import threading
from types import FrameType

import typer
from rich.progress import Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

from mirrorlake.checks.preflight import judge
from mirrorlake.cli.context import Context
from mirrorlake.lake.opening import check_location, lake_exists
from mirrorlake.produce.flow import BatchReport
from mirrorlake.run.replicator import Replicator, RunOptions
from mirrorlake.tracking.runs import tracked


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(run)


def run(
    context: typer.Context,
    flow: list[str] = typer.Option([], "--flow", help="Only this flow; may be given several times."),
    once: bool = typer.Option(False, "--once", help="End at the end offsets seen at the start."),
    reader: str = typer.Option("auto", "--reader", help="How tasks read the stage: auto, files or rows.", hidden=True),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document at the end."),
) -> None:
    """Land, produce and keep topics alike; continuous until SIGTERM or SIGINT, which finish the batch in hand."""
    shared: Context = context.obj
    shared.short = False
    stop = _stop_on_signals()
    flows = shared.topology.active_flows(flow or None)
    # Before Spark starts, so that wrong input is told within seconds; clusters first, since checking the lake makes it.
    judge(None, shared.connections, flows, lake_exists(shared.topology.lake, shared.topology.directory))
    check_location(shared.topology.lake, shared.topology.directory)
    totals = {item.name: {"records": 0, "batches": 0} for item in flows}
    facts = {"flows": " ".join(totals), "once": str(once).lower(), "reader": reader}
    with (
        tracked(shared.topology, "run", facts, figures=True) as tracking,
        Progress(
            *progress_columns(),
            console=shared.err,
            disable=not shared.err.is_terminal,
            transient=True,
        ) as progress,
    ):
        bars = {item.name: progress.add_task(f"{item.name}: starting", total=None) for item in flows}

        def report(name: str, batch: BatchReport) -> None:
            tracking.batch(name, batch)
            total = totals.setdefault(name, {"records": 0, "batches": 0})
            total["records"] += batch.record_count
            total["batches"] += 1
            if name not in bars:
                bars[name] = progress.add_task(name, total=None)
            said = f"{name}: {total['records']:,} records in {total['batches']} batches (reader: {batch.reader})"
            progress.update(bars[name], description=said)

        options = RunOptions(once, reader, None if once else shared.config, tuple(flow) or None)
        replicator = Replicator(shared.lake, shared.connections, flows, options, report, stop, tracking.sampled)
        tracking.session(shared.spark)
        replicator.run()
        tracking.report({"flows": totals})
    if as_json:
        shared.answer({"flows": totals})
    else:
        for name, total in totals.items():
            shared.say(f"{name}: {total['records']:,} records in {total['batches']} batches")


def progress_columns() -> tuple[ProgressColumn, ...]:
    """What a terminal shows of each flow while it runs; names are shown as they are."""
    return SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()


def _stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set, from the first moment on: Spark takes some seconds to start."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        return event  # a notebook or a test: who started the thread stops it

    def stop(_signal: int, _frame: FrameType | None) -> None:
        event.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return event
