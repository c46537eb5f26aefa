"""A lake to which a newer version has added columns: this one goes on in it, and loses nothing of
them."""

import json
import logging
from datetime import datetime, timezone
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, write_deltalake

from mirrorlake.config.lake import Lake as Location
from mirrorlake.lake.definitions import definition, rows_of, sql_text
from mirrorlake.lake.duck_changes import RowChange
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.place import place_of
from mirrorlake.lake.reader import Frame
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.young_files import YoungFiles
from tests.support.lake_rows import ago

ADDED = pa.schema([("region", pa.string()), ("tags", pa.map_(pa.string(), pa.string()))])


@pytest.fixture
def tables(tmp_path: Path) -> PathTables:
    PathTables(tmp_path).create("clusters")
    DeltaTable(str(tmp_path / "clusters")).alter.add_columns(Schema.from_arrow(ADDED).fields)
    return PathTables(tmp_path)


def rows(directory: Path) -> list[dict[str, object]]:
    found = DeltaTable(str(directory / "clusters")).to_pyarrow_table()
    return found.select(["alias", *ADDED.names]).sort_by("alias").to_pylist()


def test_rows_are_appended_with_null_for_what_is_not_known_here(
    tables: PathTables, tmp_path: Path
) -> None:
    tables.append("clusters", rows_of("clusters", [{"alias": "east", "cluster_id": "x"}]))
    assert rows(tmp_path) == [{"alias": "east", "region": None, "tags": None}]


def test_rows_that_are_rewritten_keep_it(tables: PathTables, tmp_path: Path) -> None:
    tables.append(
        "clusters",
        rows_of("clusters", [{"alias": name, "cluster_id": name} for name in ("east", "west")]),
    )
    table = DeltaTable(str(tmp_path / "clusters"))
    table.update(updates={"region": "'there'"}, predicate="alias = 'west'")
    tables.rewrite("clusters", lambda found: found.filter(pa.compute.field("alias") == "west"))
    assert rows(tmp_path) == [{"alias": "west", "region": "there", "tags": None}]


def test_a_statement_that_changes_rows_keeps_it(tables: PathTables, tmp_path: Path) -> None:
    tables.append(
        "clusters",
        rows_of("clusters", [{"alias": name, "cluster_id": name} for name in ("east", "west")]),
    )
    table = DeltaTable(str(tmp_path / "clusters"))
    table.update(updates={"region": "'there'"}, predicate="alias = 'west'")
    pairs = [("west", "west", ago(0)), ("north", "north", ago(0))]
    seen = Frame("alias STRING, cluster_id STRING, seen TIMESTAMP", pairs)
    tables.rewrite(
        "clusters", RowChange(sql_text("queries", "clusters_seen"), {}, {"seen": seen}).applied_to
    )
    places = [(row["alias"], row["region"]) for row in rows(tmp_path)]
    assert places == [("east", None), ("north", None), ("west", "there")]


def test_fields_that_it_added_within_a_column_stay_too(tmp_path: Path) -> None:
    """Arrow drops a field that the type it casts to has not, and says nothing."""
    PathTables(tmp_path).create("states")
    acl = {item.name: item.arrow_type for item in definition("states").columns}["acls"].value_type
    more = pa.list_(pa.struct([*acl, pa.field("by", pa.string())]))
    now = pa.array([datetime.now(timezone.utc)], pa.timestamp("us", "UTC"))
    acls = pa.array([[{"host": "*", "by": "an admin"}]], more)
    newer = pa.table({"cluster": ["east"], "topic": ["orders"], "since": now, "acls": acls})
    write_deltalake(str(tmp_path / "states"), newer, mode="append", schema_mode="merge")
    tables = PathTables(tmp_path)
    tables.rewrite("states", lambda found: found)
    fresh = {"cluster": "east", "topic": "fresh", "since": now[0].as_py(), "acls": [{"host": "*"}]}
    tables.append("states", rows_of("states", [fresh]))
    found = (
        DeltaTable(str(tmp_path / "states")).to_pyarrow_table().sort_by("topic")["acls"].to_pylist()
    )
    assert [[item["by"] for item in acls] for acls in found] == [[None], ["an admin"]]


def _no_session() -> NoReturn:
    raise AssertionError("nothing here needs Spark")


class Stage:
    """A stage of small files, in a lake to which a newer version added a column."""

    def __init__(self, directory: Path) -> None:
        lake = open_lake(_no_session, Location(path=str(directory / "lake")), directory)
        self.directory = directory / "lake"
        self.table = self.directory / "records"
        DeltaTable(str(self.table)).alter.add_columns(Schema.from_arrow(ADDED).fields)
        for offset in range(4):
            self.land(offset)
        self.young = YoungFiles(place_of(self.directory), StageFiles(lake))

    def land(self, offset: int) -> None:
        """One record, as this version writes it, or, of an odd offset, as the newer one does."""
        now = datetime.now(timezone.utc)
        row = {
            "source_cluster": "east",
            "topic": "t",
            "partition": 0,
            "offset": offset,
            "timestamp": now,
        }
        rows = rows_of(
            "records",
            [{**row, "landed_at": now, "batch_id": offset, "generation": 0, "timestamp_type": 0}],
        )
        if offset % 2:
            rows = rows.append_column("region", pa.array(["there"]))
            rows = rows.append_column("tags", pa.array([[("a", "b")]], ADDED.field("tags").type))
            write_deltalake(str(self.table), rows, mode="append", schema_mode="merge")
        else:
            PathTables(self.directory).append("records", rows)

    def upgrade(self, *features: str) -> None:
        """Give the table features, as another writer may."""
        version = DeltaTable(str(self.table)).version() + 1
        reader = {"columnMapping", "deletionVectors", "typeWidening"}.intersection(features)
        protocol = {
            "minReaderVersion": 3 if reader else 1,
            "minWriterVersion": 7,
            "writerFeatures": list(features),
        }
        action = {
            "protocol": {**protocol, **({"readerFeatures": sorted(reader)} if reader else {})}
        }
        (self.table / "_delta_log" / f"{version:020d}.json").write_text(json.dumps(action) + "\n")


def test_small_files_that_become_one_keep_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    assert len(stage.young.compact()) == 4
    table = DeltaTable(str(stage.table))
    assert len(table.file_uris()) == 1
    found = table.to_pyarrow_table().select(["offset", *ADDED.names]).sort_by("offset").to_pylist()
    assert [(row["offset"], row["region"], row["tags"]) for row in found] == [
        (offset, "there" if offset % 2 else None, [("a", "b")] if offset % 2 else None)
        for offset in range(4)
    ]


@pytest.mark.parametrize(
    "feature", ["deletionVectors", "columnMapping", "rowTracking", "inCommitTimestamp", "newerYet"]
)
def test_a_table_with_what_is_not_known_here_is_left_to_others(
    tmp_path: Path, feature: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A row that a deletion vector hides would come back, one that has an id would get another."""
    stage = Stage(tmp_path)
    stage.upgrade("appendOnly", "invariants", feature)
    version = DeltaTable(str(stage.table)).version()
    with caplog.at_level(logging.WARNING):
        assert stage.young.compact() == stage.young.compact() == []
    assert DeltaTable(str(stage.table)).version() == version
    assert [record.getMessage() for record in caplog.records if feature in record.getMessage()] == [
        f"table records: small files are left to mirrorlake maintain, since it has {feature}"
    ]


def test_features_that_ask_nothing_are_no_reason(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.upgrade(
        "appendOnly", "invariants", "checkConstraints", "generatedColumns", "changeDataFeed"
    )
    assert len(stage.young.compact()) == 4
