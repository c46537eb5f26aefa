"""Each SELECT of docs/recipes.md is run, by DuckDB and by Spark, and gives the same number of
rows."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.config.lake import Lake as Location
from mirrorlake.lake.opening import open_lake
from tests.support.sample_lake import fill

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
RECIPES = re.findall(
    r"^## (\d+)\. [^\n]+\n.*?```sql\n(.*?)```",
    PAGE.read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)
#: What the sample lake has nothing of: no record is staged, nothing differs, its past ends now.
NOTHING = {"3", "7", "9", "10", "12", "15", "16", "17", "19"}


def no_session() -> SparkSession:
    raise AssertionError("a lake in a folder is made without Spark")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("recipes")
    fill(open_lake(no_session, Location(path="lake"), directory), 0.5)
    return directory / "lake"


def test_there_are_twenty() -> None:
    assert [int(number) for number, _ in RECIPES] == list(range(1, 21))


@pytest.mark.parametrize(("number", "query"), RECIPES)
def test_duckdb_answers(place: Path, number: str, query: str) -> None:
    rows = mirrorlake.open(path=place).rows(query)
    assert rows.columns and (bool(rows) or number in NOTHING)


@pytest.mark.slow
def test_spark_answers_alike(spark: SparkSession, place: Path) -> None:
    by_duck, by_spark = (
        mirrorlake.open(path=place),
        mirrorlake.open(path=place, engine="spark", spark=spark),
    )
    for number, query in RECIPES:
        assert len(by_spark.rows(query)) == len(by_duck.rows(query)), number
