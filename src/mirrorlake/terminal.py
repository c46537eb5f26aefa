"""What commands and notebooks print for a person: text from outside is shown as it is.

Rich takes `[…]` in any text for its markup, and `:name:` for an emoji: it swallows them, or raises.
Names, details and values come from outside, so no console of ours reads markup; colour is given by
`Text` and styles. Rich is imported when there is something to print: `--help` does without.
"""

import atexit
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def plain_console(stderr: bool = False, width: int | None = None) -> "Console":
    """A console that shows every text as it is; `width` in columns, that of the terminal for
    None."""
    from rich.console import Console

    return Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)


def plain_table(
    *headers: str,
    rows: Iterable[Iterable[object]] = (),
    title: str | None = None,
    keep_first: bool = False,
) -> "Table":
    """A table that keeps every letter in a narrow terminal; with `keep_first`, the first column on
    one line. A cell of None is a dash; what is not Rich's own is written as its text."""
    from rich.table import Column, Table
    from rich.text import Text

    columns = [Column(header, overflow="fold") for header in headers]
    if keep_first:
        columns[0].no_wrap = True
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        cells = ("-" if cell is None else cell for cell in row)
        table.add_row(*(cell if isinstance(cell, Text) else str(cell) for cell in cells))
    return table


def end_silently() -> None:
    """See to it that no process writes to the terminal while the interpreter is taken apart: where
    threads of libraries are left then (Py4J's end with the process), DuckDB's binding reports all
    that it still holds as leaked."""
    atexit.register(_close_errors)  # what is registered first is called last


def _close_errors() -> None:
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
