"""`mirrorlake run`: replicate until told to stop, or once to the end offsets seen at the start."""

import signal
import threading
from types import FrameType

import typer
from rich.progress import Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

import mirrorlake
from mirrorlake.cli.context import Context


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
    stop = _stop_on_signals()
    lake = shared.lake
    names = flow or [item.name for item in lake.flows.values() if item.enabled]
    with Progress(
        *progress_columns(), console=shared.err, disable=not shared.err.is_terminal, transient=True
    ) as progress:
        bars = {name: progress.add_task(f"{name}: starting", total=None) for name in names}

        def report(total: mirrorlake.Produced) -> None:
            if total.flow not in bars:
                bars[total.flow] = progress.add_task(total.flow, total=None)
            said = f"{total.flow}: {total.records:,} records in {total.batches} batches (reader: {total.reader})"
            progress.update(bars[total.flow], description=said)

        totals = lake.run(flow or None, once=once, report=report, stop=stop, reader=reader)
    if as_json:
        counts = {row["flow"]: {"records": row["records"], "batches": row["batches"]} for row in totals}
        shared.answer({"flows": counts})
    else:
        for row in totals:
            shared.say(f"{row['flow']}: {row['records']:,} records in {row['batches']} batches")


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
