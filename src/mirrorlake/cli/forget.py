"""`mirrorlake forget`: records leave the lake by a predicate."""

import sys
from typing import TYPE_CHECKING

import typer

from mirrorlake.cli import completion
from mirrorlake.cli.context import AS_JSON, Context, check_condition
from mirrorlake.errors import InputError
from mirrorlake.terminal import print_table

if TYPE_CHECKING:
    from mirrorlake.library.lake_answers import Forgotten


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
