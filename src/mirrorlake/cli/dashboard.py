"""`mirrorlake dashboard`: the bundle's dashboard over the local lake, as a page or in one file."""

import signal
import webbrowser
from pathlib import Path

import typer

from mirrorlake.cli.context import ENGINE, Context, check_folder


def dashboard(
    context: typer.Context,
    port: int = typer.Option(8765, min=0, max=65535, help="On 127.0.0.1; 0 is any free one."),
    refresh: float = typer.Option(10.0, min=1.0, help="Seconds between two reads of the lake."),
    html: Path | None = typer.Option(
        None, help="Write one self-contained file instead of serving, and end."
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
    from mirrorlake.library.store_refusals import in_words

    shared: Context = context.obj.by(engine)
    known = shared.lake.internals
    lake = known.topology.lake  # a wrong topology file is reported first
    place = known.place if lake.path is None else str(known.root)
    if html is not None:
        check_folder(html)
        known.check_there()
    shown = load_dashboard()
    if html is not None:
        html.write_text(
            render(shown, read_data(known.reader, shown), None, place), encoding="utf-8"
        )
        shared.say(f"wrote {html}")
        return
    known.short = False  # repeated queries: it pays to compile them
    reader = DashboardReader(known.reader, shown)
    snapshots = Snapshots(in_words(reader.read), refresh)
    with DashboardServer("", snapshots.newest, port) as server:
        snapshots.begin()
        server.page = render(shown, None, refresh, place).encode()
        shared.say(f"dashboard at {server.url} (Ctrl-C ends it)")
        if not no_open:
            webbrowser.open(server.url)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            shared.say("ended")
