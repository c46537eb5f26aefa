"""`mirrorlake restore`: whole topics from the lake, on a cluster that has nothing in them."""

import typer

from mirrorlake.cli import completion
from mirrorlake.cli.context import AS_JSON, Context, past_time_of
from mirrorlake.cli.replay import ShownOnce
from mirrorlake.errors import InputError


def restore(
    context: typer.Context,
    source: str = typer.Option(
        ..., "--from", metavar="CLUSTER", help="The cluster that the topics were read from."
    ),
    target: str = typer.Option(..., "--to", metavar="CLUSTER", help="The cluster to make them on."),
    topic: list[str] = typer.Option(
        [],
        metavar="PATTERN",
        help="Only topics whose name matches this pattern.",
        autocompletion=completion.TOPICS,
    ),
    as_of: str | None = typer.Option(
        None,
        metavar="TIME",
        help="Restore what was there at this time, as 2026-11-21T03:12:00 (UTC, or with a zone).",
    ),
    as_of_offset: list[str] = typer.Option(
        [], metavar="TOPIC:PARTITION:OFFSET", help="Only what is below this offset."
    ),
    extras: str = typer.Option(
        "",
        "--with",
        metavar="WHAT",
        help="What to restore beside records: configs, acls, groups, separated by commas.",
    ),
    rename: str = typer.Option(
        "identity", metavar="POLICY", help="The policy by which the topics are named, as in a flow."
    ),
    compacted: bool = typer.Option(
        False, "--compacted", help="Only the last value of each key of a partition."
    ),
    start_over: bool = typer.Option(
        False, "--start-over", help="Start over although the same restore has not ended."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Show what would be done, and change nothing."
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Rebuild topics from the lake: as they were, in order, each record once. Exits 1 when
    something is left.

    The same command goes on where one was ended, by a kill too. The source is asked for nothing.
    """
    shared: Context = context.obj
    answer = ShownOnce(shared, as_json)
    resent = shared.lake.restore(
        source,
        target,
        topic,
        as_of=None if as_of is None else past_time_of("--as-of", as_of),
        extras=[name.strip() for name in extras.split(",") if name.strip()],
        below=dict(_below(text) for text in as_of_offset),
        rename=rename,
        compacted=compacted,
        start_over=start_over,
        dry_run=dry_run,
        report=None if as_json else lambda sent: shared.say(f"{sent:,} records sent"),
        answered=answer,
    )
    answer.end(resent)


def _below(text: str) -> tuple[tuple[str, int], int]:
    topic, _, place = text.partition(":")
    partition, _, offset = place.partition(":")
    if not (topic and partition.isdecimal() and offset.isdecimal()):
        raise InputError(
            f"--as-of-offset {text}: write topic, partition and offset, as orders:0:4200"
        )
    return (topic, int(partition)), int(offset)
