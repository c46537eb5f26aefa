"""Which records compaction has to leave: the last one of each key, as far as it was sent, and no
old deletion."""

from datetime import datetime, timezone
from pathlib import Path

from mirrorlake.lake.definitions import TABLES, rows_of
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.reader import Frame
from mirrorlake.verify.compaction import _COMPACTED, _EXTENTS

NOW_MS = 1_000_000


def kept(
    directory: Path,
    keys: list[str | None],
    below: int,
    deletions: dict[int, int],
    left_out: list[tuple[int, int]],
) -> list[int]:
    """Of records with these keys (`deletions`: the ages in ms of those that are deletions) what has
    to stay of the first six."""
    tables = PathTables(directory)
    for table in TABLES:
        tables.create(table)
    rows = [
        {
            **{"source_cluster": "east", "topic": "t", "partition": 0, "offset": at, "batch_id": 1},
            "timestamp": datetime.fromtimestamp(
                (NOW_MS - deletions.get(at, 0)) / 1000, timezone.utc
            ),
            "key": None if key is None else key.encode(),
            "value": None if at in deletions else b"v",
            "landed_at": datetime.now(timezone.utc),
        }
        for at, key in enumerate(keys)
    ]
    tables.append("records", rows_of("records", rows))
    frames = {
        "compacted": Frame(_COMPACTED, [("t", 0, 0, 0, 5, below)]),
        "left_out": Frame(_EXTENTS, [("t", 0, 0, *extent) for extent in left_out]),
    }
    args = {"source_cluster": "east", "deletions_ms": NOW_MS - 500}
    return sorted(
        row["offset"]
        for row in DuckLake(directory).query_rows("verify_last_of_key", frames, **args)
    )


KEYS: list[str | None] = ["a", "b", "a", None, "c", "b", "c", "a"]


def test_the_last_of_each_key_and_what_has_none(tmp_path: Path) -> None:
    assert kept(tmp_path, KEYS, 8, {}, []) == [3, 5], "a and c come again later"


def test_what_was_not_sent_supersedes_nothing(tmp_path: Path) -> None:
    assert kept(tmp_path / "a", KEYS, 7, {}, []) == [2, 3, 5]
    assert kept(tmp_path / "b", KEYS, 8, {}, [(6, 7)]) == [2, 3, 4, 5]


def test_deletions_go_after_some_time(tmp_path: Path) -> None:
    assert kept(tmp_path / "a", KEYS, 8, {5: 400}, []) == [3, 5]
    assert kept(tmp_path / "b", KEYS, 8, {5: 600}, []) == [3]
