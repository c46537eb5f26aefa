"""`mirrorlake demo`: the whole story in two minutes, told by `mirrorlake.local.story`."""

from functools import partial
from pathlib import Path

import typer

from mirrorlake.cli.context import Context
from mirrorlake.local.story import tell


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    context: typer.Context,
    directory: Path = typer.Option(Path("mirrorlake-demo"), "--directory", help="Made afresh; everything lives there."),
    records: int = typer.Option(60_000, "--records", min=1_000, help="Records to produce."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document at the end."),
) -> None:
    """Two real clusters, a flow, a crash, a failover, and the proof: nothing lost, nothing twice."""
    shared: Context = context.obj
    outcome = tell(directory, records, partial(shared.err.print, highlight=False, soft_wrap=True))
    if as_json:
        shared.answer(vars(outcome))
    if not outcome.proven:
        raise typer.Exit(1)
