"""A query for DuckDB, in its dialect, and what prepares a connection for it. Pure.

It is apart from the translation (`dialect`), which noted texts do without: importing sqlglot would
take a sixth of the time of an answer.
"""

from typing import NamedTuple

#: Statements to run on a connection before a transpiled text. A CASE's branch is known before rows
#: are read; an overload by type is not found for an aggregate.
PREPARED = (
    "SET TimeZone = 'UTC'",
    "CREATE TEMP MACRO spark_text(x) AS"
    " CASE WHEN typeof(x) = 'BLOB' THEN decode(TRY_CAST(x AS BLOB)) ELSE CAST(x AS VARCHAR) END",
    "CREATE TEMP MACRO spark_long(x) AS CASE WHEN typeof(x) IN ('DOUBLE', 'FLOAT') OR typeof(x) "
    "LIKE 'DECIMAL%' THEN CAST(trunc(TRY_CAST(x AS DOUBLE)) AS BIGINT) ELSE CAST(x AS BIGINT) END",
    "CREATE TEMP MACRO spark_rlike(x, y) AS regexp_matches(x, y)",
    "CREATE TEMP MACRO every(x) AS bool_and(x)",
    "CREATE TEMP MACRO timestamp_millis(x) AS make_timestamptz(CAST(x AS BIGINT) * 1000)",
    "CREATE TEMP MACRO timestamp_micros(x) AS make_timestamptz(CAST(x AS BIGINT))",
    "CREATE TEMP MACRO timestamp_seconds(x) AS make_timestamptz(CAST(x * 1000000 AS BIGINT))",
)
#: A suffix of a table's name: its rows with two more columns, `filename` and `file_row_number`.
WITH_FILES = " and files"


class DuckQuery(NamedTuple):
    """A query in DuckDB's dialect, with tables or views, in lower case, and parameters."""

    text: str
    tables: frozenset[str]
    parameters: frozenset[str]
