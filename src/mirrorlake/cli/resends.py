"""Staged records sent again: `mirrorlake replay` sends those that a predicate picks, `mirrorlake
restore` whole topics to a cluster that has nothing in them."""

from datetime import datetime
from typing import TYPE_CHECKING

import typer

from mirrorlake.cli import completion
from mirrorlake.cli.context import AS_JSON, Context, check_condition, past_time_of
from mirrorlake.errors import InputError
from mirrorlake.terminal import print_table

if TYPE_CHECKING:
    from mirrorlake.library.resent import Resent


def replay(
    context: typer.Context,
    topic: str | None = typer.Option(
        None, help="The topic, named as at its source.", autocompletion=completion.TOPICS
    ),
    where: str | None = typer.Option(
        None, help="A condition in Spark's SQL about columns of `records`."
    ),
    to: str | None = typer.Option(
        None, metavar="TOPIC", help="The topic to write to; it is created if missing."
    ),
    parked: bool = typer.Option(
        False, "--parked", help="Send parked records to their flows' own topics instead."
    ),
    flow: str | None = typer.Option(
        None, help="With --parked: only of this flow.", autocompletion=completion.FLOWS
    ),
    source: str | None = typer.Option(
        None, "--from", metavar="CLUSTER", help="The cluster that they were read from."
    ),
    cluster: str | None = typer.Option(None, help="The cluster to write to."),
    max_records: int | None = typer.Option(
        None, help="Send at most so many records, the first by partition and offset."
    ),
    rate: int | None = typer.Option(None, help="At most so many records a second, on average."),
    into_mirror: bool = typer.Option(
        False, "--into-mirror", help="Allow --to to be a topic that a flow writes to."
    ),
    start_over: bool = typer.Option(
        False, "--start-over", help="Start over, though the same replay has not ended."
    ),
    private: bool = typer.Option(
        False, "--private", help="Keep the condition out of the lake's tables."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Count the records, show five of them, and send none."
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Send staged records that a predicate picks to a topic: in source order, each once. Exits 1
    when some are left.

    The same command goes on where one was ended, by a kill too.
    """
    shared: Context = context.obj
    report = None if as_json else lambda sent: shared.say(f"{sent:,} records sent")
    if parked:
        if any((where, to, source, cluster, max_records, into_mirror, private)):
            raise InputError(
                "--parked sends what is parked to where it was to go: only --flow, --topic and "
                "--rate narrow it"
            )
        resent = shared.lake.replay_parked(
            flow, topic, rate=rate, start_over=start_over, dry_run=dry_run, report=report
        )
        tell(shared, resent, as_json)
        return
    if flow is not None:
        raise InputError(
            "--flow is for --parked; of records that --where picks, --from names the cluster that "
            "they were read from"
        )
    if topic is None or where is None or to is None:
        raise InputError(
            "say which records by --topic and --where, and where they go by --to; or --parked"
        )
    check_condition(where)
    answer = _ShownOnce(shared, as_json)
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
        answered=answer,
    )
    answer.end(resent)


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
    answer = _ShownOnce(shared, as_json)
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


class _ShownOnce:
    """Shows what was sent, once: when called with it, before its end is noted, else at the end."""

    def __init__(self, shared: Context, as_json: bool) -> None:
        self._shared, self._as_json, self._shown = shared, as_json, False

    def __call__(self, resent: "Resent") -> None:
        _answer(self._shared, resent, self._as_json)
        self._shown = True

    def end(self, resent: "Resent") -> None:
        """End the command, with 1 where something is left."""
        if not self._shown:
            tell(self._shared, resent, self._as_json)
        elif not resent.complete:
            raise typer.Exit(1)


def _answer(shared: Context, resent: "Resent", as_json: bool, good: bool = True) -> None:
    shared.end(resent.to_dict(), as_json, lambda: _show(shared, resent), good)


def tell(shared: Context, resent: "Resent", as_json: bool) -> None:
    """Show what was sent, or would be; ends the command with 1 where something is left."""
    _answer(shared, resent, as_json, resent.complete or resent.dry_run)


def _show(shared: Context, resent: "Resent") -> None:
    count = "would be sent" if resent.dry_run else "records at the target"
    sent = [(row["topic"], row["target_topic"], f"{row['records']:,}") for row in resent.topics]
    print_table(shared.out, "topic", "to", count, rows=sent)
    if resent.examples:
        rows = (
            (row["partition"], row["offset"], _date(row["timestamp"]), row["key"], row["value"])
            for row in resent.examples
        )
        columns = ("partition", "offset", "timestamp", "key", "value")
        print_table(shared.out, *columns, rows=rows)
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
        columns = ("topic", "partition", "up to offset", "newest record")
        rows: list[tuple[object, ...]] = [
            (row["topic"], row["partition"], row["end"], _date(row["newest_at"]))
            for row in resent.reached
        ]
        print_table(shared.out, *columns, rows=rows)
    if resent.configs or resent.acls:
        rows = [(row["topic"], row["after"], row["error"] or "") for row in resent.configs]
        for row in resent.acls:
            what = f"{row['permission']} {row['operation']} {row['principal']}"
            rows.append((row["name"], what, row["error"] or ""))
        print_table(shared.out, "topic", "what", "error", rows=rows)
    if resent.groups:
        rows = []
        for row in resent.groups:
            there = "" if row["to_position"] is None else row["to_position"]
            place, target = (f"{row[topic]}-{row['partition']}" for topic in ("topic", "to_topic"))
            rows.append((row["group"], place, row["position"], target, there, row["done"]))
        names = ("group", "partition", "position", "restored", "position", "done")
        print_table(shared.out, *names, rows=rows)


def _below(text: str) -> tuple[tuple[str, int], int]:
    topic, _, place = text.partition(":")
    partition, _, offset = place.partition(":")
    if not (topic and partition.isdecimal() and offset.isdecimal()):
        raise InputError(
            f"--as-of-offset {text}: write topic, partition and offset, as orders:0:4200"
        )
    return (topic, int(partition)), int(offset)
