"""What is deleted is picked by DuckDB only where Spark would pick the same."""

import pytest

from mirrorlake.lake.definitions import definition
from mirrorlake.lake.same_meaning import means_the_same, misspelt_column


@pytest.mark.parametrize(
    "condition",
    [
        "offset = 1",
        "offset BETWEEN 3 AND 9 AND NOT partition IN (1, 2)",
        "Offset > -1 OR (generation <=> 0)",
        "cast(key AS string) = 'eve'",
        "CAST(value AS STRING) LIKE '%eve%' AND topic <> 'orders'",
        "key IS NULL AND value IS NOT NULL",
        "true",
        "CAST(key AS STRING) IN ('a', 'b')",
    ],
)
def test_plain_comparisons_do(condition: str) -> None:
    assert means_the_same(condition)


@pytest.mark.parametrize(
    "condition",
    [
        "key = 'eve'",  # a binary beside a text
        "CAST(value AS STRING) LIKE r'a\\_b'",  # Spark's escape, a character of DuckDB's
        "CAST(value AS STRING) LIKE 'a!_b' ESCAPE '!'",
        "CAST(value AS STRING) RLIKE 'a.b$'",  # Java's expressions
        "timestamp < '2026-01-01'",
        "CAST(timestamp AS STRING) LIKE '2026%'",
        "get_json_object(CAST(value AS STRING), '$.user') = 'eve'",
        "lower(CAST(key AS STRING)) = 'eve'",
        "exists(headers, h -> h.key = 'who')",
        "offset = '1'",
        "offset = 1.0",
        "offset / 2 = 1",
        "offset IN (SELECT 1)",
        "TRY_CAST(key AS STRING) = 'eve'",
        "topic COLLATE UTF8_LCASE = 'ORDERS'",
        "records.offset = 1",
        "offset = 1) OR (true",
        "offset",
        "'a' = key OR",
    ],
)
def test_what_may_be_read_in_two_ways_does_not(condition: str) -> None:
    assert not means_the_same(condition)


COLUMNS = [column.name for column in definition("records").columns]


def test_a_misspelt_column_is_known_before_an_engine_starts() -> None:
    """`forget` and `replay` started Spark for half a minute to be told so."""
    assert misspelt_column("ofset < 3", COLUMNS) == ("ofset", "offset")
    where = "offset > 1 AND get_json_object(CAST(vaule AS STRING), '$.status') = 'FAILED'"
    assert misspelt_column(where, COLUMNS) == ("vaule", "value")


@pytest.mark.parametrize(
    "condition",
    [
        "OFFSET < 3 AND records.key IS NULL",
        "exists(headers, header -> header.key = 'who')",
        "offset IN (SELECT keys FROM others)",
        "timestamp > timestamp '2026-11-21' + INTERVAL 1 DAY",
        "timestampdiff(HOUR, timestamp, landed_at) > 3",
        "hour(timestamp) = 3 AND extract(YEAR FROM timestamp) = 2026",
        "headers[0].value = X'00' OR size(headers) > 2",
        "date_trunc('MINUTE', timestamp) = DATE '2026-11-21'",
        "somebody_else = 1",
        "this is no condition (",
    ],
)
def test_what_is_no_misspelt_column_is_left_to_the_engine(condition: str) -> None:
    assert misspelt_column(condition, COLUMNS) is None
