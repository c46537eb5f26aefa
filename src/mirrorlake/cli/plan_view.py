"""`mirrorlake plan` for a person: refusals in red with the fix, then what each flow would do."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def show_plan(out: Console, found: dict[str, Any]) -> None:
    """Print the document that `mirrorlake.engine.plan.make_plan` makes."""
    for problem in found["problems"]:
        _problem(out, problem)
    for flow in found["flows"]:
        _flow(out, flow)


def _problem(out: Console, problem: dict[str, Any]) -> None:
    refused = problem["severity"] == "refuse"
    word = "[red]refused[/red]" if refused else "note"
    out.print(f"{word}: {escape(problem['sentence'])} ({problem['rule']})", soft_wrap=True, highlight=False)
    if problem["fix"]:
        out.print(f"  to do: {escape(problem['fix'])}", soft_wrap=True, highlight=False)


def _flow(out: Console, flow: dict[str, Any]) -> None:
    told = [f"{flow['policy']} names", flow["delivery"]]
    told += [f"provenance: {flow['provenance']}"] if flow["provenance"] != "none" else []
    told += ["paused"] if flow["paused"] is True else []
    title = f"{flow['flow']}  ({', '.join(told)})"
    if not flow["topics"]:
        out.print(f"{title}: no topic to mirror", soft_wrap=True, highlight=False)
        _heartbeats(out, flow)
        return
    table = Table(title=title, title_justify="left")
    for column in ("topic", "on the target", "partitions", "factor", "configs", "would"):
        table.add_column(column)
    for topic in flow["topics"]:
        configs = "\n".join(f"{key}={value}" for key, value in topic["configs"].items())
        cells = (topic["topic"], topic["target_topic"], str(topic["partitions"]), str(topic["factor"]), configs)
        table.add_row(*(escape(cell) for cell in cells), _would(topic))
    out.print(table)
    for change in flow["configs"]:
        after = "its default" if change["after"] is None else change["after"]
        refusal = f" [red]refused: {escape(change['refusal'])}[/red]" if change["refusal"] else ""
        line = f"  config of {change['target_topic']}: {change['key']} from {change['before']} to {after}"
        out.print(escape(line) + refusal, soft_wrap=True, highlight=False)
    for acl in flow["acls"]:
        line = (
            f"  acl: {acl['action']} {acl['permission']} {acl['operation']} for {acl['principal']} from {acl['host']} "
            f"on {acl['pattern']} {acl['name']}"
        )
        out.print(escape(line), soft_wrap=True, highlight=False)
    _heartbeats(out, flow)


def _heartbeats(out: Console, flow: dict[str, Any]) -> None:
    for topic in flow["heartbeats"]:
        line = f"  heartbeats: create topic {topic['topic']} on {topic['cluster']}, factor {topic['factor']}"
        out.print(escape(line), soft_wrap=True, highlight=False)


def _would(topic: dict[str, Any]) -> str:
    if topic["action"] == "refuse":
        return f"[red]refuse: {escape(topic['reason'])}[/red]"
    return escape("; ".join(part for part in (topic["action"].replace("_", " "), topic["note"]) if part))
