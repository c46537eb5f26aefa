"""The commands that keep up the lake: `maintain`, and `register`, its names in a catalog."""

from collections import Counter
from typing import Any

import typer

from mirrorlake.cli.context import AS_JSON, Context
from mirrorlake.terminal import print_table


def maintain(
    context: typer.Context,
    retention_days: int | None = typer.Option(
        None, min=1, help="Keep records for this many days, instead of what the file says."
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
    for call in records["forgotten"]:
        flows = ", ".join(call["flows"])
        until = f"once {flows} has ended" if flows else "by the next call"
        shared.say(f"{call['records']:,} records that `forget` noted are deleted {until}")
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


def register(context: typer.Context, as_json: bool = AS_JSON) -> None:
    """Give the tables of a lake at a path or URL, and the views over them, their names in the
    catalog: lake.catalog and lake.schema. What is there stays, with what was granted on it.

    By the SQL warehouse that the file names, else by a session of Spark. Exits 2 where a name is
    another table's.
    """
    shared: Context = context.obj
    document = shared.lake.register().to_dict()
    shared.end(document, as_json, lambda: shared.say(_sentence(document)))


def _sentence(document: dict[str, Any]) -> str:
    schema = f"{document['catalog']}.{document['schema']}"
    if document["path"] is None:
        return f"the tables are those of {schema} itself: there is nothing to register"
    tables, views = (_counted(document[kind]) for kind in ("tables", "views"))
    return f"{schema}: tables {tables}; views {views}; the tables lie at {document['path']}"


def _counted(rows: list[dict[str, str]]) -> str:
    counts = Counter(row["action"] for row in rows)
    return ", ".join(f"{count} {action}" for action, count in sorted(counts.items()))
