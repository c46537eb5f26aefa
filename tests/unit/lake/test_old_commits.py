"""The log of a table that streams follow is kept for a week, and what it names with it."""

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from mirrorlake.lake import old_commits
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.delta_log import DeltaLog, files_of
from mirrorlake.lake.log_repair import checkpoints_of
from mirrorlake.lake.old_commits import KEPT, shorten
from mirrorlake.lake.path_tables import PathTables

WEEK_MS = KEPT // timedelta(milliseconds=1)
#: When the first commit was made, and how long after it each other one, ms.
BEGAN_MS, EACH_MS = 1_795_000_000_000, 60_000
#: Appends, and after how many of these the table is made compact, by one commit more.
APPENDS, COMPACT_AFTER = 60, 10


def rows(number: int) -> object:
    key = {"flow": "a->b", "topic": "t", "partition": 0, "target_topic": "t"}
    ends = {"source_first": number, "source_last": number, "target_first": number}
    more = {"target_last": number, "record_count": 1, "batch_id": number, "target_partition": 0}
    return rows_of("offset_map", [{**key, **ends, **more}])


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """Of a table that was appended to once a minute, and made compact now and then."""
    tables = PathTables(tmp_path)  # type: ignore[arg-type]
    tables.create("offset_map")
    for number in range(APPENDS):
        tables.append("offset_map", rows(number))  # type: ignore[arg-type]
        if number % COMPACT_AFTER == COMPACT_AFTER - 1:
            tables.compact("offset_map")
            tables.write_log_checkpoint("offset_map")
    log = DeltaLog(tables.place / "offset_map")
    for version in log.versions():
        lines = [json.loads(line) for line in (log.text(version) or "").splitlines()]
        for info in (line["commitInfo"] for line in lines if "commitInfo" in line):
            info["timestamp"] = time_of(version)
        log.file_of(version).write("\n".join(map(json.dumps, lines)).encode())
    return log


def time_of(version: int) -> int:
    return BEGAN_MS + version * EACH_MS


def numbers(log: DeltaLog, version: int | None = None) -> list[int]:
    """What the table holds, or held, as anybody reads it."""
    table = log.opened()
    if version is not None:
        table.load_as_version(version)
    return sorted(table.to_pyarrow_table(columns=["batch_id"])["batch_id"].to_pylist())


def parquet_files(log: DeltaLog) -> set[str]:
    return {name for name in log.table.names() if name.endswith(".parquet")}


def test_nothing_goes_within_a_week(log: DeltaLog) -> None:
    before = {*log.names()}, parquet_files(log)
    assert shorten(log, time_of(1) + WEEK_MS) == 0
    assert ({*log.names()}, parquet_files(log)) == before


def test_what_is_older_goes_with_the_files_that_it_took_away(log: DeltaLog) -> None:
    assert len(parquet_files(log)) > APPENDS, "what was replaced is there"
    needed = 40
    gone = shorten(log, time_of(needed) + WEEK_MS)
    (first, *_), last = log.versions(), log.newest()
    assert gone == first and first <= needed and first in checkpoints_of(log.names())
    assert log.versions() == list(range(first, last + 1)), "each commit since is there"
    assert numbers(log) == list(range(APPENDS))
    for version in range(first, last + 1, 9):
        number = version - version // (COMPACT_AFTER + 1)
        assert numbers(log, version) == list(range(number)), "and what it was"
    commits = list(filter(None, map(log.commit, range(first, last + 1))))
    added = {path for commit in commits for path in commit.added}
    assert added <= parquet_files(log), "and what each added, for a stream that goes on there"
    log_folder = log.table / "_delta_log"
    assert not [name for name in log_folder.names() if name[:20] < f"{first:020d}"]
    table = log.opened()
    table.load_as_version(first)
    left = added | {*files_of(table)} | {*commits[0].removed}
    assert parquet_files(log) == left, "nothing else is left"


def test_there_is_a_bound_on_how_many_are_kept(log: DeltaLog) -> None:
    assert shorten(log, time_of(1), most=30) > 0
    assert 30 <= len(log.versions()) <= 30 + COMPACT_AFTER + 1
    assert numbers(log) == list(range(APPENDS))


def test_a_table_that_rested_keeps_its_newest_checkpoint(log: DeltaLog) -> None:
    shorten(log, time_of(log.newest()) + 10 * WEEK_MS)
    assert log.versions()[0] == checkpoints_of(log.names())[0] == log.newest()
    assert numbers(log) == list(range(APPENDS))
    (newest,) = filter(None, [log.commit(log.newest())])
    assert parquet_files(log) == {*files_of(log.opened()), *newest.removed}
    PathTables(log.table.parent).append("offset_map", rows(APPENDS))  # type: ignore[attr-defined, arg-type]
    assert numbers(log) == list(range(APPENDS + 1))


def test_a_turn_deletes_so_many_and_the_next_goes_on(
    log: DeltaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_commits, "_AT_ONCE", 7)
    now = time_of(40) + WEEK_MS
    turns = [shorten(log, now) for _ in range(10)]
    assert turns[0] == 7 and turns[-1] == 0 and sum(turns) == log.versions()[0]
    assert numbers(log) == list(range(APPENDS))


def test_a_file_that_a_commit_took_away_and_another_put_back_stays(log: DeltaLog) -> None:
    """As Delta's RESTORE does."""
    log.opened().restore(15)
    shorten(log, time_of(40) + WEEK_MS)
    assert numbers(log) == list(range(14))


def test_a_commit_that_does_not_say_when_is_young(log: DeltaLog) -> None:
    for version in log.versions():
        lines = (log.text(version) or "").splitlines()
        kept = [line for line in lines if "commitInfo" not in line]
        log.file_of(version).write("\n".join(kept).encode())
    assert shorten(log, time_of(40) + WEEK_MS) == 0


def test_of_old_checkpoints_few_are_kept(log: DeltaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old_commits, "_NEWEST_CHECKPOINTS", 1)
    monkeypatch.setattr(old_commits, "_VERSIONS", 30)
    there = checkpoints_of(log.names())
    shorten(log, time_of(there[0]) + WEEK_MS)
    kept = checkpoints_of(log.names())
    assert kept == [there[0], next(each for each in there if each >= 30), there[-1]]
    assert numbers(log, 20) == list(range(19)), "and what was in between opens by these"


def test_what_is_no_file_of_the_table_is_left_alone(log: DeltaLog, tmp_path: Path) -> None:
    """A shallow clone names files of another table."""
    other = tmp_path / "elsewhere.parquet"
    other.write_bytes(b"")
    text = log.text(5) or ""
    remove = {"remove": {"path": os.fspath(other), "dataChange": True}}
    log.file_of(5).write(f"{text}\n{json.dumps(remove)}".encode())
    assert shorten(log, time_of(40) + WEEK_MS) > 0 and other.exists()
