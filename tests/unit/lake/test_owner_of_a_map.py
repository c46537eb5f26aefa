"""Who owns the map of a flow, also where an append that was made is reported to have failed; and
where its rows wait for one another."""

from pathlib import Path

import pyarrow as pa
import pytest

from mirrorlake.errors import Fenced
from mirrorlake.lake.catalog_lake import CatalogLake
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.map_store import ROWS_WAIT_SECONDS, SESSION_ROWS_WAIT_SECONDS, LakeMap
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.place import place_of
from mirrorlake.testing import MemoryLake
from tests.support.lake_rows import no_session

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


@pytest.mark.parametrize(
    ("url", "seconds"),
    [("s3://bucket/lake", ROWS_WAIT_SECONDS), ("lake", 0.0), (None, SESSION_ROWS_WAIT_SECONDS)],
)
def test_rows_wait_for_one_another_where_each_commit_is_paid_for(
    tmp_path: Path, url: str | None, seconds: float
) -> None:
    lake: Lake = CatalogLake(no_session, "main.replication", tmp_path)
    if url is not None:
        place = place_of(url if url.startswith("s3") else tmp_path / url)
        lake = PathLake(no_session, place, tmp_path)
    lake.stored_id = "x"
    assert LakeMap(lake, "a->b").rows_wait_seconds == seconds
