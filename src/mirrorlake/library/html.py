"""Answers as HTML for notebooks; all text is escaped. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape

#: The most rows that a table shows; a last line then says how many there are.
SHOWN_ROWS = 100


def table(
    rows: Sequence[Mapping[str, object]], title: str = "", columns: Sequence[str] | None = None
) -> str:
    """Rows as a table of `columns`; None for all columns of the rows."""
    caption = f"<b>{escape(title)}</b>" if title else ""
    if not rows:
        return f"<p>{caption}{': ' if title else ''}no rows</p>"
    named = columns or list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name)}</th>" for name in named)
    body = "".join(_row([row.get(name) for name in named]) for row in rows[:SHOWN_ROWS])
    more = f"<p>the first {SHOWN_ROWS} of {len(rows)} rows</p>" if len(rows) > SHOWN_ROWS else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div>{caption}{table}{more}</div>"


def sentences(lines: Sequence[str], title: str) -> str:
    """Sentences as a list below a title; empty if there are none."""
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<div><b>{escape(title)}</b><ul>{listed}</ul></div>" if listed else ""


def heading(text: str, good: bool = True) -> str:
    """A sentence as a heading, red if not `good`."""
    style = "" if good else ' style="color:#c0392b"'
    return f"<p><b{style}>{escape(text)}</b></p>"


def cell_text(value: object) -> str:
    """The text of a value in a table."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {cell_text(part)}" for key, part in value.items())
    return str(value)


def _row(values: Sequence[object]) -> str:
    cells = "".join(
        f"<td>{escape(cell_text(value)).replace(chr(10), '<br>')}</td>" for value in values
    )
    return f"<tr>{cells}</tr>"
