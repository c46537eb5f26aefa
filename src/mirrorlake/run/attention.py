"""What of a status a person looks at first: how each flow stands in a word, and what needs
attention. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

AnswerRow = Mapping[str, Any]

#: Alerts, the most urgent first; any other kind comes behind them.
_URGENCY = (
    "not_running", "target_recreated", "target_behind", "map_gap", "stuck", "hanging_transaction",
    "heartbeat", "lag", "latency",
)  # fmt: skip


def standing(flow: AnswerRow, quiet_seconds: float = 60.0) -> str:
    """How a flow stands, by its row of `flow_status` with `enabled` and `paused`: disabled, paused,
    never run, not sampled yet (in the first seconds of its first run), waiting for you, stopped
    since a time (in UTC), running, or caught up; where two are true, both. After `quiet_seconds`
    without a sample no process runs it."""
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
    stopped = f"stopped since {flow['sampled_at']:%Y-%m-%d %H:%M}" if quiet else ""
    if flow["state"] == "incident":
        return f"waiting for you, {stopped}" if stopped else "waiting for you"
    return stopped or ("running" if flow["lag_records"] else "caught up")


def attention(incidents: Sequence[AnswerRow], alerts: Sequence[AnswerRow]) -> list[str]:
    """A sentence for each thing that needs attention, what is decided first in front."""
    sentences = [*(_incident(row) for row in sorted(incidents, key=lambda row: row["at"]))]
    return sentences + [
        _alert(row) for row in sorted(alerts, key=_urgency) if row["alert"] != "incident"
    ]


def _incident(row: AnswerRow) -> str:
    place = _place(row)
    sentence = f"{row['flow']}: {row['kind']}{f' of {place}' if place else ''}: {row['detail']}"
    return f"{sentence}; decide by: {resolving(row)}"


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
