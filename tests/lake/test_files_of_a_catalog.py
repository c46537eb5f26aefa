"""A catalog's own tables, which Spark writes, answer without a session where their files are at
hand; and only where they are what the catalog says."""

import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import mirrorlake as library
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import InputError, LakeError, ReplicationError
from mirrorlake.lake.catalog_files import CatalogFiles, NotedFiles, note_files, noted_files
from mirrorlake.lake.catalog_reader import CatalogReader
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.delta_log import DeltaLog
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.incidents import Incident, Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.objectives import Mode, note_objectives
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.targets import close_unfounded
from mirrorlake.threads import side_by_side
from tests.support.commands import mirrorlake
from tests.support.lake_rows import (
    FLOW,
    append,
    opened,
    run_row,
    sample,
    staged,
    table_of,
    write_file,
)

CATALOG = "spark_catalog"
pytestmark = pytest.mark.slow  # Spark takes half a minute to make the tables


@pytest.fixture(scope="module")
def file(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The topology file of a lake with some records, whose tables Spark made."""
    schema = f"f{uuid.uuid4().hex[:8]}"
    place = {"catalog": CATALOG, "schema": schema, "checkpoints": "./state"}
    file = write_file(tmp_path_factory.mktemp("files of a catalog"), lake=place)
    lake = opened(spark, file)[0]
    append(lake, "records", staged(range(10)))
    append(lake, "offset_map", [run_row(0, 9)])
    append(lake, "positions", [sample(1, 10, 10)])
    lake.keep_views()
    yield file
    spark.sql(f"DROP SCHEMA {CATALOG}.{schema} CASCADE")


@pytest.fixture
def lake(spark: SparkSession, file: Path) -> Lake:
    return opened(spark, file)[0]


@pytest.fixture
def statements(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the session is given to run."""
    given: list[str] = []
    real = SparkSession.sql

    def noted(session: SparkSession, text: str, *args: Any, **more: Any) -> DataFrame:
        given.append(text)
        return real(session, text, *args, **more)

    monkeypatch.setattr(SparkSession, "sql", noted)
    return given


def noted_of(file: Path) -> NotedFiles:
    schema = library.open(file).internals.topology.lake.schema_name
    noted = noted_files(file.parent / "state", f"`{CATALOG}`.`{schema}`")
    assert noted is not None
    return noted


@pytest.fixture
def copied(file: Path, tmp_path: Path) -> Path:
    """Its topology file in another folder, with a copy of the tables that its note says."""
    noted = noted_of(file)
    shutil.copytree(noted.files.root, tmp_path / "tables")
    shutil.copy(file, tmp_path)
    (tmp_path / "state").mkdir()
    moved = NotedFiles(CatalogFiles(noted.files.schema, str(tmp_path / "tables")), noted.ids)
    note_files(tmp_path / "state", moved)
    return tmp_path / file.name


def without_session(file: Path) -> Reader | None:
    return library.open(file).internals.sessionless


def why_not(file: Path) -> str:
    """Why DuckDB does not answer, as who asks for it is told."""
    assert without_session(file) is None
    with pytest.raises(InputError) as refused:
        _ = library.open(file, engine="duckdb").internals.reader
    return str(refused.value)


def test_commands_answer_without_spark(file: Path) -> None:
    """In processes that cannot import it."""
    status = mirrorlake(file, "status")
    assert [flow["flow"] for flow in status["flows"]] == [FLOW]
    assert status["warnings"] == [], "commits by Spark are no other program's"
    place = ("--flow", FLOW, "--topic", "orders", "--partition", "0", "--offset", "7")
    assert mirrorlake(file, "translate", *place)["offset"] == 7
    (row,) = mirrorlake(file, "sql", "SELECT count(*) AS count FROM records")
    assert row["count"] == 10
    assert "not mirrored" not in str(mirrorlake(file, "trace", *place))


def test_what_was_just_committed_is_read(spark: SparkSession, file: Path, lake: Lake) -> None:
    """By this process or another one, whatever became of the files since."""
    reader = without_session(file)
    assert isinstance(reader, CatalogReader)
    text = "SELECT offset, value FROM records WHERE topic = 'busy' ORDER BY offset"
    for first in (0, 10):
        append(lake, "records", staged(range(first, first + 10), topic="busy"))
        reader.refresh()
        assert reader.rows(text) == lake.rows(text)
        assert len(reader.rows(text)) == first + 10
    name = lake.name("records")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    for statement in (
        f"DELETE FROM {name} WHERE topic = 'busy' AND offset < 5",
        f"OPTIMIZE {name}",
        f"VACUUM {name} RETAIN 0 HOURS",
        f"ALTER TABLE {name} ADD COLUMNS (of_a_newer_version STRING)",
    ):
        spark.sql(statement).collect()
        reader.refresh()
        assert [row["offset"] for row in reader.rows(text)] == list(range(5, 20)), statement
    assert reader.rows(text) == lake.rows(text)


def test_few_statements_are_run(
    spark: SparkSession, file: Path, statements: list[str], lake: Lake
) -> None:
    """To open a lake that is there takes three; to ask it, none; to change what is so already,
    none, and no commit."""
    place = f"`{CATALOG}`.`{load_topology(file).lake.schema_name}`"
    assert statements == [
        f"USE {place}",
        f"SHOW TABLE EXTENDED IN {place} LIKE '*'",
        f"SHOW TBLPROPERTIES {place}.records",
    ]
    lake.append("positions", table_of([sample(1, 11, 11)] * 8), "an application", 7)
    assert lake.files is not None
    commit = DeltaLog(lake.files.files.place / "positions").commit(lake.version_of("positions"))
    assert commit is not None and len(commit.added) == 1, "rows of one append are one file"
    Incidents(lake).report([Incident(FLOW, "source_refused", ReplicationError("no", topic="a"))])
    version = lake.version_of("incidents")
    del statements[:]
    close_unfounded(lake, FLOW, [("orders", "east.orders", 0)])
    assert lake.version_of("incidents") == version
    (told,) = lake.ask_table("open_incidents")
    assert told["topic"] == "a"
    assert lake.application_version("positions", "an application") == 7
    assert lake.application_version("positions", "another") is None
    assert "deletionVectors" not in lake.features("records")
    assert lake.properties("records")["mirrorlake.lake_id"] == lake.stored_id
    assert EventLog(lake).history(FLOW, "produce_tasks") == ()
    assert "WITH" not in lake.reader.with_all_columns("positions")
    with StageFiles(lake).reading() as index:
        assert index.ends("east")["orders", 0] == (0, 10)
    assert statements == []


def test_the_first_rows_of_a_table_are_appended(lake: Lake, statements: list[str]) -> None:
    """Which Spark does in a tenth of the time of a MERGE; once for a table, whatever became of its
    rows since."""
    log = EventLog(lake)
    log.clusters({"east": "first"})
    assert statements == []
    log.clusters({"east": "first", "west": "second"})
    assert [text.partition("\n")[0] for text in statements if "MERGE" in text] == [
        "-- Note which cluster each alias is now. Frames: seen (alias, cluster_id, seen)."
    ]
    assert [row["alias"] for row in lake.ask_table("clusters")] == ["east", "west"]
    lake.sql("DELETE FROM clusters").collect()
    log.clusters({"east": "third"})
    assert [row["cluster_id"] for row in lake.ask_table("clusters")] == ["third"]


def test_two_processes_that_fill_a_table_at_once_note_each_row_once(
    spark: SparkSession, file: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology, other = load_topology(file), opened(spark, file)[0]
    real, looked = CatalogReader.rows_of, Barrier(2)

    def together(reader: CatalogReader, table: str) -> pa.Table:
        rows = real(reader, table)
        if table == "objectives" and rows.num_rows == 0:
            looked.wait(60)  # both have seen no row before either writes
        return rows

    monkeypatch.setattr(CatalogReader, "rows_of", together)
    both: tuple[tuple[Lake, Mode], ...] = ((lake, "continuous"), (other, "once"))
    side_by_side(lambda each: note_objectives(each[0], topology, {FLOW: each[1]}), both)
    (row,) = [row for row in lake.ask_table("objectives") if row["flow"] == FLOW]
    assert row["mode"] in ("continuous", "once")
    assert len(lake.ask_table("objectives")) == len(topology.flows)


def test_spark_answers_where_it_is_asked_for(spark: SparkSession, file: Path) -> None:
    assert library.open(file, spark=spark, engine="spark").internals.reader.engine == "Spark"
    assert library.open(file, spark=spark).internals.reader.engine == "DuckDB"


def test_a_table_that_was_made_again_is_another_one(
    spark: SparkSession, file: Path, lake: Lake
) -> None:
    """Until a process that writes the lake has opened it."""
    known = library.open(file).internals
    assert known.sessionless is not None
    name = lake.name("starts")
    spark.sql(f"DROP TABLE {name}")
    assert "table starts is not at " in why_not(file)
    spark.sql(f"CREATE TABLE {name} (flow STRING) USING DELTA")
    assert "table starts at " in why_not(file) and "was made again" in why_not(file)
    assert known.sessionless is None, "nor by who had it open"
    spark.sql(f"DROP TABLE {name}")
    opened(spark, file)
    assert without_session(file) is not None and known.sessionless is not None


def test_only_a_catalog_knows_the_commits_of_some_tables(copied: Path) -> None:
    assert without_session(copied) is not None
    change_protocol(copied, "catalogManaged")
    assert "table changes at " in why_not(copied)
    assert "has commits that only its catalog knows" in why_not(copied)


@pytest.mark.parametrize("feature", ["deletionVectors", "columnMapping"])
def test_files_are_not_all_rows_of_some_tables(copied: Path, feature: str) -> None:
    change_protocol(copied, feature)
    assert f"has {feature}, which only Spark reads" in why_not(copied)


def change_protocol(copied: Path, feature: str) -> None:
    """Let the log of `changes` ask for a feature more."""
    log = copied.parent / "tables" / "changes" / "_delta_log"
    version = max(int(path.stem) for path in log.glob("*.json"))
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [feature],
        "writerFeatures": [feature, "appendOnly", "invariants", "changeDataFeed"],
    }
    (log / f"{version + 1:020}.json").write_text(json.dumps({"protocol": protocol}) + "\n")


def test_tables_are_not_at_hand_everywhere(copied: Path) -> None:
    shutil.rmtree(copied.parent / "tables" / "audits")
    assert "table audits is not at " in why_not(copied)
    (copied.parent / "state" / "tables.json").write_text("{")
    assert "is not noted in" in why_not(copied)


def test_a_note_is_of_one_schema(copied: Path) -> None:
    text = copied.read_text(encoding="utf-8")
    schema = noted_of(copied).files.schema.split("`")[3]
    copied.write_text(text.replace(schema, "another"), encoding="utf-8")
    assert "is not noted in" in why_not(copied)


def test_a_table_elsewhere_is_not_noted(
    spark: SparkSession, file: Path, lake: Lake, tmp_path: Path
) -> None:
    """What lay beside the others once may still be there, and is not what the catalog has."""
    place = noted_of(file).files.root
    name, other = lake.name("forgotten"), tmp_path / "forgotten"
    shutil.copytree(f"{place}/forgotten", other)
    spark.sql(f"DROP TABLE {name}")
    shutil.copytree(other, f"{place}/forgotten")
    spark.sql(f"CREATE TABLE {name} USING DELTA LOCATION '{other}'")
    opened(spark, file)
    assert "is not noted in" in why_not(file)
    spark.sql(f"DROP TABLE {name}")
    shutil.rmtree(f"{place}/forgotten")
    opened(spark, file)
    assert without_session(file) is not None


def test_all_tables_are_noted_by_their_ids(file: Path) -> None:
    noted = noted_of(file)
    assert sorted(noted.ids) == sorted(TABLES)
    with pytest.raises(LakeError, match="was made again"):
        CatalogReader(noted.files, file.parent / "state", {**noted.ids, "clusters": "another"})
