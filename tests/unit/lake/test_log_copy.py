"""What counts of a log in a store is asked for once, and read on this host."""

import gc
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake.exceptions import TableNotFoundError

from mirrorlake.lake.definitions import TABLES, rows_of
from mirrorlake.lake.delta_log import DeltaLog, files_of
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.log_copy import LogCopy
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.place import Place
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.run.status import read_status
from mirrorlake.threads import side_by_side
from tests.support.object_store import Store
from tests.support.store_link import Fault, Request, StoreLink, link_to

TABLE = "objectives"
ROWS = rows_of(TABLE, [{"flow": "east->west"}])
CHECKPOINT, NEWEST = 3, 6


@pytest.fixture(scope="module")
def link(object_store: Store) -> Iterator[StoreLink]:
    with link_to(object_store.address) as link:
        yield link


@pytest.fixture
def place(link: StoreLink, request: pytest.FixtureRequest) -> Iterator[Place]:
    yield Store(link.address).place(request.node.name)
    link.fault = lambda _request: None


@pytest.fixture
def tables(place: Place) -> PathTables:
    """With one of which the log has a checkpoint, and commits behind it."""
    made = PathTables(place)
    made.create(TABLE)
    for version in range(1, NEWEST + 1):
        made.append(TABLE, ROWS)
        if version == CHECKPOINT:
            made.write_log_checkpoint(TABLE)
    return made


def asked(link: StoreLink, before: int) -> Counter[tuple[str, str]]:
    """How often each file was, and each list of names."""
    return Counter((each.kind, each.key.partition("/")[2]) for each in link.requests[before:])


def test_an_answer_asks_for_nothing_of_a_log_twice(
    link: StoreLink, place: Place, tables: PathTables, tmp_path: Path
) -> None:
    """Nor who asks for what is staged beside it, and whose the commits are; that a table is still
    what was opened, is not asked before it is looked at again. Each table is opened once."""
    side_by_side(tables.create, TABLES)
    before, lake = len(link.requests), DuckLake(place, tmp_path / "nothing yet")
    assert read_status(lake, None)["warnings"] == []
    assert StageFiles(lake).ends("east") == {}
    twice = {what: times for what, times in asked(link, before).items() if times > 1}
    hint = ("GET", "records/_delta_log/_last_checkpoint")
    assert twice.keys() <= {hint}, "what was staged since the table was opened"
    assert link.counted(before)["HEAD"] == 0
    listed = Counter(key.partition("/")[0] for kind, key in asked(link, before) if kind == "LIST")
    assert listed == Counter(TABLES)


def test_the_version_of_the_lake_is_asked_for_beside_its_tables(
    link: StoreLink, place: Place, tables: PathTables, tmp_path: Path
) -> None:
    tables.create("records")
    before = len(link.requests)
    assert len(DuckLake(place, tmp_path / "nothing yet").table_rows(TABLE)) == NEWEST
    kinds = [each.kind for each in link.requests[before:] if "_delta_log" in each.key]
    assert sorted(kinds[:2]) == ["GET", "GET"], "a hint of each"
    assert asked(link, before).most_common(1)[0][1] == 1


def test_what_comes_behind_is_read_alone(link: StoreLink, place: Place, tables: PathTables) -> None:
    log = LogCopy(place / TABLE)
    delta = log.opened()
    for _ in range(2):
        for _ in range(4):
            tables.append(TABLE, ROWS)
        before = len(link.requests)
        log.follow(delta)
        assert link.counted(before) == {"LIST": 1, "GET": 4}
    fresh = DeltaLog(place / TABLE).opened()
    assert delta.version() == fresh.version() == NEWEST + 8
    assert files_of(delta) == files_of(fresh)
    before = len(link.requests)
    texts = [log.text(version) for version in range(NEWEST + 4, NEWEST + 9)]
    assert None not in texts and len(link.requests) == before
    assert log.text(CHECKPOINT + 1) and log.text(NEWEST + 9) is None, "older ones are there still"
    assert log.mark_of(delta.version()) == log.file_of(delta.version()).mark() is not None


def test_no_copy_is_left_behind(
    place: Place, tables: PathTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    log = LogCopy(place / TABLE)
    for _ in range(2):
        delta = log.opened()
        assert len([*tmp_path.iterdir()]) == 1
    del log
    gc.collect()
    assert [*tmp_path.iterdir()] == [] and len(files_of(delta)) == NEWEST


def test_a_host_without_room_reads_it_there(
    place: Place, tables: PathTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no folder").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no folder"))
    log = LogCopy(place / TABLE)
    delta = log.opened()
    tables.append(TABLE, ROWS)
    log.follow(delta)
    assert delta.version() == NEWEST + 1 and len(files_of(delta)) == NEWEST + 1


def test_a_log_with_a_hole_is_refused_as_ever(place: Place, tables: PathTables) -> None:
    log = DeltaLog(place / TABLE)
    log.file_of(CHECKPOINT + 1).delete()
    with pytest.raises(Exception, match=TABLE):  # as delta-rs puts it
        LogCopy(place / TABLE).opened()
    with pytest.raises(TableNotFoundError):
        LogCopy(place / "nothing").opened()


def test_a_commit_that_goes_while_it_is_copied_is_not_missed(
    link: StoreLink, place: Place, tables: PathTables
) -> None:
    log = DeltaLog(place / TABLE)

    def gone(request: Request) -> Fault | None:
        if request.key.endswith(log.file_of(CHECKPOINT + 1).name):
            link.fault = lambda _request: None
            tables.write_log_checkpoint(TABLE)
            log.file_of(CHECKPOINT + 1).delete()
        return None

    link.fault = gone
    delta = LogCopy(place / TABLE).opened()
    assert delta.version() == NEWEST and len(files_of(delta)) == NEWEST


def test_a_large_log_is_read_there(
    place: Place, tables: PathTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirrorlake.lake.log_copy._MOST_ACTIONS", 2)
    log = LogCopy(place / TABLE)
    delta = log.opened()
    tables.append(TABLE, ROWS)
    log.follow(delta)
    assert delta.table_uri.startswith("s3://") and len(files_of(delta)) == NEWEST + 1
    monkeypatch.undo()
    assert not LogCopy(place / TABLE).opened().table_uri.startswith("s3://")
