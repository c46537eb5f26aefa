"""Views in a catalog are made once, altered when their query is another, and never replaced: grants
hang on them.

Spark's own catalog knows no grants. A table property of somebody else stands for them here: `CREATE
OR REPLACE VIEW` drops both.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mirrorlake.config.lake import Lake as Location
from mirrorlake.errors import LakeError
from mirrorlake.lake import registration
from mirrorlake.lake.definitions import VIEWS, view_query
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake

SCHEMA = "kept_views"
GRANT = "somebody.granted"


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Location:
    checkpoints = tmp_path_factory.mktemp("kept_views") / "checkpoints"
    given = {"catalog": "spark_catalog", "schema": SCHEMA, "checkpoints": str(checkpoints)}
    return Location.model_validate(given)


@pytest.fixture(scope="module")
def said() -> Iterator[list[str]]:
    """The statements about views that lakes are given, as far as AS."""
    found: list[str] = []
    real = Lake.sql

    def noted(self: Lake, text: str, *args: Any) -> object:
        if " VIEW " in text.partition("\n")[0]:
            found.append(text.partition(" AS\n")[0])
        return real(self, text, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lake, "sql", noted)
        yield found


@pytest.fixture(scope="module")
def made(spark: SparkSession, location: Location, said: list[str]) -> Iterator[list[str]]:
    """The lake is there from now on; what was said about views when it was made."""
    lake = open_lake(spark, location, Path.cwd())
    assert said == []  # the first records come before the views
    lake.keep_views(2)
    assert len(said) == 2
    lake.keep_views()
    first = list(said)
    yield first
    spark.sql(f"DROP SCHEMA IF EXISTS spark_catalog.{SCHEMA} CASCADE")


@pytest.fixture
def opened_again(
    spark: SparkSession, location: Location, made: list[str], said: list[str]
) -> list[str]:
    """Statements from now on."""
    said.clear()
    return said


def grant(spark: SparkSession, view: str) -> None:
    spark.sql(f"ALTER VIEW spark_catalog.{SCHEMA}.{view} SET TBLPROPERTIES ('{GRANT}' = 'yes')")


def is_granted(spark: SparkSession, view: str) -> bool:
    rows = spark.sql(f"SHOW TBLPROPERTIES spark_catalog.{SCHEMA}.{view}").collect()
    return {row["key"]: row["value"] for row in rows}.get(GRANT) == "yes"


def columns(spark: SparkSession, view: str) -> list[str]:
    return spark.table(f"spark_catalog.{SCHEMA}.{view}").columns


def test_made_once_then_left_alone(
    spark: SparkSession, location: Location, made: list[str], opened_again: list[str]
) -> None:
    assert made == [f"CREATE VIEW IF NOT EXISTS {view}" for view in VIEWS]
    lake = open_lake(spark, location, Path.cwd())
    lake.keep_views()
    # analysed, which finds them
    lake.sql("SELECT * FROM alerts JOIN flow_status ON alerts.flow = flow_status.flow")
    assert opened_again == []


@pytest.mark.wide("test_made_once_then_left_alone")
def test_a_view_is_made_when_a_query_first_names_it(
    spark: SparkSession, location: Location, opened_again: list[str]
) -> None:
    """And those that it reads, on the way."""
    for view in VIEWS:
        spark.sql(f"DROP VIEW IF EXISTS spark_catalog.{SCHEMA}.{view}")
    lake = open_lake(spark, location, Path.cwd())
    lake.sql("SELECT * FROM alerts")
    assert opened_again[0] == "CREATE VIEW IF NOT EXISTS alerts"
    assert 1 < len(opened_again) < len(VIEWS)
    lake.keep_views()
    assert len(opened_again) == len(VIEWS)


def test_another_query_alters_the_view(
    spark: SparkSession, location: Location, opened_again: list[str]
) -> None:
    """As an upgrade finds it: a view of before, with other columns, on which something was
    granted."""
    wanted = columns(spark, "open_incidents")
    spark.sql(f"ALTER VIEW spark_catalog.{SCHEMA}.open_incidents AS SELECT 'x' AS flow, 1 AS gone")
    assert columns(spark, "open_incidents") == ["flow", "gone"]
    grant(spark, "open_incidents")
    open_lake(spark, location, Path.cwd()).keep_views()
    assert opened_again == ["ALTER VIEW open_incidents"]
    assert columns(spark, "open_incidents") == wanted
    assert is_granted(spark, "open_incidents")


def test_a_view_that_cannot_be_altered_is_named(
    spark: SparkSession,
    location: Location,
    opened_again: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = open_lake(spark, location, Path.cwd())
    queries = {view: view_query(view) for view in VIEWS} | {
        "open_incidents": "SELECT flow FROM no_such_table"
    }
    monkeypatch.setattr(registration, "view_query", queries.__getitem__)
    with pytest.raises(
        LakeError, match="the view open_incidents in .* cannot be altered, which only its owner may"
    ):
        lake.keep_views()


def test_replacing_would_have_dropped_it(spark: SparkSession, opened_again: list[str]) -> None:
    """What stands for a grant here is lost as a grant would be."""
    grant(spark, "throughput")
    spark.sql(f"CREATE OR REPLACE VIEW spark_catalog.{SCHEMA}.throughput AS SELECT 1 AS other")
    assert not is_granted(spark, "throughput")
