"""`mirrorlake verify`: proof by content."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mirrorlake.cli import completion
from mirrorlake.cli.context import AS_JSON, Context, check_folder, past_time_of
from mirrorlake.errors import InputError
from mirrorlake.terminal import print_table

if TYPE_CHECKING:
    from mirrorlake.library.verify_answer import Verified


#: A shorter comparison prints nothing before its answer.
_QUICK = timedelta(seconds=10)
_STRETCH = ("flow", "partition", "source offsets")


def verify(
    context: typer.Context,
    flow: list[str] = typer.Option([], help="Only this flow.", autocompletion=completion.FLOWS),
    topic: list[str] = typer.Option(
        [],
        help="Only this topic, named as at the source or at the target.",
        autocompletion=completion.TOPICS,
    ),
    since: str | None = typer.Option(
        None, help="Only what reached the target since a time, such as 2026-11-21."
    ),
    offsets: str | None = typer.Option(
        None, metavar="A:B", help="Only source offsets A to B, inclusive."
    ),
    sample: str | None = typer.Option(
        None, metavar="1%", help="Compare only a part of the records, the same part each time."
    ),
    again: bool = typer.Option(False, "--again", help="Compare again what is already proven."),
    watch: bool = typer.Option(
        False, "--watch", help="Go on comparing what arrives, until Ctrl-C."
    ),
    max_mb_per_s: float | None = typer.Option(
        None, help="Read at most this much from each cluster."
    ),
    report: list[Path] = typer.Option([], help="Write the evidence to a file, .html or .json."),
    as_json: bool = AS_JSON,
) -> None:
    """Compare source, stage and target by content, record by record; exits 1 for any difference,
    and for anything that was selected and not compared, unless it is on its way.

    It goes on where the last one ended (table `audits`), and runs beside `run` or without it.
    """
    shared: Context = context.obj
    for file in report:
        if file.suffix not in (".html", ".json"):
            raise InputError(f"--report {file}: the name has to end with .html or .json")
        check_folder(file)
    verified = shared.lake.verify(
        flow or None,
        topic,
        since=None if since is None else past_time_of("--since", since),
        offsets=None if offsets is None else _offsets(offsets),
        sample=None if sample is None else _share(sample),
        again=again,
        watch=watch,
        max_mb_per_s=max_mb_per_s,
        report=None if as_json else lambda so_far: _progress(shared, so_far, watch),
    )
    for file in report:
        verified.write(file)
    document = verified.to_dict()
    shared.end(document, as_json, lambda: _show(shared, verified), verified.complete)


def _progress(shared: Context, so_far: "Verified", watch: bool) -> None:
    """What takes seconds ends with the same words in its answer."""
    if watch or so_far.ended - so_far.began > _QUICK:
        shared.say(f"so far: {_line(so_far)}")


def _show(shared: Context, verified: "Verified") -> None:
    if verified.differences:
        rows = ((*_stretch(row), row["kind"], row["detail"] or "") for row in verified.differences)
        print_table(shared.out, *_STRETCH, "kind", "what", rows=rows)
    if verified.not_compared:
        rows = ((*_stretch(row), row["reason"], row["detail"]) for row in verified.not_compared)
        print_table(shared.out, *_STRETCH, "not compared", "why", rows=rows)
    for reason, count in verified.excused.items():
        shared.out.print(
            f"{count:,} records are excused: {reason} (docs/trust.md says what that is)"
        )
    for sentence in verified.cut_sentences:
        shared.out.print(sentence)
    shared.out.print(_line(verified))


def _stretch(row: dict[str, Any]) -> tuple[str, str, str]:
    """The cells below `_STRETCH`."""
    until = "" if row["last_offset"] is None else row["last_offset"]
    return row["flow"], f"{row['topic']}-{row['partition']}", f"{row['first_offset']} to {until}"


def _line(verified: "Verified") -> str:
    before = f", {verified.proven_before:,} before" if verified.proven_before else ""
    count, left = len(verified.differences), len(verified.not_compared)
    differences = f"{count:,} differences" if count else "no difference"
    differences += f", {left:,} stretches not compared" if left else ""
    return (
        f"{verified.proven:,} of {verified.records:,} records proven by content in "
        f"{verified.ranges:,} ranges{before}; {differences}"
    )


def _offsets(text: str) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    if not colon or not first.isdecimal() or not last.isdecimal() or int(first) > int(last):
        raise InputError(
            f"--offsets {text}: write the first and the last source offset, as 0:99999"
        )
    return int(first), int(last)


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise InputError(f"--sample {text}: write a part as 1% or 0.01")
    return share
