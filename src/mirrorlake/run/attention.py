"""What a person reads first of a status: flows' states in a word, what needs attention. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

AnswerRow = Mapping[str, Any]

#: Alerts, the most urgent first; any other kind comes after them.
_URGENCY = (
    "not_running", "target_recreated", "target_behind", "map_gap", "stuck", "hanging_transaction",
    "heartbeat", "lag", "latency",
)  # fmt: skip
#: For incidents whose cause the process that runs the flow keeps trying again.
_TRIED_AGAIN = (
    "nothing is to be decided: `mirrorlake run` tries it again, and it closes by itself once that "
    "comes through"
)
_CONTROL = (
    "nothing is to be decided: `mirrorlake run` tries it again, and it closes by itself once that "
    "succeeds, or the topology file does not ask for it any more"
)
#: Kinds of incident that close by themselves, and what helps.
_BY_ITSELF: Mapping[str, str] = {
    **dict.fromkeys(
        "source_refused landing_failed cluster_unreachable flow_waits not_a_member "
        "upkeep_failed".split(),
        _TRIED_AGAIN,
    ),
    "topic_refused": "change the topology file or the rights: it closes by itself once its cause "
    "is gone and `mirrorlake run` goes on with the topic",
    "flow_stopped": "remove its cause and start `mirrorlake run` again: it closes by itself once "
    "the flow goes on",
    "fenced": "let one process run the flow: it closes by itself once a `mirrorlake run` goes on "
    "with it",
    "topology_edit": "edit the topology file again where it is invalid: it closes by itself once "
    "a `mirrorlake run` goes by the file",
}


def standing(flow: AnswerRow, quiet_seconds: float = 60.0, has_ended: bool = False) -> str:
    """The state of a flow, by its row of `flow_status` with `enabled` and `paused`: disabled,
    paused, never run, not sampled yet (in the first seconds of its first run), waiting for you,
    stopped since a time (in UTC), running, or caught up; if two hold, both. After `quiet_seconds`
    without a sample no process runs the flow, nor if it `has_ended` by its lease."""
    if flow.get("enabled") is False:
        return "disabled"
    if flow.get("paused"):
        return "paused"
    if flow.get("sampled_at") is None:
        began = "never run" if flow.get("last_produced_at") is None else "not sampled yet"
        return "waiting for you" if flow.get("open_incidents") else began
    quiet = flow["state"] == "not running"
    if flow["state"] == "incident":
        quiet = (flow.get("sample_age_seconds") or 0) > quiet_seconds
    quiet = quiet or (has_ended and (flow["state"] == "incident" or bool(flow["lag_records"])))
    stopped = f"stopped since {flow['sampled_at']:%Y-%m-%d %H:%M}" if quiet else ""
    if flow["state"] == "incident":
        return f"waiting for you, {stopped}" if stopped else "waiting for you"
    return stopped or ("running" if flow["lag_records"] else "caught up")


def attention(incidents: Sequence[AnswerRow], alerts: Sequence[AnswerRow]) -> list[str]:
    """A sentence for each thing that needs attention, incidents first."""
    sentences = [*(_incident(row) for row in sorted(incidents, key=lambda row: row["at"]))]
    return sentences + [
        _alert(row) for row in sorted(alerts, key=_urgency) if row["alert"] != "incident"
    ]


def _incident(row: AnswerRow) -> str:
    place = _place(row)
    sentence = f"{row['flow']}: {row['kind']}{f' of {place}' if place else ''}: {row['detail']}"
    return f"{sentence}; {what_helps(row)}"


def what_helps(incident: AnswerRow) -> str:
    """What to do about an open incident: the command that decides it, or the remedy."""
    return no_decision(incident["kind"]) or f"decide by: {resolving(incident)}"


def no_decision(kind: str) -> str | None:
    """The remedy for a kind of incident that closes by itself, and that no decision ends while its
    cause is there; None for a kind that is decided."""
    return _CONTROL if kind.startswith("control_") else _BY_ITSELF.get(kind)


def resolving(incident: AnswerRow) -> str:
    """The command that shows an incident with its choices, and those beside it at its place."""
    options = f" --flow '{incident['flow']}'"
    options += f" --topic {incident['topic']}" if incident.get("topic") else ""
    known = incident.get("partition") is not None
    options += f" --partition {incident['partition']}" if known else ""
    return f"mirrorlake resolve{options}"


def _alert(row: AnswerRow) -> str:
    place = _place(row)
    of = f" of {place}" if place else ""
    return (
        f"{row['flow']}: {row['alert']}{of} ({row['value']:g} > {row['threshold']:g}): "
        f"{row['detail']}"
    )


def _urgency(row: AnswerRow) -> tuple[int, str, str]:
    at = _URGENCY.index(row["alert"]) if row["alert"] in _URGENCY else len(_URGENCY)
    return at, row["flow"] or "", row["topic"] or ""


def _place(row: AnswerRow) -> str:
    partition = "" if row.get("partition") is None else f"-{row['partition']}"
    return f"{row['topic']}{partition}" if row.get("topic") else ""
