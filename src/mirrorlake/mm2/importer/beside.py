"""Makes a topology that runs beside MirrorMaker 2: it writes under different names, and into none
of MirrorMaker 2's topics (docs/migrate.md)."""

from collections.abc import Mapping
from typing import Any

from mirrorlake.config.flow import Flow
from mirrorlake.errors import InputError
from mirrorlake.mm2.importer.report import Report
from mirrorlake.naming.policy import escape
from mirrorlake.naming.selection import DEFAULT_TOPICS_EXCLUDE

#: The part between two separators in our names: `east.mirrorlake.orders` beside `east.orders`.
MARK = "mirrorlake"
#: MirrorMaker 2 keeps doing these, under names that its clients know or for groups that it knows.
_LEFT_TO_IT = {
    "emit_heartbeats_enabled": "MirrorMaker 2 writes heartbeats, and mirrors them",
    "heartbeats_replication_enabled": "its heartbeats are no records to migrate",
    "emit_checkpoints_enabled": "its clients translate by its checkpoints, to its copies",
    "sync_group_offsets_enabled": "groups are moved wave by wave, by `mirrorlake migrate`",
}


def set_beside(document: dict[str, Any], report: Report) -> None:
    """Change a topology to run beside MirrorMaker 2, and report the choices and reasons.

    Raises InputError if no distinct names are possible.
    """
    given = {
        name: {**document.get("defaults", {}), **flow} for name, flow in document["flows"].items()
    }
    running = {name: flow for name, flow in given.items() if flow.get("enabled", True)}
    if not running:
        raise InputError("no flow of the files runs, so there is nothing to run beside")
    ours = {name: _names(document, flow) for name, flow in running.items()}
    document["defaults"] = {
        **document.get("defaults", {}),
        **dict.fromkeys(_LEFT_TO_IT, False),
        "policy": "default",
    }
    document["defaults"].pop("replication_policy_internal_topic_separator_enabled", None)
    for name, flow in document["flows"].items():
        for key in (*_LEFT_TO_IT, "policy", "replication_policy_internal_topic_separator_enabled"):
            flow.pop(key, None)
        flow.update(ours.get(name, {}))
    document["flows"] = document.pop("flows")  # keeps the flows after the defaults
    for name in running:
        _say_names(name, running[name], ours[name]["replication_policy_separator"], report)
    for key, why in _LEFT_TO_IT.items():
        report.note(f"beside: {key} is false: {why}; switch it on when MirrorMaker 2 is gone")
    _say_limits(running, report)


def _names(document: Mapping[str, Any], flow: Mapping[str, Any]) -> dict[str, Any]:
    """Settings to mirror what MirrorMaker 2 does, under names never MirrorMaker 2's."""
    between = _separator(flow)
    mark = f"{between}{MARK}{between}"
    if len(mark) > 16:
        raise InputError(
            f"replication.policy.separator {between} is too long for names beside it; write the "
            "flow by hand"
        )
    if flow.get("policy") == "identity":
        copies = [rf".*{escape(mark)}.*"]
    else:
        ours = escape(mark[len(between) :])
        copies = [rf"{escape(alias + between)}(?!{ours}).*" for alias in document["clusters"]]
    known = flow.get("topics_exclude", list(DEFAULT_TOPICS_EXCLUDE))
    sep = escape(between)
    internal = [rf"mm2.*{sep}internal", rf"(?:.*{sep})?checkpoints{sep}internal"]
    # a topic of users may be named device.heartbeats
    aliases = "|".join(escape(alias) for alias in document["clusters"])
    beats = rf"(?:(?:{aliases}){sep})*heartbeats"
    excluded = list(dict.fromkeys([*known, *copies, *internal, beats]))
    return {"replication_policy_separator": mark, "topics_exclude": excluded}


def _separator(flow: Mapping[str, Any]) -> str:
    """MirrorMaker 2's separator."""
    return str(flow.get("replication_policy_separator", Flow().replication_policy_separator))


def _say_names(name: str, theirs: Mapping[str, Any], mark: str, report: Report) -> None:
    source, _, target = name.partition("->")
    by_alias = f"{{source}}{_separator(theirs)}{{topic}}"
    copies = "{topic}" if theirs.get("policy") == "identity" else by_alias
    copy = copies.replace("{source}", source).replace("{topic}", "orders")
    report.note(
        f"beside: flow {name} writes orders to {source}{mark}orders on {target}, where MirrorMaker "
        f"2 writes {copy}: neither writes into a topic of the other, and neither mirrors what the "
        f"other wrote; move groups with mirrorlake migrate --flow '{name}' --topics REGEX --copies "
        f"'{copies}'"
    )


def _say_limits(running: Mapping[str, Mapping[str, Any]], report: Report) -> None:
    """Report what should be changed in MirrorMaker 2 itself."""
    identity = [name for name, flow in running.items() if flow.get("policy") == "identity"]
    targets = {name.partition("->")[2] for name in running}
    if identity or any(name.partition("->")[0] in targets for name in running):
        marks = sorted({_separator(flow) for flow in running.values()})
        patterns = ", ".join(f".*{escape(between)}{MARK}{escape(between)}.*" for between in marks)
        report.note(
            f"beside: add {patterns} to MirrorMaker 2's topics.exclude and restart it: on a "
            "cluster that is a target and a source it would mirror our copies on, which costs, "
            "and under the identity policy brings them back"
        )
    both = [name for name in identity if "->".join(reversed(name.split("->"))) in identity]
    if both:
        report.note(
            f"beside: {' and '.join(both)} share topics under one name, so their records are mixed "
            "in MirrorMaker 2's copies: positions there may not be found exactly, and such groups "
            "are not moved"
        )
