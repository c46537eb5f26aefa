"""The evidence of a comparison, for archives: JSON, or one self-contained page. Pure."""

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from mirrorlake.verify.not_compared import IN_FLIGHT

_RANGE = (
    *("flow", "topic", "partition", "first_offset", "last_offset"),
    *("target_topic", "target_first_offset", "target_last_offset"),
    *("source_count", "stage_count", "target_count", "verdict", "digest", "audited_at"),
)
_PLACE = ("flow", "topic", "partition", "first_offset", "last_offset")
_DIFFERENCE = (*_PLACE, "record_count", "kind", "target_offset", "detail")
_NOT_COMPARED = (*_PLACE, "reason", "detail")
_SUMMARY = ("began", "ended", "ranges", "records", "proven", "proven_before", "bytes_read")


def evidence(document: Mapping[str, Any], page: bool) -> str:
    """The text of the file, HTML for a `page`, else JSON. `document` is an answer of `verify`
    (`library.verify_answer.Verified`) with the rows of `audits` as `audits`."""
    if not page:
        return json.dumps(document, default=str, ensure_ascii=False, indent=1)
    count = len(document["differences"])
    differences = f"{count:,} differences" if count else "no difference"
    left = [row for row in document["not_compared"] if row["reason"] != IN_FLIGHT]
    if document["not_compared"]:
        differences += f", {len(document['not_compared']):,} stretches not compared"
    template = files("mirrorlake.verify").joinpath("evidence.html").read_text(encoding="utf-8")
    parts = {
        "verdict": (
            f"{document['proven']:,} of {document['records']:,} records proven by content; "
            f"{differences}"
        ),
        "tone": "bad" if count or left else "good",
        "summary": _table(
            ("what", "value"), [{"what": name, "value": document[name]} for name in _SUMMARY]
        ),
        "cut": "".join(
            f'<p class="bad">{html.escape(sentence)}</p>' for sentence in document["cut_sentences"]
        ),
        "excused": _table(
            ("reason", "records"),
            [{"reason": why, "records": some} for why, some in document["excused"].items()],
        ),
        "differences": _table(_DIFFERENCE, document["differences"]),
        "not_compared": _table(_NOT_COMPARED, document["not_compared"]),
        "ranges": _table(_RANGE, [{**row, "digest": _digest(row)} for row in document["audits"]]),
    }
    for name, text in parts.items():
        template = template.replace(f"{{{{{name}}}}}", text)
    return template


def _digest(row: Mapping[str, Any]) -> str:
    """The one digest of a range, or the digest of each side."""
    sides = {side: row[f"{side}_hash"] for side in ("source", "stage", "target")}
    if len(set(sides.values())) == 1:
        return str(sides["stage"])
    return ", ".join(f"{side} {digest or 'not there any more'}" for side, digest in sides.items())


def _table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    head = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(_cell(row.get(name)) for name in columns) + "</tr>" for row in rows
    )
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        if body
        else "<p>none</p>"
    )


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    return f"<td>{html.escape('' if value is None else str(value))}</td>"
