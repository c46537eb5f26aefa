"""The commands that look and change nothing: plan, status, translate, sql."""

import typer

from mirrorlake.cli.context import ENGINE, Context
from mirrorlake.cli.plan_view import show_plan
from mirrorlake.cli.status_view import show_status
from mirrorlake.errors import InputError, TopologyError
from mirrorlake.terminal import plain_table

AS_JSON = typer.Option(False, "--json", help="Print one JSON document.")
#: `sql` shows at most this many rows, unless it is told otherwise.
MAX_ROWS = 1_000


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (plan, status, translate, sql):
        app.command()(command)


def plan(
    context: typer.Context,
    flow: list[str] = typer.Option([], "--flow", help="Only this flow."),
    as_json: bool = AS_JSON,
) -> None:
    """Show everything that would be done, without doing it. Exits 2 when a flow must not run, 1
    when a topic is left out."""
    shared: Context = context.obj
    document = shared.lake.plan(flow or None).to_dict()
    if as_json:
        shared.answer(document)
    else:
        show_plan(shared.out, document)
    refusals = [problem for problem in document["problems"] if problem["severity"] == "refuse"]
    for problem in refusals:
        if problem["topic"] is None:
            raise TopologyError(f"{problem['sentence']}; {problem['fix']}")
    if refusals or any(
        topic["action"] == "refuse"
        for flow_plan in document["flows"]
        for topic in flow_plan["topics"]
    ):
        raise typer.Exit(1)


def status(context: typer.Context, engine: str | None = ENGINE, as_json: bool = AS_JSON) -> None:
    """Show what needs attention first, then how each flow stands: lag, latency, proofs. Exits 1
    when an alert condition holds, or a law of replication is broken: a staged record without a
    target offset, a target that lost records."""
    shared: Context = context.obj.by(engine)
    document = shared.lake.status().to_dict()
    if as_json:
        shared.answer(document)
    else:
        show_status(shared.out, document)
    if not document["healthy"]:
        raise typer.Exit(1)


def translate(
    context: typer.Context,
    flow: str = typer.Option(
        ..., "--flow", help="The flow, as source->target, or a replay or restore."
    ),
    topic: str = typer.Option(
        ..., "--topic", help="The topic, named as on the side of the offset."
    ),
    partition: int = typer.Option(..., "--partition"),
    offset: int = typer.Option(..., "--offset", help="A position: the next offset to be read."),
    reverse: bool = typer.Option(False, "--reverse", help="From the target back to the source."),
    engine: str | None = ENGINE,
    as_json: bool = AS_JSON,
) -> None:
    """Translate a position from the source to the target of a flow, or back."""
    shared: Context = context.obj.by(engine)
    if offset < 0 or partition < 0:
        raise InputError("--offset and --partition count from 0; give the offset that is read next")
    position = shared.lake.translate(flow, topic, partition, offset, reverse=reverse)
    if as_json:
        shared.answer(position.to_dict())
    else:
        sure = (
            "exact" if position.exact else "not replicated yet; this is the highest safe position"
        )
        shared.out.print(
            f"{position.topic} partition {position.partition} offset {position.offset} ({sure})"
        )


def sql(
    context: typer.Context,
    query: str = typer.Argument(..., help="A query, in Spark's SQL."),
    engine: str | None = ENGINE,
    limit: int = typer.Option(
        MAX_ROWS, "--limit", min=0, help="Show at most this many rows; 0 shows all."
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Run a query over the tables and views of the lake. `--engine spark` takes any statement.

    With --json, a list of rows; one that was cut is under `rows`, beside `truncated` and `limit`,
    so that no reader takes a part for the whole.
    """
    shared: Context = context.obj.by(engine)
    rows = shared.lake.rows(query, limit=limit or None)
    if as_json:
        shared.answer({"rows": rows, "truncated": True, "limit": limit} if rows.truncated else rows)
        return
    table = plain_table(*rows.columns)
    for row in rows:
        table.add_row(*("NULL" if value is None else str(value) for value in row.values()))
    shared.out.print(table)
    if rows.truncated:
        shared.say(
            f"the first {limit:,} rows; there are more: --limit N shows N of them, --limit 0 all"
        )
