"""Gives DuckDB's answers the types that Spark's have."""

import re
from collections.abc import Callable

import duckdb

_ZONED, _HUGE = "TIMESTAMP WITH TIME ZONE", re.compile(r"\bHUGEINT\b")


def column_as(name: str, kind: str | None, wanted: str) -> str:
    """A column in the layout's type. Cast only if needed: no predicate skips files by a cast."""
    if kind is None:
        return f'CAST(NULL AS {wanted}) AS "{name}"'
    return f'"{name}"' if _same(kind, wanted) else f'CAST("{name}" AS {wanted}) AS "{name}"'


def _same(kind: str, wanted: str) -> bool:
    short = {"TEXT": "VARCHAR", "TIMESTAMPTZ": _ZONED, "INT": "INTEGER"}
    # the parts of nested types are not compared
    return kind == short.get(wanted, wanted) or not wanted.isalpha()


def plain(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """An answer with times in UTC without a zone, at any depth, and sums in Spark's type: both
    engines return the same types."""
    return _cast(relation, lambda kind: _HUGE.sub("BIGINT", kind.replace(_ZONED, "TIMESTAMP")))


def without_huge(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """An answer with sums in Spark's type."""
    return _cast(relation, lambda kind: _HUGE.sub("BIGINT", kind))


def _cast(
    relation: duckdb.DuckDBPyRelation, wanted: Callable[[str], str]
) -> duckdb.DuckDBPyRelation:
    kinds = [str(kind) for kind in relation.types]
    if all(wanted(kind) == kind for kind in kinds) or len(set(relation.columns)) < len(kinds):
        return relation
    columns = []
    for name, kind in zip(relation.columns, kinds, strict=True):
        quoted = '"' + name.replace('"', '""') + '"'
        columns.append(
            quoted if wanted(kind) == kind else f"CAST({quoted} AS {wanted(kind)}) AS {quoted}"
        )
    return relation.project(", ".join(columns))
