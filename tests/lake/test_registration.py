"""Tables of a lake at a path have names in a catalog: made once, left alone, and they show what
delta-rs commits."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.cli.main import main
from mirrorlake.errors import InputError, LakeError
from mirrorlake.lake.catalog_lake import CatalogLake
from mirrorlake.lake.changes import WHOLE_LAKE
from mirrorlake.lake.definitions import TABLES, VIEWS
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.warehouse import WarehouseLake
from mirrorlake.library.internals import Internals
from mirrorlake.run.upkeep import OTHER_WRITER, UpkeepWorker
from tests.support.lake_rows import append, no_session, now_of, opened, run_row, staged, write_file
from tests.support.warehouse import SparkConnection

CATALOG = "spark_catalog"
GRANT = "somebody.granted"


def a_file(directory: Path, schema: str, **more: object) -> Path:
    """A topology file whose lake has names in the session's catalog."""
    lake = {"path": "./the lake", "catalog": CATALOG, "schema": schema, **more}
    return write_file(directory, lake=lake)


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    name = f"r{uuid.uuid4().hex[:8]}"
    yield name
    spark.sql(f"DROP SCHEMA IF EXISTS {CATALOG}.{name} CASCADE")


@pytest.fixture
def file(tmp_path: Path, schema: str) -> Path:
    return a_file(tmp_path, schema)


def lake_of(file: Path) -> Lake:
    """The lake, written without a session."""
    return opened(no_session, file)[0]


def actions(rows: mirrorlake.Rows) -> set[str]:
    return {row["action"] for row in rows}


@pytest.mark.slow
def test_names_are_made_once_and_show_what_is_committed_later(
    spark: SparkSession, file: Path, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = lake_of(file)
    append(lake, "records", staged(range(10)))
    versions = {table: lake.version_of(table) for table in TABLES}
    main(["-c", str(file), "register", "--json"])
    made = json.loads(capsys.readouterr().out)
    assert made["catalog"] == CATALOG and made["schema"] == schema
    assert made["path"] == str(file.parent / "the lake")
    assert made["tables"] == [{"table": table, "action": "created"} for table in TABLES]
    assert made["views"] == [{"view": view, "action": "created"} for view in VIEWS]
    assert {table: lake.version_of(table) for table in TABLES} == versions, "it commits nothing"

    append(lake, "records", staged(range(10, 25)))
    append(lake, "offset_map", [run_row(0, 24)])
    seen = mirrorlake.open(catalog=CATALOG, schema=schema, spark=spark)
    assert seen.table("records").count() == 25
    assert seen.translate("east->west", "orders", 0, 17).offset == 17
    assert [row.target_first for row in seen.table("offset_translation").collect()] == [0]
    with pytest.raises(LakeError, match="read-only"):
        _ = seen.internals.tables.checkpoints

    spark.sql(f"ALTER VIEW {CATALOG}.{schema}.throughput SET TBLPROPERTIES ('{GRANT}' = 'yes')")
    spark.sql(f"ALTER VIEW {CATALOG}.{schema}.alerts AS SELECT 1 AS of_another_version")
    again = mirrorlake.open(file, spark=spark).register()
    assert actions(again.tables) == {"kept"}
    changed = [row for row in again.views if row["action"] != "kept"]
    assert changed == [{"view": "alerts", "action": "altered"}]
    assert "of_another_version" not in spark.table(f"{CATALOG}.{schema}.alerts").columns
    kept = spark.sql(f"SHOW TBLPROPERTIES {CATALOG}.{schema}.throughput").collect()
    assert GRANT in {row["key"] for row in kept}, "what was granted on a view stays"


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("CREATE TABLE {name} USING DELTA LOCATION '{other}'", "it lies at file:{other};"),
        *(
            pytest.param(statement, what, marks=pytest.mark.wide("test_a_name_of_something_else"))
            for statement, what in (
                ("CREATE TABLE {name} (a INT) USING DELTA", "it is a table of the catalog itself;"),
                ("CREATE VIEW {name} AS SELECT 1 AS a", "it is a view;"),
            )
        ),
    ],
)
def test_a_name_of_something_else(
    spark: SparkSession, file: Path, schema: str, tmp_path: Path, statement: str, what: str
) -> None:
    other = lake_of(a_file(tmp_path / "other", schema)).directory
    lake_of(file)
    spark.sql(f"CREATE SCHEMA {CATALOG}.{schema}")
    given = {"name": f"{CATALOG}.{schema}.starts", "other": f"{other}/starts"}
    spark.sql(statement.format(**given))
    with pytest.raises(LakeError) as raised:
        mirrorlake.open(file, spark=spark).register()
    assert f"the name starts of {CATALOG}.{schema} is not that of" in str(raised.value)
    assert what.format(**given) in str(raised.value) and raised.value.exit_code == 2
    there = spark.sql(f"SHOW TABLES IN {CATALOG}.{schema}").collect()
    assert [row["tableName"] for row in there] == ["starts"], "none is made"


def test_no_session_commits_to_them(spark: SparkSession, file: Path, schema: str) -> None:
    """A topology file that leaves the path out would have Spark write beside delta-rs."""
    records = f"{lake_of(file).directory}/records"
    spark.sql(f"CREATE SCHEMA {CATALOG}.{schema}")
    spark.sql(f"CREATE TABLE {CATALOG}.{schema}.records USING DELTA LOCATION '{records}'")
    checkpoints = str(file.parent / "checkpoints")
    place = {"catalog": CATALOG, "schema": schema, "checkpoints": checkpoints}
    with pytest.raises(LakeError, match="lie outside of the catalog .* as lake.path, beside"):
        opened(spark, write_file(file.parent / "x", lake=place))


def test_commits_of_others_are_found(spark: SparkSession, file: Path) -> None:
    lake = lake_of(file)
    assert isinstance(lake, PathLake)
    append(lake, "records", staged(range(10)))
    append(lake, "records", staged(range(10, 20)))
    upkeep = UpkeepWorker(lake, StageFiles(lake))
    upkeep.note_others()
    assert now_of(lake).table_rows("open_incidents") == []
    assert mirrorlake.open(file).status().warnings == []
    spark.sql(f"OPTIMIZE delta.`{lake.directory}/records`")
    append(lake, "records", staged(range(20, 30)))
    (warning,) = mirrorlake.open(file).status().warnings
    assert "table records was committed to by Apache-Spark/" in warning
    assert "(OPTIMIZE, version 3, " in warning
    for _ in range(2):
        upkeep.note_others()
    (incident,) = now_of(lake).table_rows("open_incidents")
    assert (incident["flow"], incident["kind"]) == (WHOLE_LAKE, OTHER_WRITER)
    assert incident["detail"] == warning
    assert lake_of(write_file(file.parent)).one_writer is False, "without names it is as it was"


@pytest.mark.wide("test_commits_of_others_are_found")
def test_a_warehouse_registers(
    spark: SparkSession, tmp_path: Path, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a session of this process: Spark is behind the connection. What is committed later,
    without Spark, is seen by the names."""
    details = {"server_hostname": "w.example", "http_path": "/1", "access_token": "x"}
    file = a_file(tmp_path, schema, warehouse=details)
    spark.sql(f"CREATE SCHEMA {CATALOG}.{schema}")
    behind = CatalogLake(lambda: spark, f"{CATALOG}.{schema}", None)
    behind.mark_known(TABLES, VIEWS)
    warehouse = WarehouseLake(lambda: SparkConnection(behind), (PySparkException,))
    monkeypatch.setattr(Internals, "_warehouse", warehouse)
    monkeypatch.setattr(Internals, "spark", property(lambda _known: no_session()))
    lake_of(file)
    made = mirrorlake.open(file).register()
    assert actions(made.tables) == actions(made.views) == {"created"}
    append(lake_of(file), "records", staged(range(10)))
    append(lake_of(file), "offset_map", [run_row(0, 9)])
    assert spark.table(f"{CATALOG}.{schema}.records").count() == 10
    (seen,) = spark.table(f"{CATALOG}.{schema}.offset_translation").collect()
    assert (seen["source_first"], seen["record_count"]) == (0, 10)


def test_what_cannot_be_registered(
    spark: SparkSession, tmp_path: Path, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="write lake.catalog and lake.schema beside lake.path"):
        mirrorlake.open(write_file(tmp_path)).register()
    file = a_file(tmp_path, schema)
    with pytest.raises(LakeError, match="opened read-only"):
        lake_of(file)
        mirrorlake.open(file, read_only=True, spark=spark).register()
    monkeypatch.setattr(Internals, "starts_session", True)
    with pytest.raises(LakeError, match="a catalog that ends with it"):
        mirrorlake.open(file, spark=spark).register()
