"""The frames of a query, for DuckDB: rows that it gets, and queries that stand in its text; and the
types of its answers, which are to be those of Spark's."""

import re
from collections.abc import Callable

import duckdb

from mirrorlake.lake.reader import Frame, Frames

#: Types that DuckDB knows by Spark's name.
_SAME = frozenset({"STRING", "INT", "BIGINT", "DOUBLE", "BOOLEAN"})
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


def with_frames(text: str, frames: Frames) -> str:
    """A text in Spark's dialect with its frames filled in: queries as they are, rows as the name of
    the table that `give` makes of them. Pure."""
    for name, frame in frames.items():
        text = text.replace(
            f"{{{name}}}", f"({frame})" if isinstance(frame, str) else f"`frame {name}`"
        )
    return text


def give(connection: duckdb.DuckDBPyConnection, name: str, frame: Frame) -> None:
    """Make a table `frame <name>` of rows, in one statement: one a row takes half a millisecond."""
    kinds = ", ".join(f'"{column}" {_type_of(kind)}' for column, kind in frame.columns)
    connection.execute(f'CREATE OR REPLACE TEMP TABLE "frame {name}" ({kinds})')
    columns = [list(column) for column in zip(*frame.rows, strict=True)]
    if columns:
        values = ", ".join(f"unnest(${number})" for number in range(1, len(columns) + 1))
        connection.execute(f'INSERT INTO "frame {name}" SELECT {values}', columns)


def _type_of(spark_type: str) -> str:
    if spark_type in _SAME:
        return spark_type
    from mirrorlake.lake.dialect import type_of

    return type_of(spark_type)
