"""The tables that Spark makes are those that `lake/definitions.py` reads from the same
statements."""

from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from mirrorlake.config.lake import Lake as Location
from mirrorlake.lake.definitions import TABLES, definition
from mirrorlake.lake.layout import log_properties
from mirrorlake.lake.opening import open_lake
from mirrorlake.spark.session import local_session


def test_definitions_say_what_spark_made(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(spark, Location(path=str(tmp_path / "lake")), tmp_path)
    for table in TABLES:
        found = definition(table)
        made = lake.table(table).schema
        assert [(item.name, item.dataType) for item in from_arrow_schema(found.rows)] == [
            (item.name, item.dataType) for item in made
        ]
        assert [not column.required for column in found.columns] == [item.nullable for item in made]
        properties = DeltaTable(str(tmp_path / "lake" / table)).metadata().configuration
        wanted = {**found.properties, **log_properties(table)}
        assert wanted == {key: properties[key] for key in wanted}


def test_a_table_of_an_earlier_version_gets_the_columns_it_lacks(
    spark: SparkSession, tmp_path: Path
) -> None:
    location = Location(path=str(tmp_path / "lake"))
    place = tmp_path / "lake" / "states"
    spark.sql(
        f"CREATE TABLE delta.`{place}` (cluster STRING NOT NULL, topic STRING, since TIMESTAMP) "
        "USING DELTA"
    )
    lake = open_lake(spark, location, tmp_path)
    assert lake.table("states").columns == [column.name for column in definition("states").columns]


def test_a_session_that_has_delta_keeps_it_when_one_without_is_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As a command in the process of a notebook asks for one."""
    lake = open_lake(spark, Location(path="lake"), tmp_path)
    there = lake.spark
    assert local_session("2", short=True, delta=False) is there
    assert lake.sql("SELECT * FROM offset_map").collect() == []
