"""A table that is deleted under the process that commits to it, and perhaps made again, or put back
as it was: nothing is written into nothing, nor into the other one."""

import shutil
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from mirrorlake.errors import LakeError
from mirrorlake.lake import followed_log
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.delta_log import DeltaLog
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.place import Place, place_of
from tests.support.lake_rows import commit, no_session, opened, staged, write_file
from tests.support.object_store import Store

TABLE, COMMITS = "changes", 5
Write = Callable[[PathTables], object]
WRITES: dict[str, Write] = {
    "append": lambda tables: tables.append(TABLE, row("lost")),
    "of an owner": lambda tables: tables.append(TABLE, row("lost"), "app", 9),
    "change": lambda tables: tables.rewrite(TABLE, lambda rows: rows.slice(1)),
    "take over": lambda tables: tables.take_over(TABLE, "app", 1),
}


def row(kind: str) -> pa.Table:
    change = {"flow": "a->b", "at": datetime.now(timezone.utc), "resource": "topic"}
    return rows_of(TABLE, [{**change, "outcome": "done", "kind": kind}])


def made(place: Place, commits: int = COMMITS) -> PathTables:
    tables = PathTables(place)
    tables.create(TABLE)
    for _ in range(commits):
        tables.append(TABLE, row("kept"))
    return tables


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_nothing_is_written_into_a_folder_that_is_gone(tmp_path: Path, write: Write) -> None:
    tables = made(place_of(tmp_path / "lake"))
    shutil.rmtree(tmp_path / "lake")
    with pytest.raises(LakeError, match="was deleted while this process wrote to it"):
        write(tables)
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("commits", [1, 2 * COMMITS])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_nor_into_a_table_that_was_made_again(tmp_path: Path, write: Write, commits: int) -> None:
    place = place_of(tmp_path / "lake")
    tables = made(place)
    shutil.rmtree(tmp_path / "lake")
    other = made(place, commits)
    for _ in range(2):
        with pytest.raises(LakeError, match="was deleted and made again"):
            write(tables)
    assert other.version(TABLE) == commits == DeltaLog(place / TABLE).newest()
    other.append(TABLE, row("kept"))
    assert (place / TABLE).delta().to_pyarrow_table().num_rows == commits + 1


def put_back(backup: Path, lake: Path, whole: bool) -> None:
    """Put a copy in place of a lake: all of it, or by deleting what came since, as `rsync --delete`
    does."""
    if whole:
        shutil.rmtree(lake)
        shutil.copytree(backup, lake)
    for file in lake.rglob("*"):
        if file.is_file() and not (backup / file.relative_to(lake)).exists():
            file.unlink()


@pytest.mark.parametrize("whole", [False, True], ids=["what came since", "all of it"])
@pytest.mark.parametrize("since", [0, COMMITS], ids=["as it was", "written to since"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_nor_into_one_that_was_put_back_as_it_was(
    tmp_path: Path, write: Write, since: int, whole: bool
) -> None:
    """What this process goes by lies behind that: commits that come in its place are none that it
    would look at."""
    place = place_of(tmp_path / "lake")
    tables = made(place, COMMITS - 1)
    tables.append(TABLE, row("kept"), "app", 1)
    shutil.copytree(tmp_path / "lake", tmp_path / "backup")
    tables.append(TABLE, row("kept"))
    tables.append(TABLE, row("kept"), "app", 2)
    put_back(tmp_path / "backup", tmp_path / "lake", whole)
    other = PathTables(place)
    for _ in range(since):
        other.append(TABLE, row("kept"))
    for _ in range(2):
        with pytest.raises(LakeError, match="was put back as it had been"):
            write(tables)
    assert other.version(TABLE) == COMMITS + since == DeltaLog(place / TABLE).newest()


def test_what_was_opened_and_never_written_to_is_known_again(tmp_path: Path) -> None:
    made(place_of(tmp_path / "lake"))
    tables = PathTables(place_of(tmp_path / "lake"))
    assert tables.version(TABLE) == COMMITS
    shutil.rmtree(tmp_path / "lake")
    with pytest.raises(LakeError, match="was deleted"):
        tables.append(TABLE, row("lost"))


def test_a_log_that_was_cleaned_up_is_no_other_one(tmp_path: Path) -> None:
    tables = made(place_of(tmp_path))
    tables.write_log_checkpoint(TABLE)
    for version in range(COMMITS + 1):
        DeltaLog(tables.place / TABLE).file_of(version).delete()
    tables.append(TABLE, row("kept"))
    tables.append(TABLE, row("kept"))
    assert tables.opened(TABLE).to_pyarrow_table().num_rows == COMMITS + 2


@pytest.mark.parametrize("whole", [False, True], ids=["what came since", "all of it"])
def test_a_process_that_commits_nothing_hears_of_it(tmp_path: Path, whole: bool) -> None:
    lake = opened(no_session, write_file(tmp_path))[0]
    lake.check_there()
    folder = tmp_path / "lake" / "records"
    shutil.copytree(folder, tmp_path / "backup")
    commit(lake, "records", staged(range(3)))
    lake.check_there()
    lake.check_there()
    put_back(tmp_path / "backup", folder, whole)
    with pytest.raises(LakeError, match="records was put back"):
        lake.check_there()
    shutil.rmtree(folder)
    with pytest.raises(LakeError, match="records was deleted"):
        lake.check_there()


def test_in_a_store_it_is_looked_after_a_while(
    object_store: Store, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = object_store.place(request.node.name)
    tables = made(place)
    monkeypatch.setattr(followed_log, "THERE_SECONDS", 0.0)
    tables.append(TABLE, row("kept"))
    log = DeltaLog(place / TABLE)
    for name in log.names():
        (log.folder / name).delete()
    made(place, 1)
    with pytest.raises(LakeError, match="was deleted and made again"):
        tables.append(TABLE, row("lost"))
    assert log.newest() == 1


def test_what_a_folder_that_is_away_holds_is_not_taken_for_nothing(tmp_path: Path) -> None:
    """As on a disk that is not mounted for a moment: without its decisions a flow would go on with
    what an operator has stopped."""
    lake = opened(no_session, write_file(tmp_path))[0]
    stopped = {"flow": "a->b", "kind": "target_refused", "at": datetime.now(timezone.utc)}
    commit(lake, "incidents", [stopped])
    assert len(lake.ask_table("incidents")) == 1
    (tmp_path / "lake").rename(tmp_path / "away")
    for table in ("incidents", "parked", "incidents"):  # of which one was not read before
        with pytest.raises(LakeError, match=f"table {table} of the lake .* is not there any more"):
            lake.ask_table(table)
    (tmp_path / "away").rename(tmp_path / "lake")
    assert len(lake.ask_table("incidents")) == 1 and lake.ask_table("parked") == []
