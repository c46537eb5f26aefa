"""A lake to which a newer version has added columns: this one goes on in it, and loses nothing of them."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.path_tables import PathTables

ADDED = pa.schema([("region", pa.string()), ("tags", pa.map_(pa.string(), pa.string()))])


@pytest.fixture
def tables(tmp_path: Path) -> PathTables:
    PathTables(tmp_path).create("clusters")
    DeltaTable(str(tmp_path / "clusters")).alter.add_columns(Schema.from_arrow(ADDED).fields)
    return PathTables(tmp_path)


def rows(directory: Path) -> list[dict[str, object]]:
    found = DeltaTable(str(directory / "clusters")).to_pyarrow_table()
    return found.select(["alias", *ADDED.names]).sort_by("alias").to_pylist()


def test_rows_are_appended_with_null_for_what_is_not_known_here(tables: PathTables, tmp_path: Path) -> None:
    tables.append("clusters", rows_of("clusters", [{"alias": "east", "cluster_id": "x"}]))
    assert rows(tmp_path) == [{"alias": "east", "region": None, "tags": None}]


def test_rows_that_are_rewritten_keep_it(tables: PathTables, tmp_path: Path) -> None:
    tables.append("clusters", rows_of("clusters", [{"alias": name, "cluster_id": name} for name in ("east", "west")]))
    table = DeltaTable(str(tmp_path / "clusters"))
    table.update(updates={"region": "'there'"}, predicate="alias = 'west'")
    tables.rewrite("clusters", lambda found: found.filter(pa.compute.field("alias") == "west"))
    assert rows(tmp_path) == [{"alias": "west", "region": "there", "tags": None}]
