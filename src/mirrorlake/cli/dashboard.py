"""`mirrorlake dashboard`: the bundle's dashboard over the local lake, on a local page or in one
file."""

import signal
import webbrowser
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

from mirrorlake.cli.context import ENGINE, Context
from mirrorlake.errors import InputError

if TYPE_CHECKING:
    from mirrorlake.config.topology import Topology


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(dashboard)


def dashboard(
    context: typer.Context,
    port: int = typer.Option(
        8765, "--port", min=0, max=65535, help="On 127.0.0.1; 0 is any free one."
    ),
    refresh: float = typer.Option(
        10.0, "--refresh", min=1.0, help="Seconds between two reads of the lake."
    ),
    html: Path | None = typer.Option(
        None, "--html", help="Write one self-contained file instead, and end."
    ),
    no_open: bool = typer.Option(False, "--no-open", help="Do not open a browser."),
    engine: str | None = ENGINE,
) -> None:
    """Show the dashboard of the bundle, from this lake: until Ctrl-C, while the replicator runs or
    not."""
    from mirrorlake.dashboard.data import DashboardReader, Snapshots, read_data
    from mirrorlake.dashboard.model import load_dashboard
    from mirrorlake.dashboard.page import render
    from mirrorlake.dashboard.server import DashboardServer

    shared: Context = context.obj.by(engine)
    known = shared.lake.internals
    place = _place(known.topology)  # a wrong topology file is reported first
    if html is not None and not html.absolute().parent.is_dir():
        raise InputError(
            f"there is no directory {html.absolute().parent} to write {html.name} into"
        )
    shown = load_dashboard()
    if html is not None:
        html.write_text(
            render(shown, read_data(known.reader, shown), None, place), encoding="utf-8"
        )
        shared.say(f"wrote {html}")
        return
    known.short = False  # the same queries again and again: it pays to compile them
    reader = DashboardReader(known.reader, shown)
    page = render(shown, None, refresh, place)
    with DashboardServer(page, Snapshots(reader.read, refresh).newest, port) as server:
        shared.say(f"dashboard at {server.url} (Ctrl-C ends it)")
        if not no_open:
            webbrowser.open(server.url)
        signal.signal(signal.SIGTERM, _interrupt)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            shared.say("ended")


def _place(topology: "Topology") -> str:
    """The lake's name, for the page's last line."""
    lake = topology.lake
    if lake.path is None:
        return f"{lake.catalog}.{lake.schema_name}"
    return str((topology.directory / lake.path).resolve())


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
