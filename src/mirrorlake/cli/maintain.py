"""`mirrorlake maintain`: the upkeep of the lake."""

from collections import Counter

import typer

from mirrorlake.cli.context import AS_JSON, Context
from mirrorlake.terminal import print_table


def maintain(
    context: typer.Context,
    retention_days: int | None = typer.Option(
        None,
        min=1,
        help="Keep records for this many days, instead of what the file says.",
    ),
    vacuum_hours: int | None = typer.Option(
        None, min=1, help="Keep files that no version needs for this many hours."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Show what would be deleted, and change nothing."
    ),
    as_json: bool = AS_JSON,
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
            + ("would be deleted" if dry_run else "were deleted")
        )
    for flow, count in Counter(row["flow"] for row in records["held"]).items():
        shared.say(
            f"{flow} has not produced all of what is that old: records of {count} partitions are "
            "kept for it"
        )
    if document["thinned"]:
        shared.say(
            f"{document['thinned']:,} old samples are gone: one a minute is left, or one an hour"
        )
    what = ("files", "bytes")
    rows = (
        (name, *(f"{size[f'{kind}_before']:,} → {size[kind]:,}" for kind in what))
        for name, size in document["tables"].items()
    )
    print_table(shared.out, "table", *what, rows=rows)
