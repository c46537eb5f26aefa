"""`mirrorlake trace`: one record's life."""

import typer

from mirrorlake.cli import completion
from mirrorlake.cli.context import AS_JSON, ENGINE, Context, time_of
from mirrorlake.errors import InputError


def trace(
    context: typer.Context,
    flow: str = completion.FLOW,
    topic: str = typer.Option(
        ...,
        help="Named as at the source; with --reverse, as at the target.",
        autocompletion=completion.TOPICS,
    ),
    partition: int | None = typer.Option(None),
    offset: int | None = typer.Option(None, help="The record's own offset."),
    key: str | None = typer.Option(
        None, help="Trace the newest record with this key, text or 0x…, instead of an offset."
    ),
    since: str | None = typer.Option(
        None, help="With --key: only records written since this time, such as 2026-11-21."
    ),
    reverse: bool = typer.Option(
        False, "--reverse", help="Partition and offset are those at the target."
    ),
    engine: str | None = ENGINE,
    as_json: bool = AS_JSON,
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
    text = "\n".join(life.lines())
    good = not life.needs_somebody
    shared.end(life.to_dict(), as_json, lambda: shared.out.print(text, soft_wrap=True), good)
