"""docs/tables.md is what `make tables` writes, and it describes every table, view and column."""

import re
from types import ModuleType

import pytest

from mirrorlake.lake.definitions import TABLES, VIEWS, definition
from tests.support.docs_scripts import DOCS, docs_script


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return docs_script("make_tables")


def test_the_page_is_up_to_date(maker: ModuleType) -> None:
    assert (DOCS / "tables.md").read_text(encoding="utf-8") == maker.page(), "run `make tables`"


def test_every_table_view_and_column_is_on_it(maker: ModuleType) -> None:
    parts = dict(
        re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", maker.page(), re.MULTILINE | re.DOTALL)
    )
    assert list(parts) == [*TABLES, *VIEWS]
    for name, text in parts.items():
        columns = (
            [item.name for item in definition(name).columns]
            if name in TABLES
            else maker.columns_of(name)
        )
        assert (
            columns
            and re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)))
            == columns
        )
        assert len(text.partition("|")[0].split()) > 5, f"what a row of {name} is"


def test_a_column_of_a_view_that_nobody_describes_is_an_error(maker: ModuleType) -> None:
    with pytest.raises(KeyError, match="what odd of view alerts means is not said"):
        maker.meaning("alerts", "odd")
    assert {key for key in maker.OF_VIEWS if key not in used(maker)} == set()


def used(maker: ModuleType) -> set[str]:
    """Descriptions of columns that there are."""
    columns = {(view, column) for view in VIEWS for column in maker.columns_of(view)}
    return {f"{view}.{column}" for view, column in columns} | {column for _, column in columns}
