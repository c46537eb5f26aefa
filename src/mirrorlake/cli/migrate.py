"""`mirrorlake migrate`: groups from MirrorMaker 2's copies to ours, wave by wave, and back."""

from typing import Any

import typer

from mirrorlake.cli import completion
from mirrorlake.cli.context import AS_JSON, ENGINE, Context
from mirrorlake.terminal import print_table


def migrate(
    context: typer.Context,
    flow: str = completion.FLOW,
    topics: str = typer.Option(
        ..., metavar="REGEX", help="The topics of this wave: whole names, as at the source."
    ),
    groups: str = typer.Option(".*", metavar="REGEX", help="Only groups of these whole names."),
    copies: str = typer.Option(
        "{source}.{topic}",
        help="How MirrorMaker 2 names its copies; {topic} under its identity policy.",
    ),
    rollback: bool = typer.Option(
        False, "--rollback", help="From our copies back to those of MirrorMaker 2."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Show what would be done, change nothing."
    ),
    inexact: bool = typer.Option(
        False,
        "--inexact",
        help="Also move positions that are not exact: some records are read again.",
    ),
    engine: str | None = ENGINE,
    as_json: bool = AS_JSON,
) -> None:
    """Move consumer groups on the target from MirrorMaker 2's copies of topics to ours, so that
    each goes on with the record that it would have read next. Exits 1 when something is left; then
    run it again."""
    shared: Context = context.obj.by(engine)
    done = shared.lake.migrate(
        flow, topics, groups, copies=copies, rollback=rollback, dry_run=dry_run, inexact=inexact
    )
    document = done.to_dict()
    shared.end(document, as_json, lambda: _show(shared, document), done.complete)


def _show(shared: Context, migrated: dict[str, Any]) -> None:
    columns = ("from", "position", "to", "position", "was", "exact", "found by", "done", "what")
    rows = (
        (
            row["group"],
            f"{row['from_topic']}-{row['partition']}",
            *(row[name] for name in ("position", "to_topic", "to_position", "before")),
            "yes" if row["exact"] else "no",
            *(row[name] for name in ("method", "done", "detail")),
        )
        for row in migrated["groups"]
    )
    if migrated["groups"]:
        print_table(shared.out, "group", *columns, rows=rows, keep_first=True)
    else:
        shared.say("no group has a position in the topics that it would leave")
    for line in migrated["warnings"]:
        shared.say(line)
    for line in migrated["left"]:
        shared.say(f"left: {line}")
