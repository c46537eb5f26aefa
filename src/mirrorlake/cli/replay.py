"""`mirrorlake replay`: staged records, picked by a predicate, sent again."""

from datetime import datetime
from typing import TYPE_CHECKING

import typer

from mirrorlake.cli.context import Context
from mirrorlake.errors import InputError
from mirrorlake.terminal import plain_table

if TYPE_CHECKING:
    from mirrorlake.library.resent import Resent


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(replay)


def replay(
    context: typer.Context,
    topic: str | None = typer.Option(None, "--topic", help="The topic, named as at its source."),
    where: str | None = typer.Option(
        None, "--where", help="A condition in Spark's SQL about columns of `records`."
    ),
    to: str | None = typer.Option(
        None, "--to", metavar="TOPIC", help="The topic that gets them; made if missing."
    ),
    parked: bool = typer.Option(
        False, "--parked", help="Send parked records to their flows' own topics instead."
    ),
    flow: str | None = typer.Option(None, "--flow", help="With --parked: only of this flow."),
    source: str | None = typer.Option(
        None, "--from", metavar="CLUSTER", help="The cluster that they were read from."
    ),
    cluster: str | None = typer.Option(None, "--cluster", help="The cluster that gets them."),
    max_records: int | None = typer.Option(
        None, "--max-records", help="Only the first ones, by partition and offset."
    ),
    rate: int | None = typer.Option(
        None, "--rate", help="At most so many records a second, on average."
    ),
    into_mirror: bool = typer.Option(
        False, "--into-mirror", help="Let --to be a topic that a flow writes to."
    ),
    start_over: bool = typer.Option(
        False, "--start-over", help="Start over, though the same replay has not ended."
    ),
    private: bool = typer.Option(
        False, "--private", help="Keep the condition out of the lake's tables."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Say how many, show five, and do nothing."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
) -> None:
    """Send staged records that a predicate picks to a topic: in source order, each once. Exits 1
    when some are left.

    The same command goes on where one was ended, by a kill too.
    """
    shared: Context = context.obj
    report = None if as_json else lambda sent: shared.say(f"{sent:,} records sent")
    if parked:
        if any(
            option for option in (where, to, source, cluster, max_records, into_mirror, private)
        ):
            raise InputError(
                "--parked sends what is parked to where it was to go: only --flow, --topic and "
                "--rate narrow it"
            )
        tell(
            shared,
            shared.lake.replay_parked(
                flow, topic, rate=rate, start_over=start_over, dry_run=dry_run, report=report
            ),
            as_json,
        )
        return
    if topic is None or where is None or to is None or flow is not None:
        raise InputError(
            "say which records by --topic and --where, and where they go by --to; or --parked"
        )
    resent = shared.lake.replay(
        topic,
        where,
        to,
        source=source,
        cluster=cluster,
        max_records=max_records,
        rate=rate,
        into_mirror=into_mirror,
        start_over=start_over,
        private=private,
        dry_run=dry_run,
        report=report,
    )
    tell(shared, resent, as_json)


def tell(shared: Context, resent: "Resent", as_json: bool) -> None:
    """Show what was sent, or would be; ends the command with 1 where something is left."""
    if as_json:
        shared.answer(resent.to_dict())
    else:
        _show(shared, resent)
    if not (resent.complete or resent.dry_run):
        raise typer.Exit(1)


def _show(shared: Context, resent: "Resent") -> None:
    table = plain_table(
        "topic", "to", "would be sent" if resent.dry_run else "records at the target"
    )
    for row in resent.topics:
        table.add_row(row["topic"], row["target_topic"], f"{row['records']:,}")
    shared.out.print(table)
    if resent.examples:
        examples = plain_table("partition", "offset", "timestamp", "key", "value")
        for row in resent.examples:
            cells = _date(row["timestamp"]), row["key"] or "-", row["value"] or "-"
            examples.add_row(str(row["partition"]), str(row["offset"]), *cells)
        shared.out.print(examples)
    _show_rest(shared, resent)
    for line in resent.warnings:
        shared.say(line)
    if resent.flow is not None and resent.complete:
        shared.say(f"done; {resent.flow} is its name in offset_map and changes")


def _date(at: datetime | None) -> str:
    return "no date" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def _show_rest(shared: Context, resent: "Resent") -> None:
    """What a restore tells beside its records."""
    if resent.reached:
        ends = plain_table("topic", "partition", "up to offset", "newest record")
        for row in resent.reached:
            ends.add_row(
                row["topic"], str(row["partition"]), str(row["end"]), _date(row["newest_at"])
            )
        shared.out.print(ends)
    if resent.configs or resent.acls:
        made = plain_table("topic", "what", "error")
        for row in resent.configs:
            made.add_row(row["topic"], row["after"], row["error"] or "")
        for row in resent.acls:
            made.add_row(
                row["name"],
                f"{row['permission']} {row['operation']} {row['principal']}",
                row["error"] or "",
            )
        shared.out.print(made)
    if resent.groups:
        groups = plain_table("group", "partition", "position", "restored", "position", "done")
        for row in resent.groups:
            there = "" if row["to_position"] is None else str(row["to_position"])
            place, target = (
                f"{row['topic']}-{row['partition']}",
                f"{row['to_topic']}-{row['partition']}",
            )
            groups.add_row(row["group"], place, str(row["position"]), target, there, row["done"])
        shared.out.print(groups)
