"""Spark and DuckDB give the same answers: every view and every query that only reads, over three
lakes, row by row."""

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mirrorlake.dashboard.model import load_dashboard
from mirrorlake.dashboard.parts import Dataset
from mirrorlake.lake import duck, reader, session_tables
from mirrorlake.lake.definitions import TABLES, VIEWS, sql_text
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Frame, Reader
from mirrorlake.lake.translate import translate_all
from tests.support.both_engines import ARGS, ASKED, FRAMES, QUERIES, told
from tests.support.odd_lake import END, FLOW, TOPICS, odd_lake
from tests.support.sample_lake import empty_lake, sample_lake

SLOW = pytest.mark.slow
LAKES: dict[str, Callable[[SparkSession, Path], Lake]] = {
    "empty": empty_lake,
    "odd": odd_lake,
    "sample": lambda spark, place: sample_lake(spark, place, 0.6, END),
}
#: Views and queries of which each change is tried at once, by whoever makes it.
FEW = {
    "offset_translation",
    "open_incidents",
    "partition_status",
    "proven_ranges",
    "staged_ranges",
    "topic_lag",
    "translate_forward",
}
#: When it is, for both engines.
NOW = END + timedelta(seconds=7.25)


@pytest.fixture(scope="module", autouse=True)
def same_moment() -> Iterator[None]:
    """The packaged texts ask for a moment that stands still."""

    def told(kind: str, name: str) -> str:
        return sql_text(kind, name).replace(
            "current_timestamp()", f"timestamp_millis({round(NOW.timestamp() * 1000)}L)"
        )

    with pytest.MonkeyPatch.context() as patch:
        for module in (session_tables, duck, reader):
            patch.setattr(module, "sql_text", told)
        yield


@pytest.fixture(
    scope="module",
    params=["odd", pytest.param("empty", marks=SLOW), pytest.param("sample", marks=SLOW)],
)
def engines(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    same_moment: None,
) -> tuple[Lake, DuckLake]:
    """A lake as both read it."""
    lake = LAKES[request.param](spark, tmp_path_factory.mktemp(request.param))
    assert lake.directory is not None
    return lake, DuckLake(lake.directory)


def compare(engines: tuple[Lake, DuckLake], ask: Callable[[Reader], Any]) -> list[dict[str, Any]]:
    by_spark, by_duckdb = (ask(cast(Reader, engine)) for engine in engines)
    assert by_duckdb.columns == by_spark.columns
    assert told(by_duckdb) == told(by_spark)
    return cast("list[dict[str, Any]]", by_duckdb)


@pytest.mark.wide("test_views", "test_what_people_ask")
@pytest.mark.parametrize("table", TABLES)
def test_tables(engines: tuple[Lake, DuckLake], table: str) -> None:
    compare(engines, lambda lake: lake.table_rows(table))


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(view, marks=() if view in FEW else pytest.mark.wide("test_views"))
        for view in VIEWS
    ],
)
def test_views(engines: tuple[Lake, DuckLake], view: str) -> None:
    compare(engines, lambda lake: lake.table_rows(view))


def cases() -> Iterator[Any]:
    """Lake, kind, query and topic: all queries over what is rare, once more for the odd topic where
    they have one; all over nothing; those of notebooks, which tell of a history, over one. What
    commands answer by is not slow, and a few of those are in `make test`."""
    for kind, name in QUERIES:
        marks: Any = () if name in FEW else pytest.mark.wide("test_queries")
        marks = marks if kind == "queries" else SLOW
        yield pytest.param("odd", kind, name, "orders", marks=marks)
        yield pytest.param("empty", kind, name, "orders", marks=SLOW)
        if ":topic" in sql_text(kind, name):
            yield pytest.param("odd", kind, name, TOPICS[1], marks=SLOW)
        if kind == "notebooks":
            yield pytest.param("sample", kind, name, "orders", marks=SLOW)


@pytest.mark.parametrize(("engines", "kind", "name", "topic"), cases(), indirect=["engines"])
def test_queries(engines: tuple[Lake, DuckLake], kind: str, name: str, topic: str) -> None:
    text = session_tables.sql_text(kind, name)
    given = {**ARGS, "topic": topic}
    frames = {key: value for key, value in FRAMES.items() if f"{{{key}}}" in text}
    wanted = text + " ".join(value for value in frames.values() if isinstance(value, str))
    args = {key: value for key, value in given.items() if f":{key}" in wanted}
    compare(engines, lambda lake: lake.rows(text, args, frames))


@SLOW
@pytest.mark.parametrize("dataset", load_dashboard().datasets, ids=lambda dataset: dataset.name)
def test_datasets_of_the_dashboard(engines: tuple[Lake, DuckLake], dataset: Dataset) -> None:
    moment = f"timestamp_millis({round(NOW.timestamp() * 1000)}L)"
    compare(engines, lambda lake: lake.rows(dataset.query.replace("current_timestamp()", moment)))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*), max(offset), CAST(sum(offset) AS STRING), min(landed_at) FROM records",
        "SELECT topic, percentile(lag_seconds, 0.9) AS p, CAST(avg(lag_seconds) AS BIGINT) FROM "
        "positions GROUP BY ALL",
        "SELECT CAST(key AS STRING) AS k, CAST(value AS STRING) AS v, headers FROM records WHERE "
        "offset % 3 <> 1",
        "SELECT configs['a'] AS a, configs FROM states",
        "SELECT date_trunc('HOUR', at) AS hour, kind, count_if(error IS NULL) AS good FROM changes "
        "GROUP BY ALL",
        "SELECT * EXCEPT (segments) FROM offset_map WHERE produced_at > TIMESTAMP '2026-03-01 "
        "11:30:00'",
        "SELECT explode(segments) AS segment FROM offset_map",
    ],
)
def test_what_people_ask(engines: tuple[Lake, DuckLake], text: str) -> None:
    compare(engines, lambda lake: lake.rows(text))


@pytest.mark.parametrize("engines", ["odd"], indirect=True)
def test_the_odd_lake_says_something(engines: tuple[Lake, DuckLake]) -> None:
    """Else nothing is compared: of most views and queries it has rows."""
    _, found = engines
    assert [name for name in (*TABLES, *VIEWS) if not found.table_rows(name)] == []
    assert {row["alert"] for row in found.table_rows("alerts")} >= {
        "stuck",
        "lag",
        "latency",
        "heartbeat",
        "incident",
        "map_gap",
    }


@pytest.mark.parametrize(
    "reverse", [False, pytest.param(True, marks=pytest.mark.wide("test_translations"))]
)
def test_translations(engines: tuple[Lake, DuckLake], reverse: bool) -> None:
    asked = [
        (f"east.{topic}" if reverse else topic, partition, at) for topic, partition, at in ASKED
    ]
    by_spark, by_duckdb = (
        translate_all(cast(Reader, engine), FLOW, asked, reverse) for engine in engines
    )
    assert by_duckdb == by_spark


#: Of the kinds that parameters have, and what could end a text, or be replaced in it.
VALUES: dict[str, object] = {
    "plain": "east->west:9",
    "odd": "a'b\\c\"`${spark.app.name}{records}é\n\0--",
    "empty": "",
    "small": -5,
    "edge": -(2**31),
    "large": 2**31,
    "least": -(2**63),
    "true": True,
    "fraction": 1e-07,
    "bytes": b"\x00'",
    "day": date(2026, 3, 1),
    "at": datetime(2026, 3, 1, 12, 0, 0, 4, timezone.utc),
    "names": ["a", "b'"],
}


@pytest.mark.parametrize("engines", ["odd"], indirect=True)
def test_spark_gets_values_as_they_are(spark: SparkSession, engines: tuple[Lake, DuckLake]) -> None:
    """They are in the text (`lake/spark_rows.py`), of the types that Spark gives to parameters."""
    asked = ", ".join(f":{name} AS `{name}`" for name in VALUES)
    frame = engines[0].sql(f"SELECT {asked}, CAST(:none AS INT) AS none", {**VALUES, "none": None})
    (row,) = frame.toArrow().to_pylist()
    assert row == {**VALUES, "none": None}
    by_spark = spark.range(1).select(*(F.lit(each).alias(name) for name, each in VALUES.items()))
    assert frame.drop("none").dtypes == by_spark.dtypes


@pytest.mark.parametrize("engines", ["odd"], indirect=True)
def test_values_beside_rows_of_a_caller(engines: tuple[Lake, DuckLake]) -> None:
    """For Spark such a text has its braces twice, and Python fills it."""
    given = Frame("topic STRING, partition INT", [("a", 1), ("{given}", 2)])
    text = "SELECT partition, :brace AS brace FROM {given} WHERE topic = :brace"
    rows = engines[0].rows(text, {"brace": "{given}"}, {"given": given})
    assert rows == [{"partition": 2, "brace": "{given}"}]
