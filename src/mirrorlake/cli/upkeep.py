"""The commands that keep up the lake: `maintain`; `register`, its names in a catalog; and `forget`,
by which records that match a predicate leave it."""

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import typer

from mirrorlake.cli import completion
from mirrorlake.cli.context import AS_JSON, Context, check_condition
from mirrorlake.errors import InputError
from mirrorlake.terminal import print_table

if TYPE_CHECKING:
    from mirrorlake.library.lake_answers import Forgotten


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


def forget(
    context: typer.Context,
    topic: list[str] = typer.Option(
        ...,
        help="The topic, named as at the source; may be given again.",
        autocompletion=completion.TOPICS,
    ),
    where: str = typer.Option(
        ..., help="Which records, in Spark's SQL over the columns of `records`."
    ),
    source: str | None = typer.Option(
        None, "--from", help="The source cluster, where several have such a topic."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Count the records that would be deleted, and change nothing."
    ),
    yes: bool = typer.Option(False, "--yes", help="Delete without asking."),
    as_json: bool = AS_JSON,
) -> None:
    """Delete staged records by a predicate; the map stays exact. Exits 1 when some have to wait for
    a flow, or other topics of the stage hold the same records.

    Source and target keep theirs. Restores and replays cannot send them again.
    """
    shared: Context = context.obj
    check_condition(where)
    if not (dry_run or yes):
        if as_json or not sys.stdin.isatty():
            raise InputError(
                "forget deletes what nothing brings back: look with --dry-run, and say --yes"
            )
        _show(shared, shared.lake.forget(topic, where, source=source, dry_run=True))
        typer.confirm("Delete them?", abort=True)
    forgotten = shared.lake.forget(topic, where, source=source, dry_run=dry_run)
    good = not (forgotten.waiting or forgotten.elsewhere)
    shared.end(forgotten.to_dict(), as_json, lambda: _show(shared, forgotten), good)


def _show(shared: Context, forgotten: "Forgotten") -> None:
    verb = "would be deleted" if forgotten.dry_run else "were deleted"
    shared.out.print(
        f"{forgotten.records:,} records in {forgotten.files:,} files of the stage {verb}"
    )
    if forgotten.finished:
        shared.out.print(
            f"{forgotten.finished:,} records of a call that was killed were deleted first"
        )
    if len(forgotten.topics) > 1:
        counts = ("records", "files", "waiting")
        rows = ((row["topic"], *(f"{row[name]:,}" for name in counts)) for row in forgotten.topics)
        print_table(shared.out, "topic", *counts, rows=rows)
    if forgotten.waiting:
        shared.out.print(
            f"{forgotten.waiting:,} more are not in the map of each flow yet, and stay; call it "
            "again later"
        )
        for row in forgotten.waits:
            shared.out.print(f"  {row['flow']}: {row['why']}", soft_wrap=True)
    for row in forgotten.elsewhere:
        count = "maybe some" if row["records"] is None else f"{row['records']:,}"
        shared.out.print(
            f"{count} of the same records are staged as topic {row['topic']} of cluster "
            f"{row['source']}, and stay: call it again with --from {row['source']} --topic "
            f"{row['topic']}",
            soft_wrap=True,
        )
    for name in forgotten.replays:
        shared.out.print(
            f"`changes` keeps the predicate of {name}, which was not --private", soft_wrap=True
        )
    if forgotten.gone_after is not None:
        shared.out.print(
            f"the first `mirrorlake maintain` after {forgotten.gone_after:%Y-%m-%d %H:%M} UTC "
            "removes the files that still hold them; until then they can be read by time travel. "
            "Source and target keep theirs",
            soft_wrap=True,
        )
