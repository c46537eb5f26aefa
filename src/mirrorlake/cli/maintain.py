"""`mirrorlake maintain`: the upkeep of the lake."""

import typer

from mirrorlake.cli.context import Context
from mirrorlake.terminal import plain_table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(maintain)


def maintain(
    context: typer.Context,
    retention_days: int | None = typer.Option(
        None,
        "--retention-days",
        min=1,
        help="Keep records for this many days, instead of what the file says.",
    ),
    vacuum_hours: int | None = typer.Option(
        None, "--vacuum-hours", min=1, help="Keep files that no version needs for this many hours."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Say what would be deleted, and change nothing."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
) -> None:
    """Delete old records that every flow has produced and old history, compact the tables, remove
    unused files.

    Runs beside `run`, or without it; once a day is enough.
    """
    shared: Context = context.obj
    done = shared.lake.maintain(
        retention_days=retention_days, vacuum_hours=vacuum_hours, dry_run=dry_run
    )
    document = done.to_dict()
    if as_json:
        shared.answer(document)
        return
    records = document["records"]
    if records["before"] is None:
        shared.say(
            "records are kept for ever; set maintain.retention_days, or give --retention-days"
        )
    else:
        shared.say(
            f"{records['removed']:,} records landed before {records['before']:%Y-%m-%d %H:%M} UTC "
            + _verb(dry_run)
        )
    for flow, count in _retained(records["held"]).items():
        shared.say(
            f"{flow} has not produced all of what is that old: records of {count} partitions are "
            "kept for it"
        )
    if document["thinned"]:
        shared.say(
            f"{document['thinned']:,} old samples are gone: one a minute is left, or one an hour"
        )
    table = plain_table("table", "files", "bytes")
    for name, size in document["tables"].items():
        files, volume = (
            f"{size['files_before']:,} → {size['files']:,}",
            f"{size['bytes_before']:,} → {size['bytes']:,}",
        )
        table.add_row(name, files, volume)
    shared.out.print(table)


def _verb(dry_run: bool) -> str:
    return "would be deleted" if dry_run else "were deleted"


def _retained(items: list[dict[str, object]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for retained in items:
        counts[str(retained["flow"])] = counts.get(str(retained["flow"]), 0) + 1
    return counts
