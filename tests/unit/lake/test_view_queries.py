"""The queries of views, as a catalog is given them."""

import pytest
import sqlglot
from sqlglot import exp

from mirrorlake.lake.definitions import VIEWS, view_query


@pytest.mark.parametrize("view", VIEWS)
def test_a_query_stands_behind_as_and_names_its_columns(view: str) -> None:
    """A star would hide a new column from a view that is not altered, since its text stays the
    same."""
    query = view_query(view)
    assert query.upper().startswith(("SELECT", "WITH")) and not query.endswith(";")
    (tree,) = sqlglot.parse(query, read="databricks")
    assert isinstance(tree, exp.Query)
    assert all(tree.named_selects) and "*" not in tree.named_selects
