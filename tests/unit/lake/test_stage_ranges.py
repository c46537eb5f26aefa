"""What files of the stage tell of themselves: the ranges of offsets that they hold."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mirrorlake.lake.file_ranges import constants_of
from mirrorlake.lake.parquet import ranges_of_files
from mirrorlake.lake.place import place_of
from mirrorlake.offsets.partition_ranges import StagedRange

PLACE = ("source_cluster", "topic", "partition", "generation")
TYPES = (pa.string(), pa.string(), pa.int32(), pa.int32())


def write(path: Path, rows: list[tuple[str, str, int, int | None, int]], groups: int = 100) -> str:
    columns = {
        name: pa.array(list(values), kind)
        for name, kind, values in zip(
            (*PLACE, "offset"), (*TYPES, pa.int64()), zip(*rows, strict=True), strict=True
        )
    }
    pq.write_table(
        pa.table({"value": pa.nulls(len(rows), pa.binary()), **columns}),
        path,
        row_group_size=groups,
    )
    return str(path)


def ranges_of(
    paths: list[str], source_cluster: str | None = None, generation: int | None = None
) -> list[list[StagedRange]]:
    return ranges_of_files([place_of(path) for path in paths], source_cluster, generation)


def test_each_file_tells_its_own_ranges_in_the_order_asked_for(tmp_path: Path) -> None:
    first = write(
        tmp_path / "b.parquet",
        [("c", "t", 0, 0, 5), ("c", "t", 1, 0, 9), ("c", "t", 0, 0, 8)],
        groups=1,
    )
    second = write(
        tmp_path / "a.parquet", [("c", "t", 0, 0, 10), ("c", "t", 0, 1, 0), ("d", "t", 0, 0, 3)]
    )
    found = ranges_of([first, second])
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
    assert ranges_of([path]) == [[StagedRange("c", "t", 0, 0, 1, 2, 2)]]
    bare = pq.read_table(path).drop_columns(["generation"])
    pq.write_table(bare, path)
    assert ranges_of([path]) == [[StagedRange("c", "t", 0, 0, 1, 2, 2)]]


def test_a_folder_may_have_a_space_in_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "a lake"
    folder.mkdir()
    path = write(folder / "a.parquet", [("c", "t", 0, 0, 1)])
    assert ranges_of([path]) == [[StagedRange("c", "t", 0, 0, 1, 1, 1)]]


def test_a_file_that_is_gone_is_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ranges_of([str(tmp_path / "gone.parquet")])
    assert ranges_of([]) == []


def test_what_is_said_of_all_files_is_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [("c", "t", 0, 0, 5), ("c", "t", 1, 0, 6)])
    assert ranges_of([path], "c", 0) == ranges_of([path])
    (said, _) = ranges_of([path], "d", 7)[0]
    assert said == StagedRange("d", "t", 0, 7, 5, 5, 1)


@pytest.mark.parametrize(
    ("clusters", "generations", "nulls", "found"),
    [
        ([("c", "c"), ("c", "c")], [(0, 0), (0, 0)], 0, ("c", 0)),
        ([("c", "c"), ("d", "d")], [(0, 0), (0, 1)], 0, (None, None)),
        ([("c", "c"), ("c", "c")], [(0, 0), (0, 0)], 1, (None, None)),
        ([("c", "c"), ("c", "c")], [(0, 0), (0, 0)], None, (None, None)),
        ([("c", "c"), (None, None)], [(0, 0), (1, 1)], 0, (None, None)),
        ([("c" * 32, "c" * 32)] * 2, [(2, 2), (2, 2)], 0, (None, 2)),
    ],
)
def test_what_all_rows_have_is_told_by_the_log_where_it_is_sure(
    clusters: list[tuple[str, str]],
    generations: list[tuple[int, int]],
    nulls: int | None,
    found: tuple[str | None, int | None],
) -> None:
    columns = {"source_cluster": (clusters, pa.string()), "generation": (generations, pa.int32())}
    table = pa.table(
        {
            f"{side}.{name}": pa.array([pair[at] for pair in pairs], kind)
            for name, (pairs, kind) in columns.items()
            for at, side in enumerate(("min", "max"))
        }
        | {f"null_count.{name}": pa.array([nulls, nulls], pa.int64()) for name in columns}
    )
    assert constants_of(table) == found
    assert constants_of(table.drop_columns(["null_count.generation"])) == (None, None)
    assert constants_of(table.slice(0, 0)) == (None, None)
