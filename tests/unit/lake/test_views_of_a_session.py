"""A view that could not be made, or altered, is made when a query names it again: the one of
another version may be there, and answer otherwise."""

from pathlib import Path

import pytest

from mirrorlake.errors import LakeError
from mirrorlake.lake.session_tables import SessionTables


class Tables(SessionTables):
    """A session whose catalog refuses some views at first."""

    def __init__(self, refused: list[str]) -> None:
        super().__init__(lambda: pytest.fail("no session is needed"), "lake")
        self._refused, self.made = refused, list[str]()

    @property
    def checkpoints(self) -> Path:
        raise NotImplementedError

    def _find(self, table: str) -> None:
        pass

    def _make_view(self, view: str) -> None:
        if view in self._refused:
            self._refused.remove(view)
            raise LakeError("the metastore is away")
        self.made.append(view)
        self.make_known(f"CREATE VIEW {view}")  # its text names it


def test_it_is_tried_again() -> None:
    tables, query = Tables(["open_incidents"]), "SELECT * FROM open_incidents"
    with pytest.raises(LakeError):
        tables.make_known(query)
    for _ in range(2):
        tables.make_known(query)
    assert tables.made == ["open_incidents"]
