"""`mirrorlake resolve`: what waits for an operator's decision, and deciding it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from mirrorlake.cli import completion
from mirrorlake.cli.context import AS_JSON, ENGINE, Context, typed
from mirrorlake.terminal import print_table

_DECIDED = (
    "a `mirrorlake run` that is running goes by this within 10 seconds, else the next one does; "
    "`mirrorlake status` says how it stands"
)


def resolve(
    context: typer.Context,
    flow: str | None = typer.Option(
        None, help="Only incidents of this flow.", autocompletion=completion.FLOWS
    ),
    topic: str | None = typer.Option(
        None, help="Only incidents of this source topic.", autocompletion=completion.TOPICS
    ),
    partition: int | None = typer.Option(None, help="Only incidents of this partition."),
    kind: str | None = typer.Option(None, help="Only incidents of this kind."),
    target_topic: str | None = typer.Option(
        None, help="Only incidents about this target topic, where a source topic had several."
    ),
    choice: str | None = typer.Option(
        None, help="The decision; without it, open incidents are listed."
    ),
    engine: str | None = ENGINE,
    as_json: bool = AS_JSON,
) -> None:
    """List open incidents with what can be chosen, or decide them with --choice. A running `run`
    notices."""
    shared: Context = context.obj.by(engine)
    wanted = (flow, topic, partition, kind)
    left_open: Sequence[Mapping[str, Any]] = ()
    if choice is None:
        incidents = shared.lake.incidents(*wanted, target_topic=target_topic)
    else:
        incidents = shared.lake.resolve(choice, *wanted, target_topic=target_topic)
        left_open = incidents.left_open
    if as_json:
        left = {} if choice is None else {"left_open": left_open}
        shared.answer({"choice": choice, "incidents": incidents, **left})
        return
    if not incidents:
        narrowed = any(value is not None for value in (*wanted, target_topic))
        shared.say(f"no incident {'that is meant by these options ' if narrowed else ''}is open")
        return
    rows = []
    for row in incidents:
        suffix = "" if row["partition"] is None else f"-{row['partition']}"
        known = row["first_offset"] is not None
        offsets = f"{row['first_offset']} to {row['last_offset']}" if known else ""
        choices = "\n".join(f"{name}: {meaning}" for name, meaning in row["choices"].items())
        place = (f"{row['topic'] or ''}{suffix}", offsets)
        several = "--target-topic" in row["decide_by"]
        detail = f"{row['target_topic']}: {row['detail']}" if several else row["detail"]
        rows.append((row["flow"], row["kind"], *place, detail, choice or choices))
    columns = ("flow", "kind", "topic", "offsets", "what", "decided" if choice else "choice")
    print_table(shared.out, *columns, rows=rows)
    lines = _what_helps(shared.config, incidents) if choice is None else (_DECIDED,)
    for line in (*lines, *_left_open(shared.config, left_open)):
        shared.say(line)


def _what_helps(config: Path, incidents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What to do about open incidents: what helps without a decision, and how to decide others."""
    passing = {row["kind"]: row["helps"] for row in incidents if row["closes_by_itself"]}
    yield from (f"{kind}: {helps}" for kind, helps in passing.items())
    decided = [row for row in incidents if row["kind"] not in passing]
    if decided:
        which = "the others" if passing else "these"
        yield f"decide the first of {which} by: {_how_to_decide(config, decided[0])}"


def _left_open(config: Path, incidents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """That incidents of other target topics stay open; nothing where there are none."""
    if incidents:
        names = ", ".join(sorted({row["target_topic"] for row in incidents}))
        which = "1 incident stays" if len(incidents) == 1 else f"{len(incidents)} incidents stay"
        yield (
            f"{which} open, about another target topic ({names}): decide the first by: "
            f"{_how_to_decide(config, incidents[0])}"
        )


def _how_to_decide(config: Path, incident: Mapping[str, Any]) -> str:
    """The command that decides an incident, with each of its choices."""
    first, *others = incident["choices"]
    line = typed(config, incident["decide_by"].removeprefix("mirrorlake "))
    or_others = f" (or {', '.join(others)})" if others else ""
    return f"{line} --choice {first}{or_others}"
