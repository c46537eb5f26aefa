"""A host loses its power: what a lake in a folder has answered is there."""

from pathlib import Path

import pyarrow as pa

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.place import FolderPlace
from tests.support.disks import power_disk

TABLE = "latency"


def _rows(batch: int) -> pa.Table:
    return rows_of(TABLE, [{"flow": "a->b", "batch_id": batch, "topic": "t", "partition": 0}])


def _batches(tables: PathTables) -> list[int]:
    return sorted(tables.opened(TABLE).to_pyarrow_table()["batch_id"].to_pylist())


def test_what_was_committed_is_there_after_a_loss_of_power(tmp_path: Path) -> None:
    """After a checkpoint of the log and behind it."""
    with power_disk(tmp_path / "disk", 60) as disk:
        lake = FolderPlace(disk.place / "lake")
        PathTables(lake).create(TABLE)
        disk.lose_power()
        assert _batches(PathTables(lake)) == []
        for number in range(2):
            tables, first = PathTables(lake), 10 * number
            for batch in range(first, first + 5):
                tables.append(TABLE, _rows(batch), "app", batch)
            disk.lose_power()
            assert _batches(PathTables(lake)) == list(range(first + 5))
            tables = PathTables(lake)
            for batch in range(first + 5, first + 10):
                tables.append(TABLE, _rows(batch), "app", batch)
            tables.compact(TABLE)
            tables.write_log_checkpoint(TABLE)
            commits = (disk.place / "lake" / TABLE / "_delta_log").glob("*.json")
            for commit in sorted(commits)[:-1]:
                commit.unlink()  # as half an hour later
            tables.set_properties(TABLE, {"a.property": str(number)})
            disk.lose_power()
            tables = PathTables(lake)
            assert _batches(tables) == list(range(first + 10))
            assert tables.properties(TABLE)["a.property"] == str(number)
            assert tables.application_version(TABLE, "app") == first + 9
