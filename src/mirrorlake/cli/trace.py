"""`mirrorlake trace`: one record's life."""

import typer

from mirrorlake.cli.context import ENGINE, Context
from mirrorlake.cli.times import time_of
from mirrorlake.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(trace)


def trace(
    context: typer.Context,
    flow: str = typer.Option(..., "--flow", help="The flow, as source->target."),
    topic: str = typer.Option(
        ..., "--topic", help="Named as at the source; with --reverse, as at the target."
    ),
    partition: int | None = typer.Option(None, "--partition"),
    offset: int | None = typer.Option(None, "--offset", help="The record's own offset."),
    key: str | None = typer.Option(
        None, "--key", help="Instead: the newest record with this key, as text or 0x…."
    ),
    since: str | None = typer.Option(
        None, "--since", help="With --key: only records written since, as 2026-11-21."
    ),
    reverse: bool = typer.Option(
        False, "--reverse", help="Partition and offset are those at the target."
    ),
    engine: str | None = ENGINE,
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
) -> None:
    """Tell one record's life: written, landed, produced, read, and what held it up. Exits 1 when it
    does not go on before an operator acts."""
    shared: Context = context.obj.by(engine)
    if key is None and (partition is None or offset is None):
        raise InputError("name the record by --partition and --offset, or by --key")
    if key is not None and (partition is not None or offset is not None or reverse):
        raise InputError("--key stands alone: it is looked for in the whole topic of the source")
    if since is not None and key is None:
        raise InputError("--since goes with --key: one record has one time")
    life = shared.lake.flows[flow].trace(
        topic,
        partition,
        offset,
        key=key,
        since=None if since is None else time_of("--since", since),
        reverse=reverse,
    )
    if as_json:
        shared.answer(life.to_dict())
    else:
        for line in life.lines():
            shared.out.print(line, soft_wrap=True)
    if life.needs_somebody:
        raise typer.Exit(1)
