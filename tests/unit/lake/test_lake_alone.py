"""What a lake does before it is asked for a table: its session, and what one that is only read
refuses."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import cast

import pytest
from pyspark.sql import SparkSession

from mirrorlake.errors import LakeError
from mirrorlake.lake import session_tables
from mirrorlake.lake.catalog_lake import CatalogLake
from mirrorlake.lake.definitions import TABLES, VIEWS
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.place import place_of

SESSION = cast(SparkSession, object())


def test_no_lake_waits_for_the_session_of_another_one() -> None:
    began, other = Event(), Event()

    def slowly() -> SparkSession:
        began.set()
        assert other.wait(10), "the other lake has to wait"
        return SESSION

    slow, quick = CatalogLake(slowly, "slow", None), CatalogLake(lambda: SESSION, "quick", None)
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(lambda: slow.spark)
        assert began.wait(10)
        with ThreadPoolExecutor(1) as second:
            assert second.submit(lambda: quick.spark).result(5) is SESSION
        other.set()
        assert opening.result(10) is SESSION


def test_naming_a_known_table_waits_for_no_statement() -> None:
    """A change of a small table takes seconds in a session; records are committed meanwhile."""
    lake = CatalogLake(lambda: SESSION, "s", None)
    lake.mark_known(TABLES, VIEWS)
    with ThreadPoolExecutor(1) as pool, session_tables._session_use:  # as a statement has it
        assert pool.submit(lake.name, "records").result(5) == "s.records"


def test_a_lake_that_is_read_refuses_what_writes_would_need(tmp_path: Path) -> None:
    for lake in (
        CatalogLake(lambda: SESSION, "read", None),
        PathLake(lambda: SESSION, place_of(tmp_path), None),
    ):
        _refuses(lake)
    PathLake(lambda: SESSION, place_of(tmp_path), tmp_path).check_for_writing()


def _refuses(lake: Lake) -> None:
    for needed in (
        lake.check_for_writing,
        lambda: lake.checkpoints,
        lambda: lake.leases,
        lambda: lake.lake_id,
    ):
        with pytest.raises(LakeError, match="was opened read-only"):
            needed()
