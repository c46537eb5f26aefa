"""What files of the stage tell of themselves: the ranges of offsets that they hold."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mirrorlake.lake.parquet import ranges_of_files
from mirrorlake.offsets.stage_index import StagedRange

PLACE = ("source_cluster", "topic", "partition", "generation")
TYPES = (pa.string(), pa.string(), pa.int32(), pa.int32())


def write(path: Path, rows: list[tuple[str, str, int, int | None, int]], groups: int = 100) -> str:
    columns = {
        name: pa.array(list(values), kind)
        for name, kind, values in zip((*PLACE, "offset"), (*TYPES, pa.int64()), zip(*rows, strict=True), strict=True)
    }
    pq.write_table(pa.table({"value": pa.nulls(len(rows), pa.binary()), **columns}), path, row_group_size=groups)
    return str(path)


def test_each_file_tells_its_own_ranges_in_the_order_asked_for(tmp_path: Path) -> None:
    first = write(tmp_path / "b.parquet", [("c", "t", 0, 0, 5), ("c", "t", 1, 0, 9), ("c", "t", 0, 0, 8)], groups=1)
    second = write(tmp_path / "a.parquet", [("c", "t", 0, 0, 10), ("c", "t", 0, 1, 0), ("d", "t", 0, 0, 3)])
    found = ranges_of_files([first, second])
    assert [set(ranges) for ranges in found] == [
        {StagedRange("c", "t", 0, 0, 5, 8, 2), StagedRange("c", "t", 1, 0, 9, 9, 1)},
        {
            StagedRange("c", "t", 0, 0, 10, 10, 1),
            StagedRange("c", "t", 0, 1, 0, 0, 1),
            StagedRange("d", "t", 0, 0, 3, 3, 1),
        },
    ]


def test_rows_of_before_there_were_generations_are_of_the_first_one(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [("c", "t", 0, None, 1), ("c", "t", 0, 0, 2)])
    assert ranges_of_files([path]) == [[StagedRange("c", "t", 0, 0, 1, 2, 2)]]
    bare = pq.read_table(path).drop_columns(["generation"])
    pq.write_table(bare, path)
    assert ranges_of_files([path]) == [[StagedRange("c", "t", 0, 0, 1, 2, 2)]]


def test_names_are_taken_as_the_log_writes_them(tmp_path: Path) -> None:
    folder = tmp_path / "a lake"
    folder.mkdir()
    path = write(folder / "a.parquet", [("c", "t", 0, 0, 1)])
    for name in (path, path.replace(" ", "%20"), f"file:{path.replace(' ', '%20')}"):
        assert ranges_of_files([name]) == [[StagedRange("c", "t", 0, 0, 1, 1, 1)]]


def test_a_file_that_is_gone_is_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ranges_of_files([str(tmp_path / "gone.parquet")])
    assert ranges_of_files([]) == []
