"""Workers that read the stage's files: what is not in rising order is found before the first row is
handed on."""

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.errors import LayoutError
from mirrorlake.native.exact import times_of
from mirrorlake.produce import stage_files
from mirrorlake.produce.batch import NOTHING_MAPPED, PartitionPlan, ShardPlan
from mirrorlake.produce.stage_files import batch_rows, gathered, read_shard, rows_by_partition


def written(path: Path, rows: list[tuple[str, int, int]], cluster: str = "east") -> str:
    """A file of the stage with rows (topic, generation, offset) in this order."""
    columns = {
        "source_cluster": pa.array([cluster] * len(rows)),
        "topic": pa.array([topic for topic, _, _ in rows]),
        "partition": pa.array([0] * len(rows), pa.int32()),
        "generation": pa.array([generation for _, generation, _ in rows], pa.int32()),
        "offset": pa.array([offset for _, _, offset in rows]),
        **{
            name: pa.nulls(len(rows), pa.binary())
            for name in ("timestamp", "key", "value", "headers", "landed_at")
        },
    }
    pq.write_table(pa.table(columns), path)
    return str(path)


def shard(files: list[str], first: int = 0, last: int = 9) -> ShardPlan:
    return ShardPlan(
        0,
        (PartitionPlan("t", 0, "t", floor=NOTHING_MAPPED, first=first, last=last),),
        tuple(files),
        1,
        "east",
    )


def offsets(plan: ShardPlan) -> list[int]:
    return [
        offset for _, chunk in read_shard(plan, {}) for offset in chunk.column("offset").to_pylist()
    ]


def test_a_range_is_read_whatever_lies_beside_it(tmp_path: Path) -> None:
    rows = [
        ("a", 0, 3),
        ("t", 0, 1),
        ("t", 0, 2),
        ("t", 1, 2),
        ("b", 0, 1),
        ("t", 0, 4),
        ("t", 0, 7),
    ]
    files = [
        written(tmp_path / "x", rows),
        written(tmp_path / "y", [("t", 0, 3)], "north"),
        written(tmp_path / "z", [("t", 0, 8)]),
    ]
    assert offsets(shard(files)) == [1, 2, 4, 7, 8]
    assert offsets(shard(files, 2, 7)) == [2, 4, 7]


@pytest.mark.parametrize("group", [1, 2, 3, 10])
def test_rows_of_several_clusters_lie_in_a_file(tmp_path: Path, group: int) -> None:
    """As OPTIMIZE leaves them, in row groups that have a dictionary each."""
    parts = [
        pq.read_table(
            written(tmp_path / f"{number}", [("t", 0, number), ("u", 0, number)], cluster)
        )
        for number, cluster in enumerate(["east", "north", "east", "east", "west"])
    ]
    pq.write_table(pa.concat_tables(parts), tmp_path / "all", row_group_size=group)
    assert offsets(shard([str(tmp_path / "all")])) == [0, 2, 3]


@pytest.mark.parametrize(
    "files",
    [
        [[("t", 0, 2), ("t", 0, 1)]],
        [[("t", 0, 2), ("a", 0, 1), ("t", 0, 1)]],
        [[("t", 0, 2), ("t", 0, 3)], [("t", 0, 1)]],
        [[("t", 0, 2)], [("t", 0, 2)]],
    ],
)
def test_nothing_is_handed_on_of_what_is_not_in_order(
    tmp_path: Path, files: list[list[tuple[str, int, int]]]
) -> None:
    named = [written(tmp_path / str(number), rows) for number, rows in enumerate(files)]
    with pytest.raises(LayoutError, match="rising order"):
        next(read_shard(shard(named), {}))


@pytest.mark.parametrize("batches", [[[2, 1]], [[1, 2], [2, 3]], [[5], [4]]])
def test_nothing_behind_it_is_handed_on_where_spark_hands_over_rows(
    tmp_path: Path, batches: list[list[int]]
) -> None:
    plan = shard([]).partitions[0]
    files = [
        written(tmp_path / str(number), [("t", 0, at) for at in offsets])
        for number, offsets in enumerate(batches)
    ]
    handed = (batch for file in files for batch in pq.read_table(file).to_batches())
    with pytest.raises(LayoutError, match="rising order"):
        list(rows_by_partition(handed, {plan.key: plan}))


@pytest.mark.parametrize(
    ("size", "most"), [(100, 16_384), (1_000, 4_200), (100_000, 42), (10_000_000, 1)]
)
def test_the_larger_records_are_the_fewer_are_decoded_at_a_time(
    tmp_path: Path, size: int, most: int
) -> None:
    count = min(20_000, 40_000_000 // size)
    path = tmp_path / "x"
    table = pa.table({"value": pa.repeat(pa.scalar(b"x" * size), count)})
    pq.write_table(table, path, use_dictionary=False, row_group_size=count // 2)
    with pq.ParquetFile(path) as file:
        rows = batch_rows(file, [0, 1])
        assert most * 0.95 <= rows <= most
        assert batch_rows(file, []) >= 1


ROWS = st.lists(
    st.tuples(st.sampled_from("tuv"), st.integers(0, 1), st.integers(0, 99)),
    min_size=1,
    max_size=12,
)


@given(st.lists(ROWS, max_size=8))
def test_small_files_are_gathered_in_their_order(files: list[list[tuple[str, int, int]]]) -> None:
    """A column that a file leaves out for having no value is null in what others have of it."""
    batches = []
    for number, rows in enumerate(files):
        columns = {
            "topic": pa.array([topic for topic, *_ in rows]),
            "partition": pa.array([0] * len(rows), pa.int32()),
            "generation": pa.array([generation or None for _, generation, _ in rows], pa.int32()),
            "offset": pa.array([offset for *_, offset in rows]),
        }
        if number % 2:
            columns["header_names"] = pa.array([b"n"] * len(rows))
        batches.append(pa.record_batch(columns))
    together = [row for batch in gathered(batches) for row in batch.to_pylist()]
    assert {len([*gathered(batches)]), bool(files)} in ({1}, {0})
    for place in itertools.product("tuv", (0, 1)):
        came = [offset for rows in files for *at, offset in rows if tuple(at) == place]
        mine = [row for row in together if (row["topic"], row["generation"] or 0) == place]
        assert [row["offset"] for row in mine] == came
    keys = [(row["topic"], row["partition"], row["generation"]) for row in together]
    assert len(files) < 2 or len(list(itertools.groupby(keys))) == len(set(keys))


def test_files_of_several_engines_are_read_together_as_they_are(tmp_path: Path) -> None:
    """Spark writes times as INT96 unless it is told otherwise: of a table that it has optimized
    some files are so, and others not."""
    ours, kind = tmp_path / "ours", pa.timestamp("us", "UTC")
    year_3000, year_1000 = 32_503_680_000_000, -30_610_224_000_000
    for name, first, int96 in [(ours, 0, False), (tmp_path / "spark", 2, True)]:
        rows = pq.read_table(written(name, [("t", 0, first), ("t", 0, first + 1)]))
        for column in ("timestamp", "landed_at"):
            at = rows.schema.get_field_index(column)
            values = pa.array([year_3000, year_1000], pa.timestamp("ms", "UTC")).cast(kind)
            rows = rows.set_column(at, column, values)
        pq.write_table(rows, name, use_deprecated_int96_timestamps=int96, store_schema=False)
    chunks = [chunk for _, chunk in read_shard(shard([str(ours), str(tmp_path / "spark")]), {})]
    assert [at for chunk in chunks for at in chunk.column("offset").to_pylist()] == [0, 1, 2, 3]
    read = [ms for chunk in chunks for ms in times_of(chunk).to_pylist()]
    assert read == [year_3000, year_1000] * 2


def test_what_is_landed_often_over_many_partitions_is_a_chunk_of_each(tmp_path: Path) -> None:
    files = [
        written(tmp_path / f"{number}", [(topic, 0, number) for topic in "abct"])
        for number in range(10)
    ]
    chunks = [chunk.column("offset").to_pylist() for _, chunk in read_shard(shard(files), {})]
    assert chunks == [list(range(10))]


def test_what_is_large_is_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_files, "_BATCH_ROWS", 5)
    sizes = [3, 2, 4, 7, 1]
    batches = [
        pa.record_batch(
            {
                "topic": pa.array(["t"] * size),
                "partition": pa.array([0] * size),
                "generation": pa.array([0] * size),
            }
        )
        for size in sizes
    ]
    assert [batch.num_rows for batch in gathered(batches)] == [5, 4, 7, 1]
