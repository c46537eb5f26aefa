"""The commands that look and change nothing: plan, status, translate, sql."""

from typing import Any

import typer

from mirrorlake.cli.context import ENGINE, Context
from mirrorlake.cli.plan_view import show_plan
from mirrorlake.errors import InputError, TopologyError
from mirrorlake.terminal import plain_table

AS_JSON = typer.Option(False, "--json", help="Print one JSON document.")
#: `sql` shows at most this many rows; a query that wants more says so with its own tools.
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
    """Show everything that would be done, without doing it. Exits 2 when a flow must not run, 1 when a topic is left
    out."""
    shared: Context = context.obj
    found = shared.lake.plan(flow or None).to_dict()
    if as_json:
        shared.answer(found)
    else:
        show_plan(shared.out, found)
    refusals = [problem for problem in found["problems"] if problem["severity"] == "refuse"]
    for problem in refusals:
        if problem["topic"] is None:
            raise TopologyError(f"{problem['sentence']}; {problem['fix']}")
    if refusals or any(topic["action"] == "refuse" for item in found["flows"] for topic in item["topics"]):
        raise typer.Exit(1)


def status(context: typer.Context, engine: str | None = ENGINE, as_json: bool = AS_JSON) -> None:
    """Show flows, lag, latency, the last batch, open incidents and alerts. Exits 1 when an alert condition holds, or a
    law of replication is broken: a staged record without a target offset, a target that lost what it got."""
    shared: Context = context.obj.by(engine)
    found = shared.lake.status().to_dict()
    if as_json:
        shared.answer(found)
    else:
        columns = (
            "flow",
            "topics",
            "partitions",
            "lag_records",
            "record_count",
            "short_batches",
            "long_batches",
            "replication_p50_ms",
            "heartbeat_age_seconds",
            "last_produced_at",
        )
        table = plain_table(*columns)
        for item in found["flows"]:
            table.add_row(*("-" if item.get(column) is None else str(item[column]) for column in columns))
        shared.out.print(table)
        _show_proofs(shared, found["proofs"])
        for incident in found["incidents"]:
            _mark(shared, "red", "open incident", f"{incident['flow']} {incident['kind']}: {incident['detail']}")
        for alert in found["alerts"]:
            if alert["alert"] != "incident":
                where = f" {alert['topic']}" if alert["topic"] else ""
                where += f"-{alert['partition']}" if alert["partition"] is not None else ""
                limit = f"{alert['value']:g} > {alert['threshold']:g}"
                _mark(shared, "red", "alert", f"{alert['flow']} {alert['alert']}{where} ({limit}): {alert['detail']}")
        for sentence in found["unchecked"]:
            _mark(shared, "yellow", "unchecked", sentence)
    if not found["healthy"]:
        raise typer.Exit(1)


def _show_proofs(shared: Context, proofs: list[dict[str, Any]]) -> None:
    """What of each topic is proven by content, where something was compared."""
    compared = [item for item in proofs if item["audited_at"] is not None]
    if not compared:
        return
    table = plain_table("flow", "topic", "records", "proven", "since", "compared last", "ranges that differ")
    for item in compared:
        since, last = (
            "-" if item[at] is None else f"{item[at]:%Y-%m-%d %H:%M}" for at in ("proven_since", "audited_at")
        )
        proven = f"{item['proven_share']:.2%}"
        table.add_row(
            item["flow"],
            item["topic"],
            f"{item['mapped_records']:,}",
            proven,
            since,
            last,
            str(item["differing_ranges"]),
        )
    shared.out.print(table)


def _mark(shared: Context, style: str, word: str, text: str) -> None:
    from rich.text import Text

    shared.out.print(Text.assemble((word, style), f" {text}"), soft_wrap=True)


def translate(
    context: typer.Context,
    flow: str = typer.Option(..., "--flow", help="The flow, as source->target."),
    topic: str = typer.Option(..., "--topic", help="The topic, named as on the side of the offset."),
    partition: int = typer.Option(..., "--partition"),
    offset: int = typer.Option(..., "--offset", help="A position: the next offset to be read."),
    reverse: bool = typer.Option(False, "--reverse", help="From the target back to the source."),
    engine: str | None = ENGINE,
    as_json: bool = AS_JSON,
) -> None:
    """Translate a position from the source to the target of a flow, or back."""
    shared: Context = context.obj.by(engine)
    shared.lake.flows[flow]
    if offset < 0 or partition < 0:
        raise InputError("--offset and --partition count from 0; give the offset that is read next")
    found = shared.lake.translate(flow, topic, partition, offset, reverse=reverse)
    if as_json:
        shared.answer(found.to_dict())
    else:
        sure = "exact" if found.exact else "not replicated yet; this is the highest safe position"
        shared.out.print(f"{found.topic} partition {found.partition} offset {found.offset} ({sure})")


def sql(
    context: typer.Context,
    query: str = typer.Argument(..., help="A query, in Spark's SQL."),
    engine: str | None = ENGINE,
    as_json: bool = AS_JSON,
) -> None:
    """Run a query over the tables and views of the lake. `--engine spark` takes any statement."""
    shared: Context = context.obj.by(engine)
    rows = shared.lake.rows(query, limit=MAX_ROWS)
    if as_json:
        shared.answer(rows)
        return
    table = plain_table(*rows.columns)
    for row in rows:
        table.add_row(*("NULL" if value is None else str(value) for value in row.values()))
    shared.out.print(table)
