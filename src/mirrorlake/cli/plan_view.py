"""`mirrorlake plan` for a person: refusals in red with the fix, then what each flow would do."""

from typing import TYPE_CHECKING, Any

from mirrorlake.library.capacity import Needs, sentence
from mirrorlake.terminal import print_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def show_plan(out: "Console", document: dict[str, Any]) -> None:
    """Print the document that `OpenLake.plan` gives."""
    for problem in document["problems"]:
        _problem(out, problem)
    for flow in document["flows"]:
        _flow(out, flow)
    out.print(_totals(document["totals"]), soft_wrap=True)
    if document["needs"] is not None:
        out.print(sentence(Needs(**document["needs"])), soft_wrap=True)


def _problem(out: "Console", problem: dict[str, Any]) -> None:
    from rich.text import Text

    refused = problem["severity"] == "refuse"
    word = ("refused", "red") if refused else "note"
    out.print(Text.assemble(word, f": {problem['sentence']} ({problem['rule']})"), soft_wrap=True)
    if problem["fix"]:
        out.print(f"  to do: {problem['fix']}", soft_wrap=True)


def _flow(out: "Console", flow: dict[str, Any]) -> None:
    from rich.text import Text

    file = f" (sha256 {flow['policy_sha256']})" if flow["policy_sha256"] else ""
    facts = [
        f"{flow['policy']}{file} names",
        flow["delivery"],
        f"compressed by {flow['compression']}",
    ]
    facts += [f"provenance: {flow['provenance']}"] if flow["provenance"] != "none" else []
    facts += ["paused"] if flow["paused"] is True else []
    title = f"{flow['flow']}  ({', '.join(facts)})"
    if flow["unasked"] is not None:
        out.print(Text.assemble(title, ": ", ("not planned", "red"), f": {flow['unasked']}"))
        return
    if not flow["topics"]:
        out.print(f"{title}: no topic to mirror", soft_wrap=True)
        _topics_of_ours(out, flow)
        return
    columns = ("topic", "on the target", "partitions", "factor", "configs", "holds", "would")
    rows = (
        (
            *(topic[name] for name in ("topic", "target_topic", "partitions", "factor")),
            "\n".join(f"{key}={value}" for key, value in topic["configs"].items()),
            _holds(topic),
            _would(topic),
        )
        for topic in flow["topics"]
    )
    print_table(out, *columns, rows=rows, title=title)
    for change in flow["configs"]:
        after = "its default" if change["after"] is None else change["after"]
        refusal = (f" refused: {change['refusal']}", "red") if change["refusal"] else ""
        line = f"  config of {change['target_topic']}: {change['key']} from {change['before']} to "
        out.print(Text.assemble(line, after, refusal), soft_wrap=True)
    for acl in flow["acls"]:
        out.print(f"  acl: {acl['action']} {_acl(acl)}", soft_wrap=True)
    for acl in flow["acls_withheld"]:
        why = "since it would be written out for too many topics"
        out.print(f"  acl: not mirrored, {why}: {_acl(acl)}", soft_wrap=True)
    for acl in flow["acls_left"]:
        policy = f"policy {acl['policy']}" if acl["policy"] else "an earlier policy"
        line = f"  acl: left alone, since it was made under {policy}: {_acl(acl)}"
        out.print(line, soft_wrap=True)
    _topics_of_ours(out, flow)


def _acl(acl: dict[str, Any]) -> str:
    return (
        f"{acl['permission']} {acl['operation']} for {acl['principal']} from {acl['host']} on "
        f"{acl['pattern']} {acl['name']}"
    )


def _topics_of_ours(out: "Console", flow: dict[str, Any]) -> None:
    standing_by = "processes that stand by for each other"
    for what_for, of in (("heartbeats", "heartbeats"), (standing_by, "worker_topics")):
        for topic in flow[of]:
            made = f"create topic {topic['topic']} on {topic['cluster']}, factor {topic['factor']}"
            out.print(f"  {what_for}: {made}", soft_wrap=True)


def _holds(topic: dict[str, Any]) -> str:
    if topic["holder"] is None:
        return ""
    return f"{topic['holder']}: {topic['held_records']:,}" if topic["held_records"] else "nothing"


def _would(topic: dict[str, Any]) -> "Text":
    from rich.text import Text

    if topic["action"] == "refuse":
        return Text(f"refuse: {topic['reason']}", "red")
    return Text(
        "; ".join(part for part in (topic["action"].replace("_", " "), topic["note"]) if part)
    )


def _totals(totals: dict[str, Any]) -> str:
    """What it all comes to, a line each."""
    made, refused = totals["topics_to_create"], totals["topics_refused"]
    create, there, out = (
        f"{totals[f'partitions_{name}']:,}" for name in ("to_create", "there", "refused")
    )
    waiting = []
    for name, text in (
        ("offsets_at_source", "offsets at the source, not landed yet (at most as many records)"),
        ("records_staged", "records landed, not at the target yet"),
        ("bytes_staged", "bytes of these"),
    ):
        waiting.append(f"{'unknown' if totals[name] is None else format(totals[name], ',')} {text}")
    return (
        f"in all: {totals['topics']:,} topics, {made:,} to create, {refused:,} refused\n        "
        f"{totals['partitions']:,} partitions, {create} to create, {there} there, {out} refused\n"
        f"        waiting: {'; '.join(waiting)}\n        {totals['conflicts']:,} conflicts"
    )
