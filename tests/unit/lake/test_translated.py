"""What is noted of the package's texts in DuckDB's words is what they are, and answers go by it."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from mirrorlake.lake import dialect, translated
from mirrorlake.lake.definitions import sql_text
from mirrorlake.lake.dialect import DuckQuery, to_duckdb
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.translated import duckdb_columns, duckdb_query
from mirrorlake.run.status import read_status
from tests.support.docs_scripts import docs_script

ALERTS = sql_text("views", "alerts")


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return docs_script("make_translated")


@pytest.fixture
def _nothing_known() -> Iterator[None]:
    """Of what this process has translated, or read."""
    known = (duckdb_query, duckdb_columns, translated._notes)
    for each in known:
        each.cache_clear()
    yield
    for each in known:
        each.cache_clear()


def test_the_notes_are_up_to_date(maker: ModuleType) -> None:
    made = json.loads(json.dumps(maker.notes()))
    assert json.loads(maker.FILE.read_text(encoding="utf-8")) == made, "run `make tables`"


@pytest.mark.usefixtures("_nothing_known")
def test_an_answer_translates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    def translate(text: str) -> DuckQuery:
        asked.append(text)
        raise AssertionError(text)

    monkeypatch.setattr(dialect, "to_duckdb", translate)
    monkeypatch.setattr(dialect, "columns_of", translate)
    assert read_status(DuckLake(tmp_path), None)["flows"] == []
    assert not asked


@pytest.mark.usefixtures("_nothing_known")
def test_a_text_that_is_another_one_is_translated() -> None:
    changed = ALERTS.replace("'stuck'", "'stands still'")
    assert "'stands still'" in duckdb_query(changed).text
    assert duckdb_query(ALERTS) == to_duckdb(ALERTS)


@pytest.mark.usefixtures("_nothing_known")
def test_notes_by_other_rules_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert translated._notes()["queries"]
    translated._notes.cache_clear()
    monkeypatch.setattr(translated, "rules", lambda: "others")
    assert not translated._notes()["queries"]
    assert duckdb_query(ALERTS) == to_duckdb(ALERTS)
