"""A task's file of the stage: its rows, its row groups, and what the commit says of it."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mirrorlake.errors import StagingError
from mirrorlake.lake.definitions import definition
from mirrorlake.lake.file_ranges import ranges_from_commit, statistics_of
from mirrorlake.lake.meter import Landed
from mirrorlake.lake.parquet import RARE
from mirrorlake.lake.place import place_of
from mirrorlake.lake.row_sizes import arrow_bytes
from mirrorlake.landing import stage_file, stage_rows
from mirrorlake.landing.job import Part
from mirrorlake.landing.stage_file import StagedFile, write_parts
from mirrorlake.native.columns import SCHEMA
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.produce.stage_files import COLUMNS, columns_of
from tests.support.landing import job_in, rows

RECORDS = definition("records").rows
PART = Part("east", 1_700_000_000_123, 1_700_000_000_999, {("b", 1): 2})


def added(
    folder: Path, part: Part, *read: tuple[tuple[str, int], pa.RecordBatch]
) -> list[StagedFile]:
    """What a task gives that reads this."""
    job = job_in(folder, directory=place_of(folder), schema=RECORDS)
    return list(write_parts(job, "task", lambda _: read, [(part, None)]))


def written(
    folder: Path, *parts: tuple[tuple[str, int], pa.RecordBatch]
) -> tuple[Path, StagedFile]:
    (file,) = added(folder, PART, *parts)
    return folder / file.path, file


def test_the_file_has_the_columns_of_the_table_and_every_row_once(tmp_path: Path) -> None:
    path, file = written(
        tmp_path,
        (("b", 1), rows(1, [7, 9])),
        (("a", 0), rows(0, [1, 2, 5])),
        (("b", 1), rows(1, [10])),
    )
    found = pq.read_table(path)
    assert found.schema.equals(RECORDS)
    assert file.size == path.stat().st_size
    columns = ("source_cluster", "topic", "partition", "offset", "generation", "batch_id")
    assert [
        tuple(item[name] for name in columns) for item in found.select(columns).to_pylist()
    ] == [
        *(("east", "a", 0, offset, 0, PART.batch) for offset in (1, 2, 5)),
        *(("east", "b", 1, offset, 2, PART.batch) for offset in (7, 9, 10)),
    ]
    first = found.slice(0, 1).to_pylist()[0]
    assert (
        first["timestamp"].timestamp() == 1.234
        and first["landed_at"].timestamp() == PART.landed_at / 1_000
    )
    assert (first["key"], first["value"], first["headers"]) == (None, bytes(3), None)


def test_what_a_batch_notes_of_ends_costs_next_to_nothing(tmp_path: Path) -> None:
    """Constant columns, whatever is said: a run of one code each."""
    sizes, noted = [], json.dumps([["t" * 200, number, 1, 2] for number in range(100)])
    counts = ((("a", 0), 20_000), (("b", 1), 3))
    read = [(key, rows(key[1], list(range(count)))) for key, count in counts]
    for batch in (PART, Part("east", 1, 1, {}, {("a", 0): 20_000, ("b", 1): 9}, noted)):
        (file,) = added(tmp_path, batch, *read)
        sizes.append(file.size)
        found = pq.read_table(tmp_path / file.path, columns=["topic", "batch_end", "open_ends"])
        assert found.schema.field("open_ends").type == pa.string()
        assert {
            tuple(item.values())
            for item in found.group_by(found.column_names).aggregate([]).to_pylist()
        } == {(key[0], batch.ends.get(key), batch.open_ends) for key in (("a", 0), ("b", 1))}
    assert sizes[1] - sizes[0] < 10_000


def test_the_commit_tells_the_ranges_and_delta_its_statistics(tmp_path: Path) -> None:
    path, file = written(tmp_path, (("b", 1), rows(1, [7, 9])), (("a", 0), rows(0, [1, 2, 5])))
    assert ranges_from_commit(statistics_of(file.stats)) == [
        StagedRange("east", "a", 0, 0, 1, 5, 3),
        StagedRange("east", "b", 1, 2, 7, 9, 2),
    ]
    stats = json.loads(file.stats)
    assert stats["numRecords"] == pq.read_metadata(path).num_rows == 5
    assert stats["minValues"] == {
        **{"source_cluster": "east", "batch_id": PART.batch},
        **{"topic": "a", "partition": 0, "offset": 1, "generation": 0},
    }
    assert stats["maxValues"] == {
        **{"source_cluster": "east", "batch_id": PART.batch},
        **{"topic": "b", "partition": 1, "offset": 9, "generation": 2},
    }


def test_a_partition_with_much_has_row_groups_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads one partition need not open the rows of others; small ones stand together."""
    monkeypatch.setattr(stage_file, "OWN_GROUP_BYTES", 10_000)
    small = [((f"s{number}", 0), rows(0, [3])) for number in range(5)]
    path, _ = written(
        tmp_path, (("b", 1), rows(1, [1, 2], 9_000)), *small, (("b", 2), rows(2, [4, 5], 9_000))
    )
    metadata = pq.read_metadata(path)
    groups = [
        pq.ParquetFile(path).read_row_group(i, columns=["topic", "partition"]) for i in range(3)
    ]
    assert metadata.num_row_groups == 3
    places = [{(row["topic"], row["partition"]) for row in group.to_pylist()} for group in groups]
    assert places == [{("b", 1)}, {("b", 2)}, {(f"s{number}", 0) for number in range(5)}]


def test_what_a_column_cannot_hold_stands_beside_it(tmp_path: Path) -> None:
    odd = rows(0, [3, 4])
    at = SCHEMA.get_field_index("timestamp")
    times = pa.array([1_700_000_000_000_000_000, 5], pa.int64()).cast(
        SCHEMA.field("timestamp").type
    )
    odd = odd.set_column(at, SCHEMA.field(at), times)
    named = rows(0, [5]).append_column("header_names", pa.array([[b"\xff"]], pa.list_(pa.binary())))
    path, _ = written(tmp_path, (("a", 0), rows(0, [1, 2])), (("a", 0), odd), (("a", 0), named))
    with pq.ParquetFile(path) as file:
        assert columns_of(file, [0], COLUMNS) == COLUMNS
    plain, _ = written(tmp_path, (("a", 0), rows(0, [1, 2])))
    with pq.ParquetFile(plain) as file:
        assert [name for name in COLUMNS if name not in columns_of(file, [0], COLUMNS)] == [*RARE]
    found = pq.read_table(path, columns=["timestamp", "timestamp_ms", "header_names"]).to_pylist()
    assert [row["timestamp"] is None for row in found] == [False, False, True, False, False]
    assert [row["timestamp_ms"] for row in found] == [
        None,
        None,
        1_700_000_000_000_000_000,
        None,
        None,
    ]
    assert [row["header_names"] for row in found] == [None] * 4 + [[b"\xff"]]


def test_a_record_that_cannot_be_staged_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the reason will be: here a time that Arrow does not cast."""
    monkeypatch.setattr(stage_rows, "split_times", lambda times: (times, None))
    odd = rows(3, list(range(10, 19)))
    at = SCHEMA.get_field_index("timestamp")
    times = pa.array([5] * 6 + [2**62] * 3, pa.int64()).cast(SCHEMA.field("timestamp").type)
    read = [(("a", 0), rows(0, [1])), (("odd", 3), odd.set_column(at, SCHEMA.field(at), times))]
    with pytest.raises(StagingError, match="odd-3 cannot be staged from offset 16") as raised:
        added(tmp_path, PART, *read)
    assert (raised.value.topic, raised.value.partition, raised.value.first_offset) == ("odd", 3, 16)


def test_small_partitions_are_staged_as_each_by_itself(tmp_path: Path) -> None:
    """They are made together: what is the same for all rows of one is not that of its
    neighbours."""
    keys = [(f"t{number % 7}", number) for number in range(200)]
    generations = {key: number % 3 for number, key in enumerate(keys)}
    part = Part("east", 5, 5, generations, {key: 100 + key[1] for key in keys}, "[]")
    odd = rows(199, [8]).append_column("header_names", pa.array([[b"\xff"]], pa.list_(pa.binary())))
    read = [(key, rows(key[1], [*range(1 + key[1] % 3)])) for key in keys] + [(keys[-1], odd)]
    (file,) = added(tmp_path, part, *read)
    path = tmp_path / file.path
    assert pq.read_metadata(path).num_row_groups == 1
    found = pq.read_table(path)
    alone = [
        pq.read_table(tmp_path / one.path)
        for key in sorted(set(keys))
        for one in added(tmp_path, part, *(each for each in read if each[0] == key))
    ]
    assert found.equals(pa.concat_tables(alone))
    assert (
        found.num_rows
        == sum(one.records for one in file.landed)
        == sum(rows.num_rows for _, rows in read)
    )


def test_no_rows_no_file(tmp_path: Path) -> None:
    assert added(tmp_path, PART) == []
    assert list(tmp_path.iterdir()) == []


def test_what_is_gathered_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_file, "GATHERED_BYTES", 50_000)
    parts = [(("a", 0), rows(0, [offset], 20_000)) for offset in range(10)]
    path, _ = written(tmp_path, *parts)
    assert pq.read_metadata(path).num_row_groups == 4
    assert pq.read_table(path)["offset"].to_pylist() == list(range(10))


def test_what_a_file_brought_is_told_by_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_file, "GATHERED_BYTES", 5_000)
    many = [((f"m{number}", 0), rows(0, [3])) for number in range(300)]
    first, second = rows(0, [1, 2]), rows(0, [5], 9_000)
    read = [(("b", 1), rows(1, [7, 9])), (("a", 0), first), *many, (("a", 0), second)]
    _, file = written(tmp_path, *read)
    assert "ranges" not in json.loads(file.stats), "which a commit states of few partitions only"
    told = {(one.topic, one.partition): one for one in file.landed}
    assert len(told) == len(file.landed) == 302
    assert told["a", 0] == Landed("a", 0, 3, arrow_bytes(first) + arrow_bytes(second))
    assert told["b", 1].records == 2
