"""Who committed to a table, its log says: of those that are not ours a process hears, and reads no
commit of its own for it."""

import json
import shutil
from datetime import datetime, timezone
from pathlib import Path

import pytest
from deltalake.transaction import AddAction

from mirrorlake.lake.definitions import TABLES, rows_of
from mirrorlake.lake.delta_log import DeltaLog
from mirrorlake.lake.other_writers import NEWEST, new_by_others, newest_by_others, other_commit
from mirrorlake.lake.own_commits import NewFile, replace_files
from mirrorlake.lake.path_tables import PathTables

TABLE = "objectives"
SPARK = "Apache-Spark/4.0.5 Delta-Lake/4.4.0"
ROWS = rows_of(TABLE, [{"flow": "east->west"}])
CHANGES = rows_of("changes", [{"at": datetime.now(timezone.utc), "kind": "topic"}])


@pytest.fixture
def tables(tmp_path: Path) -> PathTables:
    made = PathTables(tmp_path)
    made.create(TABLE)
    return made


def committed_by(
    tables: PathTables, engine: str | None, operation: str = "OPTIMIZE", table: str = TABLE
) -> int:
    """A commit of another program, without rows; gives its version."""
    version = tables.version(table) + 1
    info = {"timestamp": 1_795_711_623_577, "operation": operation}
    info |= {} if engine is None else {"engineInfo": engine}
    text = json.dumps({"commitInfo": info}) + "\n"
    DeltaLog(tables.place / table).file_of(version).create(text.encode())
    return version


def test_whose_a_commit_is() -> None:
    info = {"engineInfo": SPARK, "operation": "WRITE", "timestamp": 1_795_711_623_577}
    found = other_commit(TABLE, 7, json.dumps({"commitInfo": info}) + '\n{"add": {}}\n')
    assert found is not None
    at = datetime(2026, 11, 26, 16, 47, 3, 577000, timezone.utc)
    assert found == (TABLE, 7, SPARK, "WRITE", at)
    assert f"table {TABLE} was committed to by {SPARK} (WRITE, version 7, 2026-11-26 16:47:03" in (
        found.error.message
    )
    ours = ("delta-rs:py-1.6.6", "mirrorlake")
    assert not [engine for engine in ours if other_commit(TABLE, 0, said_by(engine))]
    unnamed = other_commit(TABLE, 0, '{"add": {}}')
    assert unnamed is not None and unnamed.engine == "a program that does not say its name"


def said_by(engine: str) -> str:
    return json.dumps({"commitInfo": {"engineInfo": engine}})


def test_a_process_reads_what_it_has_not_committed_itself(
    tables: PathTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    text = DeltaLog.text
    monkeypatch.setattr(
        DeltaLog, "text", lambda log, version: [read.append(version), text(log, version)][1]
    )
    neighbour = PathTables(tables.place)

    def told() -> tuple[list[tuple[int, str]], list[int]]:
        """Commits of others, and what was read for that: appends read what they sync."""
        read.clear()
        return [(each.version, each.engine) for each in new_by_others(tables)], list(read)

    tables.append(TABLE, ROWS)
    assert told() == ([], [0]), "the first commit made the table"
    for number in range(5):
        tables.append(TABLE, ROWS, "application", number)
    assert told() == ([], [])
    neighbour.append(TABLE, ROWS)
    by_spark = committed_by(tables, SPARK)
    tables.append(TABLE, ROWS)
    assert told() == ([(by_spark, SPARK)], [by_spark - 1, by_spark])
    assert new_by_others(tables) == [], "it is told once"
    (sentence,) = newest_by_others(tables.place, registered=True)
    assert f"table {TABLE} was committed to by {SPARK} (OPTIMIZE, version {by_spark}," in sentence
    assert newest_by_others(tables.place, registered=False) == []


def test_files_that_are_added_by_hand_are_ours(tables: PathTables, tmp_path: Path) -> None:
    tables.append(TABLE, ROWS)
    (file,) = (tmp_path / TABLE).glob("*.parquet")
    shutil.copy(file, file.with_name("more.parquet"))
    add = AddAction("more.parquet", file.stat().st_size, {}, 0, True, "{}")
    tables.add_files(TABLE, [add], "application", 1)
    log = DeltaLog(tables.place / TABLE)
    new = NewFile(tables.place / TABLE, ROWS.schema)
    new.write(ROWS)
    new.close()
    sizes = {"more.parquet": file.stat().st_size}
    assert replace_files(log, tables.version(TABLE), sizes, [new]) == 3
    assert new_by_others(tables) == newest_by_others(tables.place, registered=True) == []


def test_only_the_newest_are_looked_at(tables: PathTables) -> None:
    committed_by(tables, None)
    for _ in range(NEWEST):
        tables.append(TABLE, ROWS)
    assert newest_by_others(tables.place, registered=True) == []
    assert newest_by_others(tables.place / "nowhere", registered=True) == []
    assert newest_by_others(None, registered=True) == []


def test_what_could_not_be_read_is_looked_at_again(
    tables: PathTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that does not answer for a moment hides no commit, of this table or another one."""
    assert TABLES.index("changes") < TABLES.index(TABLE)
    tables.create("changes")
    tables.append(TABLE, ROWS)
    tables.append("changes", CHANGES)
    assert new_by_others(tables) == []
    foreign = {table: committed_by(tables, SPARK, table=table) for table in ("changes", TABLE)}
    text, silent = DeltaLog.text, [TABLE]

    def read(log: DeltaLog, version: int) -> str | None:
        if log.table.name in silent:
            raise OSError("the store does not answer")
        return text(log, version)

    tables.append(TABLE, ROWS)
    tables.append("changes", CHANGES)
    monkeypatch.setattr(DeltaLog, "text", read)
    with pytest.raises(OSError, match="does not answer"):
        new_by_others(tables)
    silent.clear()
    assert {each.table: each.version for each in new_by_others(tables)} == foreign
    assert new_by_others(tables) == []


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85"])
def test_a_value_may_have_what_elsewhere_ends_a_line(tables: PathTables, end: str) -> None:
    """A group may have any name. delta-rs writes the least and the greatest one as they are into
    the log, which every later append reads."""
    tables.create("changes")
    named = {"at": datetime.now(timezone.utc), "kind": "group", "resource": f"billing{end}test"}
    for _ in range(2):
        tables.append("changes", rows_of("changes", [named]))
    assert len(tables.compact("changes")) == 2
    tables.append("changes", CHANGES)
    assert tables.opened("changes").to_pyarrow_table().num_rows == 3
    assert new_by_others(tables) == []
