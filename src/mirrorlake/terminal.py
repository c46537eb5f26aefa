"""What commands and notebooks print for a person: text from outside is shown as it is.

Rich takes `[…]` in any text for its markup, and `:name:` for an emoji: it swallows them, or raises.
Names, details and values come from outside, so no console of ours reads markup; colour is given by
`Text` and styles. Rich is imported when there is something to print: `--help` does without.
"""

import atexit
import io
import os
import select
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

#: Up to how many rows Rich writes a table itself.
_FEW_ROWS = 50

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def plain_console(stderr: bool = False, width: int | None = None) -> "Console":
    """A console that shows every text as it is; `width` in columns, that of the terminal for
    None."""
    from rich.console import Console

    console = Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)
    # Rich ends the process with 1 there, by which a command says that attention is needed.
    console.on_broken_pipe = _raise_on  # type: ignore[method-assign]
    return console


def _raise_on() -> NoReturn:
    """Raise what is being handled."""
    raise


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


def print_table(
    console: "Console",
    *headers: str,
    rows: Iterable[Iterable[object]],
    title: str | None = None,
    keep_first: bool = False,
) -> None:
    """Print such a table. Rich measures and folds each cell for itself, which takes a second for
    2,000 rows: where these are many, and each fits on a line, the lines are written as they are."""
    held = [list(row) for row in rows]
    lines = None
    if len(held) > _FEW_ROWS and title is None:
        cells = [["-" if cell is None else str(cell) for cell in row] for row in held]
        lines = _lines_of(console, headers, cells)
    if lines is None:
        console.print(plain_table(*headers, rows=held, title=title, keep_first=keep_first))
    else:
        console.print("\n".join(lines), soft_wrap=True)


def _lines_of(
    console: "Console", headers: Sequence[str], rows: Sequence[Sequence[str]]
) -> list[str] | None:
    """A table by its lines, in Rich's usual box; None where one is wider than the console, or a
    cell has more than a line."""
    from rich.box import HEAVY_HEAD
    from rich.cells import cell_len

    if not all(cell.isprintable() for row in rows for cell in row):
        return None
    widths = [2 + max(map(cell_len, column)) for column in zip(headers, *rows, strict=True)]
    if sum(widths) + len(widths) + 1 > console.width:
        return None
    box = HEAVY_HEAD.substitute(console.options, safe=console.safe_box)

    def line(cells: Sequence[str], left: str, between: str, right: str) -> str:
        padded = (
            f" {cell}{' ' * (width - 1 - cell_len(cell))}"
            for cell, width in zip(cells, widths, strict=True)
        )
        return left + between.join(padded) + right

    return [
        box.get_top(widths),
        line(headers, box.head_left, box.head_vertical, box.head_right),
        box.get_row(widths, "head"),
        *(line(row, box.mid_left, box.mid_vertical, box.mid_right) for row in rows),
        box.get_bottom(widths),
    ]


def write_any_text() -> None:
    """Have what the terminal's encoding lacks, as Latin-1 lacks a table's lines, written as its
    number (\\u2500), instead of ending the command with a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def drop_unread() -> bool:
    """Where what reads our output through a pipe has ended, as `head` does, have what is left of it
    go nowhere, so that no attempt to write it is told of; returns whether that is so."""
    looks, outputs = select.poll(), (1, 2)
    for output in outputs:
        looks.register(output, 0)
    ended = [output for output, state in looks.poll(0) if state & (select.POLLERR | select.POLLHUP)]
    for output in ended:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    return bool(ended)


def end_silently() -> None:
    """See to it that no process writes to the terminal while the interpreter is taken apart: where
    threads of libraries are left then (Py4J's end with the process), DuckDB's binding reports all
    that it still holds as leaked."""
    atexit.register(_close_errors)  # what is registered first is called last


def _close_errors() -> None:
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
