"""Where a catalog's own tables are, by what it tells of all its names at once."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mirrorlake.errors import InputError
from mirrorlake.lake.catalog_files import (
    CatalogFiles,
    NotedFiles,
    files_by_catalog,
    note_files,
    noted_files,
)
from mirrorlake.lake.catalog_names import CatalogNames
from mirrorlake.lake.definitions import TABLES

SCHEMA = "`main`.`replication`"
VIEW = "Type: VIEW\nView Text: SELECT a,\n  b FROM c\nView Original Text: SELECT 1\nOwner: me\n"


class Catalog:
    """Tells of all names what it is given, of each alone nothing."""

    def __init__(self, told: Mapping[str, str] | None) -> None:
        self.said: list[str] = []
        self._told = told

    def run(self, text: str) -> Sequence[Mapping[str, str]]:
        self.said.append(text)
        if text.startswith("SHOW TABLE EXTENDED"):
            if self._told is None:
                raise InputError("it is not supported")
            return [{"tableName": name, "information": told} for name, told in self._told.items()]
        return [{"tableName": "records"}] if text.startswith("SHOW TABLES") else []

    @property
    def names(self) -> CatalogNames:
        return CatalogNames(self.run, SCHEMA)


def tables_at(root: str, **others: str) -> dict[str, str]:
    """What a catalog tells of tables below a place; of some of them something else."""
    told = "Catalog: main\nType: MANAGED\nProvider: delta\nLocation: {}\nOwner: me\n"
    return {table: told.format(others.get(table, f"{root}/{table}")) for table in TABLES}


@pytest.mark.parametrize(
    ("told", "root"),
    [
        ("file:/lakes/a b.db", "/lakes/a b.db"),
        ("file:///lakes/l.db", "/lakes/l.db"),
        ("/lakes/l.db", "/lakes/l.db"),
        ("s3a://bucket/l.db", "s3a://bucket/l.db"),
        ("dbfs:/user/hive/l.db", None),
        ("hdfs://host/l.db", None),
    ],
)
def test_places_that_this_process_can_read(told: str, root: str | None) -> None:
    files = files_by_catalog(Catalog(tables_at(told)).names)
    assert files == (None if root is None else CatalogFiles(SCHEMA, root))


def test_tables_have_one_place_and_are_the_catalogs_own() -> None:
    root = "file:/lakes/l.db"
    told = tables_at(root)
    assert files_by_catalog(Catalog(told).names) is not None
    external = {**told, "audits": told["audits"].replace("MANAGED", "EXTERNAL")}
    missing = {name: told[name] for name in TABLES if name != "audits"}
    for other in (
        tables_at(root, audits="file:/elsewhere/audits"),
        tables_at(root, audits=f"{root}/another"),
        external,
        missing,
        None,
    ):
        assert files_by_catalog(Catalog(other).names) is None


def test_views_are_among_the_names_or_asked_for() -> None:
    with_views = Catalog({"records": "Type: MANAGED\n", "alerts": VIEW})
    assert with_views.names.known == {"records", "alerts"} and len(with_views.said) == 1
    without = Catalog({"records": "Type: MANAGED\n"})
    assert without.names.known == {"records"}
    assert [text.split(" IN ")[0] for text in without.said[1:]] == ["SHOW TABLES", "SHOW VIEWS"]


def test_what_a_catalog_says_of_a_view() -> None:
    """A query that another one begins with is another one."""
    catalog = Catalog({"alerts": VIEW})
    names = catalog.names
    assert names.says("alerts", "View Text", "SELECT a, b\nFROM c")
    assert len(catalog.said) == 1
    for text in ("SELECT a, b", "SELECT a, b FROM c WHERE d", "b FROM c"):
        assert not names.says("alerts", "View Text", text)
    assert catalog.said[-1] == f"DESCRIBE TABLE EXTENDED {SCHEMA}.alerts"


def test_a_note_is_what_was_noted_last(tmp_path: Path) -> None:
    assert noted_files(tmp_path, SCHEMA) is None
    noted = NotedFiles(CatalogFiles(SCHEMA, "/lakes/l.db"), {"records": "an id"})
    note_files(tmp_path, noted)
    written = (tmp_path / "tables.json").stat().st_ino
    note_files(tmp_path, noted)
    assert (tmp_path / "tables.json").stat().st_ino == written, "nothing is written twice"
    assert noted_files(tmp_path, SCHEMA) == noted
    assert noted_files(tmp_path, "`main`.`another`") is None
    note_files(tmp_path, None)
    assert noted_files(tmp_path, SCHEMA) is None


@pytest.mark.parametrize("ids", [None, ["records"], "records", 7])
def test_a_note_that_is_damaged_is_none(tmp_path: Path, ids: object) -> None:
    files = {"schema": SCHEMA, "root": "/lakes/l.db"}
    (tmp_path / "tables.json").write_text(json.dumps({"files": files, "ids": ids}))
    assert noted_files(tmp_path, SCHEMA) is None
