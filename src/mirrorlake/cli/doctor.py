"""`mirrorlake doctor`: what a topology file needs, looked at one by one."""

from typing import TYPE_CHECKING

import typer

from mirrorlake.cli.context import AS_JSON, Context

if TYPE_CHECKING:
    from mirrorlake.library.answers import Rows

_MARKS = {"good": "ok  ", "note": "note", "bad": "BAD "}


def doctor(context: typer.Context, as_json: bool = AS_JSON) -> None:
    """Check what the topology file needs: programs, lake, clusters, rights; with what to do.
    Changes nothing, shows no secret, and exits 1 when a check fails."""
    shared: Context = context.obj
    checks = shared.lake.doctor()
    healthy = all(check["state"] != "bad" for check in checks)
    document = {"healthy": healthy, "checks": checks}
    shared.end(document, as_json, lambda: _show(shared, checks), healthy)


def _show(shared: Context, checks: "Rows") -> None:
    """A line for each check, and below it what to do."""
    for one in checks:
        style = {"bad": "red", "note": "yellow"}.get(one["state"])
        line = f"{_MARKS[one['state']]}  {one['check']}, {one['subject']}: {one['sentence']}"
        shared.out.print(line, style=style, soft_wrap=True)
        if one["fix"]:
            shared.out.print(f"      do: {one['fix']}", soft_wrap=True)
    counts = [sum(one["state"] == state for one in checks) for state in ("bad", "note")]
    shared.out.print(f"{len(checks)} checks: {counts[0]} failed, {counts[1]} to note")
