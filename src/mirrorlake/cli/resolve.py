"""`mirrorlake resolve`: what waits for an operator's decision, and deciding it."""

import typer

from mirrorlake.cli.context import ENGINE, Context
from mirrorlake.terminal import plain_table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(resolve)


def resolve(
    context: typer.Context,
    flow: str | None = typer.Option(None, "--flow", help="Only incidents of this flow."),
    topic: str | None = typer.Option(None, "--topic", help="Only incidents of this source topic."),
    partition: int | None = typer.Option(
        None, "--partition", help="Only incidents of this partition."
    ),
    kind: str | None = typer.Option(None, "--kind", help="Only incidents of this kind."),
    choice: str | None = typer.Option(
        None, "--choice", help="What to do; without it, incidents are listed."
    ),
    engine: str | None = ENGINE,
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
) -> None:
    """List open incidents with what can be chosen, or decide them with --choice. A running `run`
    notices."""
    shared: Context = context.obj.by(engine)
    if choice is None:
        incidents = shared.lake.incidents(flow, topic, partition, kind)
    else:
        incidents = shared.lake.resolve(choice, flow, topic, partition, kind)
    if as_json:
        shared.answer({"choice": choice, "incidents": incidents})
        return
    if not incidents:
        shared.say("no incident is open")
        return
    table = plain_table(
        "flow", "kind", "topic", "offsets", "what", "choice" if choice is None else "decided"
    )
    for incident in incidents:
        suffix = "" if incident["partition"] is None else f"-{incident['partition']}"
        offsets = (
            ""
            if incident["first_offset"] is None
            else f"{incident['first_offset']} to {incident['last_offset']}"
        )
        choices = "\n".join(f"{name}: {meaning}" for name, meaning in incident["choices"].items())
        cells = (
            incident["flow"],
            incident["kind"],
            f"{incident['topic'] or ''}{suffix}",
            offsets,
            incident["detail"],
        )
        table.add_row(*cells, choices if choice is None else choice)
    shared.out.print(table)
