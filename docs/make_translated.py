"""Writes src/mirrorlake/sql/duckdb.json, the package's own queries in DuckDB's words: `make
tables`."""

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from mirrorlake.errors import InputError
from mirrorlake.lake.definitions import TABLES, VIEWS, sql_text
from mirrorlake.lake.dialect import columns_of, to_duckdb
from mirrorlake.lake.duck_frames import with_frames
from mirrorlake.lake.translate import question
from mirrorlake.lake.translated import NAME, key_of, rules

FILE = Path(str(files("mirrorlake"))) / "sql" / NAME


def texts() -> Iterator[str]:
    """All that the package asks: views, queries with frames of rows, and whole tables."""
    yield from (sql_text("views", view) for view in VIEWS)
    yield from (f"SELECT * FROM {name}" for name in (*TABLES, *VIEWS))
    for path in sorted((FILE.parent / "queries").glob("*.sql")):
        yield re.sub(r"\{(\w+)\}", r"`frame \1`", sql_text("queries", path.stem))
    for reverse in (False, True):  # of one topic, as `translate` asks on the command line
        query, frames, _ = question([("", 0, 0)], reverse, "SELECT * FROM positions")
        yield with_frames(sql_text("queries", query), frames)


def notes() -> dict[str, object]:
    """What the file has to hold."""
    queries: dict[str, object] = {}
    for text in texts():
        try:
            query = to_duckdb(text)
        except InputError:  # a statement that changes rows
            continue
        queries[key_of(text)] = [query.text, sorted(query.tables), sorted(query.parameters)]
    made = {key_of(text): columns_of(text) for text in (sql_text("tables", t) for t in TABLES)}
    return {"rules": rules(), "queries": queries, "columns": made}


if __name__ == "__main__":
    FILE.write_text(json.dumps(notes(), indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
