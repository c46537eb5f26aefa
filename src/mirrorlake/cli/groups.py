"""Groups: `groups` shows them, `failover` and `failback` move them, `divergence` what was lost."""

from collections.abc import Callable, Sequence
from typing import Any

import typer

from mirrorlake.cli import completion
from mirrorlake.cli.context import AS_JSON, ENGINE, Context
from mirrorlake.errors import InputError
from mirrorlake.terminal import print_table

GROUPS = typer.Option(
    [], "--group", help="The group; may be given several times.", autocompletion=completion.GROUPS
)
ALL_GROUPS = typer.Option(False, "--all-groups", help="All groups that the flow mirrors.")
DRY_RUN = typer.Option(False, "--dry-run", help="Show what would be done, change nothing.")
FORCE = typer.Option(
    False, "--force", help="Move positions backwards too, and those that their owners set back."
)
NO_DRAIN = typer.Option(False, "--no-drain", help="Do not catch up first.")
_TIME = "%Y-%m-%d %H:%M:%S"


def groups(
    context: typer.Context,
    flow: list[str] = completion.ONLY_FLOWS,
    group: list[str] = typer.Option(
        [], help="Only this group; may be given several times.", autocompletion=completion.GROUPS
    ),
    engine: str | None = ENGINE,
    as_json: bool = AS_JSON,
) -> None:
    """Show where groups stand on both sides, and what a failover now would mean. Exits 1 when a
    cluster did not report everything."""
    shared: Context = context.obj.by(engine)
    known = shared.lake.flows
    flows = [known[name] for name in flow] or known.enabled()
    answers = [shared.lake.groups(open_flow.name, group or None) for open_flow in flows]
    documents = [answer.to_dict() for answer in answers]

    def show() -> None:
        for document in documents:
            _show_groups(shared, document)

    complete = all(answer.complete for answer in answers)
    shared.end({"flows": documents}, as_json, show, complete)


def _moving(method: str, text: str) -> Callable[..., None]:
    """The command that moves groups by this method of a lake."""

    def move(
        context: typer.Context,
        flow: str = completion.FLOW,
        group: list[str] = GROUPS,
        all_groups: bool = ALL_GROUPS,
        dry_run: bool = DRY_RUN,
        force: bool = FORCE,
        no_drain: bool = NO_DRAIN,
        engine: str | None = ENGINE,
        as_json: bool = AS_JSON,
    ) -> None:
        shared, named = context.obj.by(engine), checked_groups(group, all_groups)
        moving = getattr(shared.lake, method)
        done = moving(flow, named, dry_run=dry_run, force=force, drain=not no_drain)
        document = done.to_dict()
        shared.end(document, as_json, lambda: _show_moves(shared, document), done.complete)

    move.__name__, move.__doc__ = method, text
    return move


failover = _moving(
    "failover",
    "Move groups to the target of a flow: catch up, translate, set, read back. Exits 1 when "
    "something is left; then run it again.",
)
failback = _moving(
    "failback",
    "Move groups from the target of a flow back to its source, by the exact map. Exits 1 when "
    "something is left; then run it again.",
)


def divergence(
    context: typer.Context,
    flow: str = completion.FLOW,
    engine: str | None = ENGINE,
    as_json: bool = AS_JSON,
) -> None:
    """List the source records that never reached the target of a flow. Exits 1 when there are
    some, or nothing is known of the source."""
    shared: Context = context.obj.by(engine)
    lost = shared.lake.flows[flow].divergence()
    document = lost.to_dict()
    shared.end(document, as_json, lambda: _show_divergence(shared, document), lost.headline[1])


def checked_groups(names: Sequence[str], everything: bool) -> tuple[str, ...] | None:
    """The groups that `--group` and `--all-groups` mean. Raises InputError unless it is exactly one
    of them."""
    if bool(names) == everything:
        raise InputError(
            "say which groups: either --group NAME, several times for several, or --all-groups"
        )
    return None if everything else tuple(dict.fromkeys(names))


def _show_groups(shared: Context, answer: dict[str, Any]) -> None:
    side = ("position", "lag", "state")
    rows = (
        (
            row["group"],
            f"{row['topic']}-{row['partition']}",
            *(row[f"source_{name}"] for name in side),
            f"{row['target_topic']} {row['translated_position']}",
            *(row[f"target_{name}"] for name in side),
            _meaning(row),
        )
        for row in answer["groups"]
    )
    columns = ("group", "topic", *side, "target", *side, "failover now")
    shared.out.print(f"flow {answer['flow']}")
    print_table(shared.out, *columns, rows=rows, keep_first=True)
    for alias in ("source", "target"):
        if answer[f"{alias}_unreachable"]:
            shared.say(answer[f"{alias}_unreachable"])
    for why in answer["untold"]:
        shared.say(f"not all groups were reported: {why}")
    for name, why in answer["errors"].items():
        shared.say(f"group {name} was not reported: {why}")
    for name, why in answer["not_mirrored"].items():
        shared.say(f"group {name} is {why}")
    for name, why in answer["topics_waiting"].items():
        shared.say(f"topic {name}: {why}")
    for name in sorted({row["group"] for row in answer["groups"] if row.get("reads_uncommitted")}):
        shared.say(
            f"group {name} has read records at the target that are not committed: its consumers "
            "need isolation.level=read_committed (docs/failover.md)"
        )


def _show_moves(shared: Context, moves: dict[str, Any]) -> None:
    columns = ("from", "position", "to", "position", "before", "done", "read again", "what")
    rows = (
        (
            row["group"],
            f"{row['topic']}-{row['partition']}",
            row["position"],
            f"{row['to_topic']}-{row['partition']}",
            *(row[name] for name in ("to_position", "before", "done")),
            _again(row),
            row["detail"],
        )
        for row in moves["groups"]
    )
    for drained in moves["drained"]:
        state = "is drained" if drained["complete"] else "is not drained"
        shared.say(f"flow {drained['flow']} {state} ({drained['records']:,} records on the way)")
    print_table(shared.out, "group", *columns, rows=rows, keep_first=True)
    if moves["origin_unreachable"]:
        shared.say(f"{moves['origin_unreachable']}; the last checkpoints were used")
        _show_divergence(shared, moves)
    for line in moves["warnings"]:
        shared.say(line)
    for line in moves["left"]:
        shared.say(f"left: {line}")


def _show_divergence(shared: Context, lost: dict[str, Any]) -> None:
    parts = [(row, row["record_count"], "only in the lake") for row in lost["staged_only"]]
    parts += [
        (row, None, f"unknown, at {row['sampled_at']:{_TIME}}") for row in lost["never_staged"]
    ]
    rows = (
        (f"{row['topic']}-{row['partition']}", row["first_offset"], row["last_offset"], *rest)
        for row, *rest in parts
    )
    print_table(shared.out, "topic", "first", "last", "records", "where", rows=rows)
    if lost["sampled_at"] is None:
        shared.say(
            "the flow was never sampled, as where its first run was killed, or it selects no "
            "topic: what its source has, and the lake has not, is not known"
        )
    else:
        shared.say(f"as of {lost['sampled_at']:{_TIME}}: what the source got later is not known")


def _meaning(row: dict[str, Any]) -> str:
    again = (
        f"reads again: {_again(row)}" if row["read_again_at_most"] or not row["reason"] else None
    )
    meaning = "exact" if row["exact"] and not row["read_again_at_most"] else again
    return "; ".join(part for part in (meaning, row["reason"]) if part)


def _again(row: dict[str, Any]) -> str:
    return str(row["read_again_at_most"] and f"up to {row['read_again_at_most']:,}")
