"""Answers as HTML, for notebooks: every text is shown as it is. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape

#: Rows that a table shows; its last line says how many there are.
SHOWN_ROWS = 100


def table(
    rows: Sequence[Mapping[str, object]], title: str = "", columns: Sequence[str] | None = None
) -> str:
    """Rows as a table; `columns` are those shown, all of the rows' for None."""
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
    """Sentences as a list below a title; nothing without some."""
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<div><b>{escape(title)}</b><ul>{listed}</ul></div>" if listed else ""


def heading(text: str, good: bool = True) -> str:
    """A sentence that stands above all else, red where it is not good."""
    style = "" if good else ' style="color:#c0392b"'
    return f"<p><b{style}>{escape(text)}</b></p>"


def cell_text(value: object) -> str:
    """A value as tables show it."""
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
