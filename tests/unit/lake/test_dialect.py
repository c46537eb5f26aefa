"""Spark's SQL in DuckDB's words: what means something else there, and what is refused."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.errors import InputError
from mirrorlake.lake.definitions import TABLES, VIEWS, definition, sql_text
from mirrorlake.lake.dialect import columns_of, to_duckdb
from mirrorlake.lake.duck import DuckLake

#: What Spark answers (4.0, ANSI).
MEANT: dict[str, Any] = {
    "max_by(CASE WHEN x = 3 THEN NULL ELSE x END, x)": None,
    "percentile(x, 0.5)": 2.0,
    "CAST(max(x) + 0.7D AS BIGINT)": 3,
    "CAST(min(-1.7D) AS INT)": -1,
    "unix_seconds(timestamp_millis(max(x) * 1000 + 999))": 3,
    "-7 DIV 2": -3,
    "exists(array(1, 2), y -> y > max(x))": False,
    "aggregate(array(1, 2), 0L, (n, y) -> n + y)": 3,
    "CAST(unhex('C3BC') AS STRING)": "ü",
    "split('east->west', '->')[1]": "west",
    "concat('a', CAST(NULL AS STRING))": None,
    "sum(x)": 6,
    "CAST(sum(x) AS STRING)": "6",
    "count(*) / 2": 1.5,
    "count_if(x > 1)": 2,
    "count_if(CAST(NULL AS BOOLEAN))": 0,
    "date_format(timestamp_millis(1500), 'yyyy-MM-dd HH:mm:ss.SSSXXX')": "1970-01-01 00:00:01.500Z",
    "timestamp_millis(1500)": datetime(1970, 1, 1, 0, 0, 1, 500_000),
    "min(timestamp_millis(x))": datetime(1970, 1, 1, 0, 0, 0, 1_000),
    "struct(timestamp_millis(0) AS at)": {"at": datetime(1970, 1, 1)},
}


@pytest.mark.parametrize("text", MEANT)
def test_what_is_meant(tmp_path: Path, text: str) -> None:
    (row,) = DuckLake(tmp_path).rows(
        f"SELECT {text} AS it FROM VALUES (1), (2), (3) AS v(x)", limit=1
    )
    found = row["it"]
    assert (found, type(found)) == (MEANT[text], type(MEANT[text]))


def test_nulls_are_ignored_in_windows(tmp_path: Path) -> None:
    found = DuckLake(tmp_path).rows(
        "SELECT last(y) IGNORE NULLS OVER (ORDER BY x) AS it FROM VALUES (1, 5), (2, NULL) AS v(x, "
        "y) ORDER BY x"
    )
    assert [row["it"] for row in found] == [5, 5]


def test_nulls_come_first_where_spark_says_so(tmp_path: Path) -> None:
    found = DuckLake(tmp_path).rows("SELECT x FROM VALUES (1), (NULL) AS v(x) ORDER BY x")
    assert [row["x"] for row in found] == [None, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELEC 1", "cannot be translated for DuckDB"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("DELETE FROM incidents", "not a query"),
        ("SHOW TABLES", "not a query"),
        (
            "SELECT percentile(x, 0.5, n) FROM VALUES (1, 1) AS v(x, n)",
            "percentile with a frequency",
        ),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        to_duckdb(text)


def test_what_a_text_names() -> None:
    text = (
        "WITH a AS (SELECT * FROM Records WHERE topic = :topic) SELECT * FROM a JOIN alerts "
        "USING (flow)"
    )
    query = to_duckdb(text)
    assert query.tables >= {"records", "alerts"} and query.parameters == {"topic"}


def test_all_tables_and_views_can_be_translated() -> None:
    for view in VIEWS:
        assert to_duckdb(sql_text("views", view)).tables & {*TABLES, *VIEWS}
    columns = {table: dict(columns_of(sql_text("tables", table))) for table in TABLES}
    assert columns["records"]["timestamp"] == "TIMESTAMPTZ" and columns["records"][
        "headers"
    ].endswith("[]")
    assert all(list(columns[table]) == definition(table).rows.names for table in columns)
