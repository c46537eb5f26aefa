"""`mirrorlake run`: replicate until it is stopped, or once to the end offsets seen at the start."""

import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING

import typer

import mirrorlake
from mirrorlake.cli import completion, logs
from mirrorlake.cli.context import Context, typed
from mirrorlake.heaps import share_heaps

if TYPE_CHECKING:
    from mirrorlake.library.progress import Progress


def run(
    context: typer.Context,
    flow: list[str] = typer.Option(
        [], help="Only this flow; may be given several times.", autocompletion=completion.FLOWS
    ),
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
    from mirrorlake.cli.run_view import living, logged
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
