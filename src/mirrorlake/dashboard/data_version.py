"""Whether a query would give other rows than before, without running it.

A table's newest commit is the end of its log; a query whose tables have no new
commits gives what it gave, unless it depends on the time. Which tables a query reads is known by
their names in its text, and in that of the views that it names: a word too many only means one more
read.
"""

import re

from mirrorlake.lake.definitions import TABLES, VIEWS, sql_text
from mirrorlake.lake.delta_log import DeltaLog
from mirrorlake.lake.place import Place

#: The newest commits of a query's tables; None where that cannot be known.
DataVersion = tuple[tuple[str, int], ...] | None


def data_version(directory: Place | None, query: str) -> DataVersion:
    """The mark of a query over the lake in `directory` (None in a catalog), as of now."""
    words = _words(query)
    if directory is None or "current_timestamp" in words:
        return None
    return tuple(
        (table, DeltaLog(directory / table).newest()) for table in TABLES if table in words
    )


def _words(text: str) -> set[str]:
    """The words of a text, and of the views that it names: later ones are made of earlier ones."""
    words = set(re.findall(r"\w+", text))
    for view in reversed(VIEWS):
        if view in words:
            words.update(re.findall(r"\w+", sql_text("views", view)))
    return words
