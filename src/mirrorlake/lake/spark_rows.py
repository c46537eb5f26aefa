"""Converts what `Reader.rows` is given and returns, to and from Spark."""

import re
from collections.abc import Mapping
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING

import pyarrow as pa

from mirrorlake.lake.reader import Frame, Frames, QueryRows

if TYPE_CHECKING:  # answers without Spark come by this module too
    from pyspark.sql import DataFrame, SparkSession

#: Text without a parameter, whatever it has (strings, backticks, comments); or a parameter.
_TEXT_OR_PARAMETER = re.compile(
    r"\b[rR](?:'[^']*'|\"[^\"]*\")"
    r"|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`"
    r"|--[^\n]*|/\*.*?\*/"
    r"|(?<![:\w]):(?P<name>\w+)",
    re.DOTALL,
)
#: Characters that mean themselves in a string of SQL, under any session's settings: Spark replaces
#: `${...}`, and a backslash may or may not escape; braces name frames.
_PLAIN = re.compile(r"[\w ./:@,;+=<>()*-]*", re.ASCII)


def with_values(text: str, args: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """A text with values in place of its `:named` parameters, and the arguments that are left for
    Spark to fill: those that the text does not name, or whose values are of another kind.

    Delta's parser for Spark 4.1 and 4.2 loses the parameters of every statement that it is given
    (`UNBOUND_SQL_PARAMETER`), unless the session has a setting by which Spark fills them as its
    version 4.0 did; a session that others opened may not have it.
    """
    literals = {name: literal(value) for name, value in args.items()}
    filled: set[str] = set()

    def fill(match: re.Match[str]) -> str:
        name = match["name"]
        value = literals.get(name) if name else None
        if value is None:
            return match[0]
        filled.add(name)
        return value

    text = _TEXT_OR_PARAMETER.sub(fill, text)
    return text, {name: value for name, value in args.items() if name not in filled}


def literal(value: object) -> str | None:
    """A value in SQL, of the type that Spark gives such a parameter; None for a kind that is not
    supported here. A time without a zone is in this machine's."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return f"{value:d}" if value >= 0 else f"({value:d})"  # two minuses begin a comment
    if isinstance(value, float):
        return f"CAST('{float(value)!r}' AS DOUBLE)"
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value)
        return f"'{plain[0]}'" if plain else f"CAST({_bytes(value.encode())} AS STRING)"
    if isinstance(value, bytes):
        return _bytes(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.astimezone(timezone.utc).isoformat(' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, (list, tuple)):
        values = [literal(each) for each in value]
        return None if None in values else f"array({', '.join(map(str, values))})"
    return None


def _bytes(value: bytes) -> str:
    return f"X'{value.hex()}'"


def frames_in(
    spark: "SparkSession", text: str, frames: Frames
) -> tuple[str, dict[str, "DataFrame"]]:
    """A text with its query frames filled in, and DataFrames for the other frames. With a
    DataFrame, Spark wants every other brace doubled."""
    made: dict[str, DataFrame] = {}
    for name, frame in frames.items():
        if isinstance(frame, Frame):
            schema = ", ".join(f"`{column}` {kind}" for column, kind in frame.columns)
            made[name] = spark.createDataFrame(list(frame.rows), schema)
        else:
            text = text.replace(f"{{{name}}}", f"({frame})")
    if made:
        text = text.replace("{", "{{").replace("}", "}}")
        for name in made:
            text = text.replace(f"{{{{{name}}}}}", f"{{{name}}}")
    return text, made


def rows_from_arrow(table: pa.Table) -> QueryRows:
    """The rows of an Arrow table, as `Reader.rows` returns them."""
    columns = [
        column.to_pylist(maps_as_pydicts="strict") for column in map(_unzoned, table.columns)
    ]
    rows = zip(*columns, strict=True)
    return QueryRows(
        (dict(zip(table.column_names, row, strict=True)) for row in rows), table.column_names
    )


def _unzoned(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = _without_zone(column.type)
    return column if kind == column.type else column.cast(kind)


def _without_zone(kind: pa.DataType) -> pa.DataType:
    """A type in which times, at any depth, have no zone; those of Arrow are in UTC."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit)
    if pa.types.is_list(kind):
        return pa.list_(_without_zone(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _without_zone(field.type)) for field in kind])
    return kind
