"""The package's own texts in DuckDB's dialect, translated when they were written (`make tables`,
`sql/duckdb.json`): an answer needs a dozen of them, which takes longer than running them.

A text that is not noted, was changed, or translated by other rules is translated when needed.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from mirrorlake.lake.duck_query import DuckQuery

NAME = "duckdb.json"


@cache
def duckdb_query(text: str) -> DuckQuery:
    """See `dialect.to_duckdb`."""
    known = _notes()["queries"].get(key_of(text))
    if known is None:
        from mirrorlake.lake import dialect

        return dialect.to_duckdb(text)
    query, tables, parameters = known
    return DuckQuery(query, frozenset(tables), frozenset(parameters))


@cache
def duckdb_columns(text: str) -> tuple[tuple[str, str], ...]:
    """See `dialect.columns_of`."""
    known = _notes()["columns"].get(key_of(text))
    if known is None:
        from mirrorlake.lake import dialect

        return dialect.columns_of(text)
    return tuple((name, kind) for name, kind in known)


def key_of(text: str) -> str:
    """The key of a text in the notes."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def rules() -> str:
    """The key of the rules of translation: of the text of the module that has them."""
    return key_of((files("mirrorlake") / "lake" / "dialect.py").read_text(encoding="utf-8"))


@cache
def _notes() -> Mapping[str, Any]:
    none: Mapping[str, Any] = {"queries": {}, "columns": {}}
    try:
        text = (files("mirrorlake") / "sql" / NAME).read_text(encoding="utf-8")
    except FileNotFoundError:
        return none
    notes: Mapping[str, Any] = json.loads(text)
    return notes if notes["rules"] == rules() else none
