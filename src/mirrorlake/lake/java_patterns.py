"""Java's regular expressions that DuckDB does not read: lookaround, \\uhhhh, many repeats.

A topology file may have patterns that Java and Python read alike (`naming/patterns.py`), and the
view `alerts` uses the pattern of paused topics in `objectives`. Python evaluates such patterns
here; DuckDB still evaluates the others, which Python's interpreter does not slow down.
"""

import atexit
import re
from functools import lru_cache
from weakref import WeakSet

import duckdb

_NOTED = "SELECT DISTINCT paused FROM objectives WHERE paused IS NOT NULL"
#: Connections with a Python function: one that is open when Python ends complains.
_with_function: WeakSet[duckdb.DuckDBPyConnection] = WeakSet()


def read_noted(connection: duckdb.DuckDBPyConnection) -> None:
    """Let Python evaluate RLIKE from now on, where a noted pattern of paused topics needs it."""
    if connection in _with_function:
        return
    patterns = connection.execute(_NOTED).fetchall()
    if not all(_is_read(connection, pattern) for (pattern,) in patterns):
        connection.execute("DROP MACRO spark_rlike")
        connection.create_function("spark_rlike", _finds, ["VARCHAR", "VARCHAR"], "BOOLEAN")
        _with_function.add(connection)


@atexit.register
def _close_all() -> None:
    for connection in _with_function:
        connection.close()


def _is_read(connection: duckdb.DuckDBPyConnection, pattern: str) -> bool:
    try:
        connection.execute("SELECT regexp_matches('', $1)", [pattern]).fetchall()
    except duckdb.InvalidInputException:
        return False
    return True


@lru_cache(1 << 16)
def _finds(text: str, pattern: str) -> bool:
    return re.search(pattern, text, re.ASCII) is not None
