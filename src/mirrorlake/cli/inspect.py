"""The commands that look and change nothing: doctor, plan, status, translate, sql,
and trace, which tells one record's life."""

from typing import TYPE_CHECKING, Any

import typer

from mirrorlake.cli import completion
from mirrorlake.cli.context import AS_JSON, ENGINE, Context, time_of
from mirrorlake.cli.plan_view import show_plan
from mirrorlake.durations import duration
from mirrorlake.errors import InputError, TopologyError
from mirrorlake.terminal import print_table

if TYPE_CHECKING:
    from rich.console import Console

    from mirrorlake.library.answers import Rows

#: The default limit of rows that `sql` shows.
MAX_ROWS = 1_000
_MARKS = {"good": "ok  ", "note": "note", "bad": "BAD "}
#: Over the ten minutes up to the newest batch: soon after a start that includes the backlog.
_LATENCIES = ("p50, 10 min", "p99, 10 min")


def doctor(context: typer.Context, as_json: bool = AS_JSON) -> None:
    """Check what the topology file needs: programs, lake, clusters, rights; with what to do.
    Changes nothing, shows no secret, and exits 1 when a check fails."""
    shared: Context = context.obj
    checks = shared.lake.doctor()
    healthy = all(check["state"] != "bad" for check in checks)
    document = {"healthy": healthy, "checks": checks}
    shared.end(document, as_json, lambda: _show_checks(shared, checks), healthy)


def plan(
    context: typer.Context,
    flow: list[str] = typer.Option([], help="Only this flow.", autocompletion=completion.FLOWS),
    as_json: bool = AS_JSON,
) -> None:
    """Show everything that would be done, without doing it. Exits 2 when a flow must not run, 1
    when a topic is left out, or a flow could not be planned since a cluster does not answer."""
    shared: Context = context.obj
    document = shared.lake.plan(flow or None).to_dict()
    shared.end(document, as_json, lambda: show_plan(shared.out, document))
    refusals = [problem for problem in document["problems"] if problem["severity"] == "refuse"]
    for problem in refusals:
        if problem["topic"] is None:
            raise TopologyError(f"{problem['sentence']}; {problem['fix']}")
    if refusals or any(
        flow_plan["unasked"] is not None
        or any(topic["action"] == "refuse" for topic in flow_plan["topics"])
        for flow_plan in document["flows"]
    ):
        raise typer.Exit(1)


def status(context: typer.Context, engine: str | None = ENGINE, as_json: bool = AS_JSON) -> None:
    """Show what needs attention first, then how each flow stands: lag, latency, proofs. Exits 1
    when an alert condition holds, a law of replication is broken (a staged record without a target
    offset, a target that lost records), or there is no lake yet."""
    shared: Context = context.obj.by(engine)
    document = shared.lake.status().to_dict()
    shared.end(document, as_json, lambda: show_status(shared.out, document), document["healthy"])


def translate(
    context: typer.Context,
    flow: str = typer.Option(
        ...,
        help="The flow, as source->target, or a replay or restore.",
        autocompletion=completion.FLOWS,
    ),
    topic: str = typer.Option(
        ..., help="The topic, named as on the side of the offset.", autocompletion=completion.TOPICS
    ),
    partition: int = typer.Option(...),
    offset: int = typer.Option(..., help="A position: the next offset to be read."),
    reverse: bool = typer.Option(False, "--reverse", help="From the target back to the source."),
    engine: str | None = ENGINE,
    as_json: bool = AS_JSON,
) -> None:
    """Translate a position from the source to the target of a flow, or back."""
    shared: Context = context.obj.by(engine)
    there = shared.lake.translate(flow, topic, partition, offset, reverse=reverse)
    sure = "exact" if there.exact else there.reason
    line = f"{there.topic} partition {there.partition} offset {there.offset} ({sure})"
    shared.end(there.to_dict(), as_json, lambda: shared.out.print(line))


def sql(
    context: typer.Context,
    query: str = typer.Argument(..., help="A query, in Spark's SQL."),
    engine: str | None = ENGINE,
    limit: int = typer.Option(MAX_ROWS, min=0, help="Show at most this many rows; 0 shows all."),
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
    cells = (["NULL" if value is None else value for value in row.values()] for row in rows)
    print_table(shared.out, *rows.columns, rows=cells)
    if rows.truncated:
        shared.say(
            f"the first {limit:,} rows; there are more: --limit N shows N of them, --limit 0 all"
        )


def _show_checks(shared: Context, checks: "Rows") -> None:
    """A line for each check, and below it what to do."""
    for one in checks:
        style = {"bad": "red", "note": "yellow"}.get(one["state"])
        line = f"{_MARKS[one['state']]}  {one['check']}, {one['subject']}: {one['sentence']}"
        shared.out.print(line, style=style, soft_wrap=True)
        if one["fix"]:
            shared.out.print(f"      do: {one['fix']}", soft_wrap=True)
    counts = [sum(one["state"] == state for one in checks) for state in ("bad", "note")]
    shared.out.print(f"{len(checks)} checks: {counts[0]} failed, {counts[1]} to note")


def show_status(out: "Console", document: dict[str, Any]) -> None:
    """Print the document of `mirrorlake.OpenLake.status`."""
    for sentence in document["attention"]:
        _mark(out, "red", "needs you", sentence)
    for sentence in document["warnings"]:
        _mark(out, "yellow", "warning", sentence)
    for sentence in document["unchecked"]:
        _mark(out, "yellow", "unchecked", sentence)
    if document["healthy"]:
        checked = ", as far as was checked" if document["unchecked"] else ""
        warned = "; see the warnings above" if document["warnings"] else ""
        _mark(out, "green", "healthy", f"nothing needs you{checked}{warned}")
    columns = ("flow", "state", "lag", *_LATENCIES, "records", "topics", "last batch")
    print_table(out, *columns, "batches of a day", rows=map(_cells, document["flows"]))
    _show_workers(out, document["workers"])
    _show_proofs(out, document["proofs"])


def _show_workers(out: "Console", workers: list[dict[str, Any]]) -> None:
    """Which process does what, and which stand by, where Kafka decides that."""
    if workers:
        columns = ("work", "state", "host", "pid", "since")
        rows = ([worker[name] for name in columns] for worker in workers)
        print_table(out, *columns, rows=rows)


def _cells(flow: dict[str, Any]) -> tuple[object, ...]:
    lag = "-"
    if flow.get("lag_records") is not None:
        lag = f"{flow['lag_records']:,} records, {duration(1000 * (flow['lag_seconds'] or 0))}"
    held = max(0, (flow.get("lag_to_high_watermark") or 0) - (flow.get("lag_records") or 0))
    lag += f" ({held:,} more behind open transactions)" if held else ""
    percentiles = (flow.get(f"replication_{name}_ms") for name in ("p50", "p99"))
    last = flow.get("last_produced_at")
    topics = f"{flow['topics']}, {flow['partitions']} partitions" if flow.get("topics") else None
    parked = f" ({flow['parked']:,} parked)" if flow.get("parked") else ""
    known = "short_batches" in flow
    ways = f"{flow['short_batches']} short, {flow['long_batches']} long" if known else None
    return (
        flow["flow"],
        flow["standing"],
        lag,
        *(None if value is None else duration(value) for value in percentiles),
        None if flow.get("record_count") is None else f"{flow['record_count']:,}{parked}",
        topics,
        last and f"{last:%Y-%m-%d %H:%M:%S}",
        ways,
    )


def _show_proofs(out: "Console", proofs: list[dict[str, Any]]) -> None:
    """What of each topic is proven by content, where something was compared."""
    compared = [proof for proof in proofs if proof["audited_at"] is not None]
    if not compared:
        return
    columns = ("flow", "topic", "records", "proven", "gone", "since", "compared last", "differing")
    times = ("proven_since", "audited_at")
    rows = (
        (
            proof["flow"],
            proof["topic"],
            f"{proof['mapped_records']:,}",
            _percentage(proof["proven_share"]),
            # which nothing is left to compare with, as where a topic is compacted
            f"{proof['gone_records']:,}",
            *(proof[at] and f"{proof[at]:%Y-%m-%d %H:%M}" for at in times),
            proof["differing_ranges"],
        )
        for proof in compared
    )
    print_table(out, *columns, rows=rows)


def _percentage(share: float) -> str:
    """A share with two places, rounded down: 100 % is all of it."""
    return f"{int(share * 10_000 + 1e-6) / 100:.2f}%"


def _mark(out: "Console", style: str, word: str, text: str) -> None:
    from rich.text import Text

    out.print(Text.assemble((word, style), f": {text}"), soft_wrap=True)


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
