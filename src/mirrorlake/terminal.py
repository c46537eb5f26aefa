"""Output of commands and notebooks for people: text from outside is shown as it is.

Rich interprets `[…]` in any text as markup and `:name:` as an emoji: it drops them, or raises.
Names, details and values come from outside, so our consoles read no markup; colours come from
`Text` and styles. Rich is imported only to print something: `--help` does not need it.
"""

import atexit
import io
import os
import select
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

#: Up to this many rows Rich renders a table itself.
_FEW_ROWS = 50

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def plain_console(stderr: bool = False, width: int | None = None) -> "Console":
    """A console that shows every text as it is; `width` in columns, None for the terminal's."""
    from rich.console import Console

    console = Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)
    # On a broken pipe Rich exits with 1, our exit code for "needs attention".
    console.on_broken_pipe = _raise_on  # type: ignore[method-assign]
    return console


def _raise_on() -> NoReturn:
    """Re-raise the exception being handled."""
    raise


def plain_table(
    *headers: str,
    rows: Iterable[Iterable[object]] = (),
    title: str | None = None,
    keep_first: bool = False,
) -> "Table":
    """A table that loses no letter in a narrow terminal; with `keep_first` its first column does
    not wrap. None is shown as a dash, any other cell but Rich's `Text` as its `str`."""
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
    """Print such a table. Rich takes a second for 2,000 rows: one-line rows are formatted here."""
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
    """A table's lines in Rich's default box; None if one is too wide, or not printable."""
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
    """Write characters that the terminal's encoding lacks, as Latin-1 lacks box lines, as escapes
    (\\u2500) instead of ending the command with a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def drop_unread() -> bool:
    """If the reader of our output's pipe has ended, as `head` does, redirect that output to
    /dev/null, so that flushing the rest raises no error. Return whether a reader had ended."""
    looks, outputs = select.poll(), (1, 2)
    for output in outputs:
        looks.register(output, 0)
    ended = [output for output, state in looks.poll(0) if state & (select.POLLERR | select.POLLHUP)]
    for output in ended:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    return bool(ended)


def end_silently() -> None:
    """Silence stderr while the interpreter shuts down: if library threads are left then (Py4J's end
    with the process), DuckDB's binding reports everything that it still holds as leaked."""
    atexit.register(_close_errors)  # the first function registered is called last


def _close_errors() -> None:
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
