"""What DuckDB is asked: a query in its dialect, what it has to know before, and the frames of a
query.

Apart from the translation (`dialect`), which noted texts do without: sqlglot's import would take a
sixth of the time of an answer.
"""

from typing import NamedTuple

import duckdb

from mirrorlake.lake.reader import Frame, Frames

#: What DuckDB has to know before a transpiled text is run. Which branch of a CASE it is, is known
#: before rows are read; an overload by type would not be found for an argument that holds an
#: aggregate.
PREPARED = (
    "SET TimeZone = 'UTC'",
    "CREATE TEMP MACRO spark_text(x) AS"
    " CASE WHEN typeof(x) = 'BLOB' THEN decode(TRY_CAST(x AS BLOB)) ELSE CAST(x AS VARCHAR) END",
    "CREATE TEMP MACRO spark_long(x) AS CASE WHEN typeof(x) IN ('DOUBLE', 'FLOAT') OR typeof(x) "
    "LIKE 'DECIMAL%' THEN CAST(trunc(TRY_CAST(x AS DOUBLE)) AS BIGINT) ELSE CAST(x AS BIGINT) END",
    "CREATE TEMP MACRO every(x) AS bool_and(x)",
    "CREATE TEMP MACRO timestamp_millis(x) AS make_timestamptz(CAST(x AS BIGINT) * 1000)",
    "CREATE TEMP MACRO timestamp_micros(x) AS make_timestamptz(CAST(x AS BIGINT))",
    "CREATE TEMP MACRO timestamp_seconds(x) AS make_timestamptz(CAST(x * 1000000 AS BIGINT))",
)
#: Behind a table's name: its rows with two columns more, `filename` and `file_row_number`.
WITH_FILES = " and files"
#: Types of Spark that DuckDB calls the same, or knows by that name.
_SAME = frozenset({"STRING", "INT", "BIGINT", "DOUBLE", "BOOLEAN"})


class DuckQuery(NamedTuple):
    """A query in DuckDB's dialect, with the tables (or views) and the parameters that it names, in
    lower case as to tables."""

    text: str
    tables: frozenset[str]
    parameters: frozenset[str]


def with_frames(text: str, frames: Frames) -> str:
    """A text of Spark's dialect with its frames in it: queries as they are, rows by the name of
    the table that `give` makes of them. Pure."""
    for name, frame in frames.items():
        text = text.replace(
            f"{{{name}}}", f"({frame})" if isinstance(frame, str) else f"`frame {name}`"
        )
    return text


def give(connection: duckdb.DuckDBPyConnection, name: str, frame: Frame) -> None:
    """Make a table `frame <name>` of rows, all by one statement: one a row takes half a
    millisecond."""
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
