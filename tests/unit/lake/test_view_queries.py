"""The queries of views, as a catalog is given them."""

import re
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

import mirrorlake
from mirrorlake.lake.definitions import VIEWS, view_query

SQL = Path(mirrorlake.__file__).parent / "sql"


@pytest.mark.parametrize("view", VIEWS)
def test_a_query_stands_behind_as_and_names_its_columns(view: str) -> None:
    """A star would hide a new column from a view that is not altered, since its text stays the
    same."""
    query = view_query(view)
    assert query.upper().startswith(("SELECT", "WITH")) and not query.endswith(";")
    (tree,) = sqlglot.parse(query, read="databricks")
    assert isinstance(tree, exp.Query)
    assert all(tree.named_selects) and "*" not in tree.named_selects


def test_one_bound_says_what_is_of_a_time_to_come() -> None:
    """By how much clocks of two hosts may differ: who asks for samples and batches agrees."""
    texts = {path: path.read_text(encoding="utf-8") for path in SQL.rglob("*.sql")}
    bounds = {
        bound
        for text in texts.values()
        for bound in re.findall(r"current_timestamp\(\)\s*\+\s*(INTERVAL \d+ \w+)", text)
    }
    assert bounds == {"INTERVAL 5 MINUTES"}
