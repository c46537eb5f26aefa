"""Files that upkeep has replaced are deleted, also where a disk or a store refuses it at first;
logs get the checkpoints that who appends leaves to it."""

from pathlib import Path
from typing import Any

import pytest

from mirrorlake.lake import path_tables
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.delta_log import DeltaLog
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.place import FolderPlace, place_of
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.run.upkeep import UpkeepWorker
from tests.support.lake_rows import no_session


def test_what_could_not_be_deleted_is_deleted_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = PathLake(no_session, place_of(tmp_path / "lake"), tmp_path / "checkpoints")
    lake.create("records", {})
    upkeep, now = UpkeepWorker(lake, StageFiles(lake)), [100.0]
    clock: Any = type("Clock", (), {"monotonic": staticmethod(lambda: now[0])})
    monkeypatch.setattr("mirrorlake.run.upkeep.time", clock)
    files = [FolderPlace(tmp_path / name) for name in "abc"]
    for file in files:
        file.write(b"rows")
    upkeep._replaced = [(100.0, files[:2]), (150.0, files[2:])]
    upkeep.delete_replaced(60.0)
    assert all(file.exists() for file in files)
    now[0] = 170.0
    with monkeypatch.context() as refusing:
        refusing.setattr(FolderPlace, "delete", refuse)
        with pytest.raises(OSError, match="busy"):
            upkeep.delete_replaced(60.0)
    upkeep.delete_replaced(60.0)
    assert [file.exists() for file in files] == [False, False, True]
    now[0] = 210.0
    upkeep.delete_replaced(60.0)
    assert not files[2].exists() and upkeep._replaced == []


def test_a_log_that_is_due_gets_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_tables, "_CHECKPOINT_EVERY", 3)
    lake = PathLake(no_session, place_of(tmp_path / "lake"), tmp_path / "checkpoints")
    lake.create("clusters", {})
    lake.tables.kept_up, log = True, DeltaLog(lake.root / "clusters")
    seen = {"alias": "east", "cluster_id": "x"}
    for _ in range(4):
        lake.append("clusters", rows_of("clusters", [seen]))
    assert log.newest_checkpoint() == -1
    upkeep = UpkeepWorker(lake, StageFiles(lake))
    upkeep.look_over()
    assert log.newest_checkpoint() == 4 and lake.tables.logs_due() == []


def refuse(_place: FolderPlace) -> None:
    raise OSError("the device is busy")
