"""A table in a folder loses rows by commits of ours: in the order in which they were, in whole
commits, whatever others commit meanwhile."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from mirrorlake.lake import folder_upkeep
from mirrorlake.lake.arrow_values import table_of
from mirrorlake.lake.delta_log import layout_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.layout import in_layout
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.reader import Frame
from mirrorlake.lake.retention import Cut
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.table_upkeep import remove_records
from mirrorlake.lake.young_files import Limits
from tests.support import lake_rows
from tests.support.disks import send_links_twice
from tests.support.lake_rows import ago, append, no_session, now_of, opened, staged, write_file

CUTS = [Cut("east", "orders", 0, 0, 45), Cut("east", "payments", 0, 0, 30)]


def now() -> int:
    """A moment behind all rows, as the epoch's milliseconds."""
    return int(ago(-60).timestamp() * 1000)


@pytest.fixture
def lake(tmp_path: Path) -> PathLake:
    """Three files of two topics: 0 to 19, 20 to 39 and 40 to 59 of each."""
    lake = opened(no_session, write_file(tmp_path))[0]
    assert isinstance(lake, PathLake)
    for first in (0, 20, 40):
        rows = staged(range(first, first + 20), 60)
        append(lake, "records", rows + staged(range(first, first + 20), 60, topic="payments"))
    return lake


def offsets(lake: Lake, topic: str) -> list[int]:
    rows = now_of(lake).rows(f"SELECT offset FROM records WHERE topic = '{topic}' ORDER BY offset")
    return [row["offset"] for row in rows]


def is_right(lake: PathLake) -> None:
    """The rows, their order in each file, the statistics of the log, and an index that follows."""
    assert offsets(lake, "orders") == list(range(45, 60))
    assert offsets(lake, "payments") == list(range(30, 60))
    table = DeltaTable(str(lake.root / "records"))
    for action in table_of(table.get_add_actions(flatten=True)).to_pylist():
        rows = pq.read_table(lake.root / "records" / action["path"]).to_pylist()
        places = [(row["topic"], row["offset"]) for row in rows]
        assert places == sorted(places) and len(places) == action["num_records"]
        values = [row["offset"] for row in rows]
        assert (action["min.offset"], action["max.offset"]) == (min(values), max(values))


def test_files_lose_rows_and_go(lake: PathLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batch by batch; who follows the stage, and who reads the change feed, sees the same."""
    monkeypatch.setattr(folder_upkeep, "_BATCH_ROWS", 7)
    follower = StageFiles(lake)
    before = follower.ends("east")
    first = lake.version_of("records") + 1
    assert remove_records(lake, CUTS, now(), dry_run=True) == 75
    assert remove_records(lake, CUTS, now()) == 75
    is_right(lake)
    assert follower.ends("east") == before == StageFiles(lake).ends("east")
    with follower.reading() as followed, StageFiles(lake).reading() as built:
        assert sorted(map(str, followed.rows())) == sorted(map(str, built.rows()))
    feed = table_of(DeltaTable(str(lake.root / "records")).load_cdf(first)).to_pylist()
    assert {row["_change_type"] for row in feed} == {"delete"}
    gone = sorted((row["topic"], row["offset"]) for row in feed)
    assert gone == [("orders", at) for at in range(45)] + [("payments", at) for at in range(30)]
    assert remove_records(lake, CUTS, now()) == 0


@pytest.mark.parametrize("commits", [0, 1, 2])
def test_killed_between_commits(
    lake: PathLake, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    """Each commit is whole: the next call does what is left."""
    left = [None] * commits
    replace = folder_upkeep.replace_files

    def killed(*args: Any, **named: Any) -> int | None:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return replace(*args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(folder_upkeep, "replace_files", killed)
        with pytest.raises(KeyboardInterrupt):
            remove_records(lake, CUTS, now())
    done = 75 - remove_records(lake, CUTS, now())
    assert (done > 0) == (commits > 0)
    is_right(lake)


def test_what_others_commit_meanwhile(lake: PathLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are appended stay; files that another process has made one are looked at again."""
    replace = folder_upkeep.replace_files
    others = [
        lambda: append(lake, "records", staged(range(60, 70), 60)),
        lambda: lake.tables.compact("records"),
    ]

    def beside(*args: Any, **named: Any) -> int | None:
        if others:
            others.pop()()
        return replace(*args, **named)

    monkeypatch.setattr(folder_upkeep, "replace_files", beside)
    assert remove_records(lake, CUTS, now()) == 75
    assert offsets(lake, "orders") == list(range(45, 70))
    assert offsets(lake, "payments") == list(range(30, 60))


def test_a_commit_whose_answer_was_lost_keeps_its_files(
    lake: PathLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As over NFS, which sends a link again and finds its own: the commit is there, so are rows."""
    send_links_twice(monkeypatch)
    assert remove_records(lake, CUTS, now()) == 75
    append(lake, "incidents", [{"flow": "east->west", "kind": "landing_failed", "at": ago(0)}])
    is_right(lake)
    assert len(lake.ask_table("incidents")) == 1


def test_what_was_suspended_for_long_takes_no_rows_away(
    lake: PathLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log went on and was cleaned up, so that the next number is free again: a commit there is
    none of the table's, and is made again."""
    replace = folder_upkeep.replace_files

    def late(*args: Any, **named: Any) -> int | None:
        if not lake.root.joinpath("late").exists():
            lake.root.joinpath("late").touch()
            append(lake, "records", staged(range(60, 70), 60))
            append(lake, "records", staged(range(70, 80), 60))
            lake.tables.opened("records").create_checkpoint()
            for commit in (lake.root / "records" / "_delta_log").glob("*.json"):
                if int(commit.stem) < lake.version_of("records"):
                    commit.unlink()
        return replace(*args, **named)

    monkeypatch.setattr(folder_upkeep, "replace_files", late)
    remove_records(lake, CUTS, now())
    remove_records(lake, CUTS, now())
    assert offsets(lake, "orders") == list(range(45, 80))
    assert offsets(lake, "payments") == list(range(30, 60))


def test_the_stage_becomes_few_files_in_order(
    lake: PathLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large ones stay, and become smaller ones where they are as they were landed."""
    # delta-rs compresses them as what is landed is
    table = DeltaTable(str(lake.root / "records"))
    rows = lake_rows.table_of(staged(range(60, 3_000), 60))
    write_deltalake(table, in_layout(rows, layout_of(table)), mode="append")
    before = now_of(lake).rows("SELECT * FROM records ORDER BY topic, offset")
    monkeypatch.setattr(folder_upkeep, "ALL", Limits(20_000, 1 << 20, 1 << 20))
    assert lake.upkeep("records").size().files == 4
    lake.upkeep("records").compact()
    assert lake.upkeep("records").size().files == 2
    lake.upkeep("records").vacuum(0)
    assert now_of(lake).rows("SELECT * FROM records ORDER BY topic, offset") == before
    assert not list((lake.root / "records").glob("*.snappy.parquet"))
    with StageFiles(lake).reading() as index:
        assert len(index.paths()) == 2


def test_a_value_that_a_frame_holds(lake: PathLake) -> None:
    """A path may have braces and quotes, and so may a value."""
    cuts = Frame(folder_upkeep_cuts(), [("ea'{}st", "orders", 0, 0, 10)])
    assert lake.upkeep("records").rewrite("remove_records", {"cuts": cuts}, cutoff_ms=now()) == (
        0,
        0,
    )


def folder_upkeep_cuts() -> tuple[tuple[str, str], ...]:
    from mirrorlake.lake.table_upkeep import _CUTS

    return _CUTS


def test_what_only_spark_knows_is_left_to_it(
    lake: PathLake, caplog: pytest.LogCaptureFixture
) -> None:
    version = lake.version_of("records") + 1
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    log = lake.root / "records" / "_delta_log" / f"{version:020d}.json"
    log.write_text(json.dumps(protocol) + "\n")
    assert type(lake.upkeep("records")).__name__ == "SparkUpkeep"
    assert "is kept by Spark, which has to be there, since it has deletionVectors" in caplog.text
