"""Who owns the map of a flow, also where an append that was made is reported to have failed."""

import pyarrow as pa
import pytest

from mirrorlake.errors import Fenced
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.testing import MemoryLake

ROWS = pa.table({"flow": ["a->b"]})


class Losing(MemoryLake):
    """A lake whose answers are lost once an append is in its table."""

    def append(
        self, table: str, rows: pa.Table, application: str | None = None, version: int = 0
    ) -> None:
        """See `Lake.append`."""
        super().append(table, rows, application, version)
        raise OSError("the store does not answer")


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Losing:
    monkeypatch.setattr(Lake, "lake_id", "x")
    return Losing()


def test_what_it_has_appended_itself_is_none_of_another_process(lake: Losing) -> None:
    store = LakeMap(lake, "a->b")
    number = store.take_over(5)
    with pytest.raises(OSError, match="does not answer"):
        store.append_map(ROWS, number + 1)
    store.check_owner()


def test_another_that_took_over_since_is_noticed(lake: Losing) -> None:
    store = LakeMap(lake, "a->b")
    number = store.take_over(5)
    with pytest.raises(OSError, match="does not answer"):
        store.append_map(ROWS, number + 1)
    LakeMap(lake, "a->b").take_over(5)
    with pytest.raises(Fenced):
        store.check_owner()
